"""What the door of a sandbox refuses, and how it says so: bad orders, wrong keys, no sandbox."""

import asyncio
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from agent_gym.apps.cli.main import run
from agent_gym.apps.sandbox_door import ExchangeDesk, SandboxClient
from agent_gym.core.clock import SystemClock
from tests.apps.mcp_samples import ID, played
from tests.apps.sandbox_samples import serving, session_of

ORDER = {"symbol": ID, "side": "BUY"}
BAD = [
    ({"quantity": 0.000015}, -1013, "Filter failure: LOT_SIZE", "stepSize"),
    ({"quantity": 0.0001}, -1013, "Filter failure: NOTIONAL", "minNotional"),
    ({"type": "LIMIT", "quantity": 1, "price": 1}, -1013, "PERCENT_PRICE_BY_SIDE", "nearer"),
    ({"type": "LIMIT", "quantity": 1, "price": 9000.001}, -1013, "PRICE_FILTER", "tickSize"),
    ({"quantity": 0.123456789}, -1111, "too much precision", "8 decimals"),
    ({"quantity": -1}, -1100, "Illegal characters", "above 0"),
    ({}, -1102, "quantity", "parameter"),
    ({"type": "LIMIT", "quantity": 1}, -1102, "'price'", "parameter"),
    ({"quantity": 1, "price": 9000}, -1106, "'price'", "Leave out"),
    ({"quantity": 1000}, -2010, "insufficient balance", "account"),
    ({"symbol": "DOGEUSDT", "quantity": 1}, -1121, "Invalid symbol", "exchange_info"),
]


def test_bad_orders_get_the_codes_and_the_words_of_the_exchange():
    async def go(gym):
        for changes, code, words, hint in BAD:
            said = await gym.refused("place_order", **(ORDER | changes))
            assert (said["code"], said["where"]) == (code, "place_order"), changes
            assert words in said["msg"]
            assert hint in said["remedy"]
        said = await gym.refused("cancel_order", symbol=ID, orderId=99)
        assert said["code"] == -2011
        assert (await gym.refused("order", symbol=ID, orderId=99))["code"] == -2013
        assert (await gym.refused("bars", symbol=ID, interval="1m"))["code"] == -1120
        strange = await gym.told("place_order", **ORDER, quantity=1, leverage=5)
        assert strange.is_error
        assert "leverage" in strange.structured_content["what"]
        huge = await gym.told("place_order", **ORDER, quantity="1e999999")
        assert "40 digits" in huge.structured_content["what"]
        nothing = await gym.told("withdraw")
        assert nothing.structured_content["what"] == "there is no such call"
        return await gym.ask("score")

    session = session_of()
    with serving(session) as place:
        score = played(place, go)
    assert score["refused"] == len(BAD)
    assert not session.floor.tickets


def desk_of(place, key=None, secret=None, url=None):
    own = place.key()
    return ExchangeDesk(SandboxClient(url or place.url, key or own[0], secret or own[1]))


def test_a_wrong_key_is_refused_and_sees_the_market_alone():
    other = "k" * 64
    session = session_of()
    with serving(session) as place:
        stranger = desk_of(place, key=other)
        for tool in ("account", "step", "score", "finish", "open_orders"):
            well, said = stranger.call(tool, {})
            assert (well, said["code"]) == (False, -2015)
            assert "SANDBOX_KEY" in said["remedy"]
        assert stranger.call("clock", {})[0]
        forged = desk_of(place, secret=other).call("place_order", ORDER | {"quantity": 0.01})
        assert forged[1]["code"] == -1022
        assert "SANDBOX_SECRET" in forged[1]["remedy"]
        assert session.floor.venue.t == 49
        assert not session.floor.tickets


def test_a_clock_that_runs_is_not_stepped():
    with serving(session_of(speed="1")) as place:
        well, said = desk_of(place).call("step", {})
    assert (well, said["code"]) == (False, -1013)
    assert "wait" in said["remedy"]


def test_a_session_that_is_over_trades_no_more():
    session = session_of()
    with serving(session) as place:
        desk = desk_of(place)
        assert desk.call("finish", {})[1]["finished"]
        well, said = desk.call("place_order", ORDER | {"quantity": 0.01})
    assert not well
    assert "score" in said["remedy"]


def test_the_results_are_those_of_the_score(tmp_path):
    with serving(session_of(folder=tmp_path)) as place:
        desk = desk_of(place)
        assert desk.call("place_order", ORDER | {"quantity": 0.1})[0]
        assert desk.call("step", {"bars": 40})[1]["finished"] is False
        assert desk.call("finish", {})[0]
        (_, score), (_, told) = desk.call("score", {}), desk.call("results", {})
        for _ in range(6_000):
            if told["ready"]:
                break
            SystemClock().sleep_s(0.02)
            _, told = desk.call("results", {})
    metrics = told["results"]["metrics"]
    for name in ("total_return", "max_drawdown", "fees"):
        assert score[name] == pytest.approx(metrics[name], abs=1e-12)
    assert (score["equity"], score["fills"]) == (told["results"]["final_equity"], 1)
    assert score["max_drawdown"] > 0.0


def test_a_sandbox_that_has_died_is_told_in_words_without_secrets():
    async def go(gym, stop):
        assert (await gym.ask("clock"))["finished"] is False
        await asyncio.to_thread(stop)
        return [
            await gym.refused("account"),
            await gym.refused("place_order", **ORDER, quantity=1),
            await gym.refused("clock"),
        ]

    block = serving(session_of())
    place = block.__enter__()

    def stop():
        block.__exit__(None, None, None)

    for said in played(place, lambda gym: go(gym, stop)):
        assert said["what"] == "no sandbox answers"
        assert said["where"] == place.url
        assert "agent-gym sandbox" in said["remedy"]
        assert "signature" not in json.dumps(said)


class Stranger(BaseHTTPRequestHandler):
    """Another server, which writes down what it is asked."""

    asked: ClassVar[list] = []
    answer: ClassVar[tuple] = (200, b"{}")

    def do_GET(self):
        Stranger.asked.append((self.command, self.path, self.headers.get("X-MBX-APIKEY")))
        status, body = Stranger.answer
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_DELETE = do_GET

    def log_message(self, *words):
        pass


@pytest.mark.parametrize(
    "answer",
    [(200, b"{}"), (200, b"hello"), (404, b"<html>"), (307, b""), (500, b"[]"), (200, b"[1]")],
)
def test_nothing_but_a_question_goes_to_what_is_no_sandbox(answer):
    """The real exchange speaks the same words: it must get neither the key nor an order."""
    server = HTTPServer(("127.0.0.1", 0), Stranger)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    Stranger.asked, Stranger.answer = [], answer
    try:
        desk = ExchangeDesk(
            SandboxClient(f"http://127.0.0.1:{server.server_port}", "k" * 64, "s" * 64)
        )
        for tool, arguments in (("place_order", ORDER | {"quantity": 1}), ("step", {})):
            well, said = desk.call(tool, arguments)
            assert (well, said["error"]) == (False, "NoSandbox")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)
    assert Stranger.asked == [("GET", "/sandbox/clock", None)] * 2


@pytest.mark.parametrize(
    ("words", "changes", "said"),
    [
        (("--sandbox", "http://127.0.0.1:1"), {"SANDBOX_KEY": None}, "SANDBOX_KEY"),
        (("--sandbox", "http://127.0.0.1:1"), {"SANDBOX_SECRET": ""}, "SANDBOX_SECRET"),
        (("--sandbox", "127.0.0.1:1"), {}, "http://"),
        (("--sandbox", "ftp://127.0.0.1"), {}, "http://"),
        (("--sandbox", "http://ann:pw@127.0.0.1"), {}, "http://"),
        (("--sandbox", "http://127.0.0.1:1", "--trust"), {}, "--trust"),
    ],
)
def test_what_does_not_fit_is_told_before_it_serves(monkeypatch, capsys, words, changes, said):
    for name, value in ({"SANDBOX_KEY": "k", "SANDBOX_SECRET": "s"} | changes).items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert run(["mcp", *words], as_json=False) == 2
    shown = "".join(capsys.readouterr().err.split())
    assert said in shown
