"""Websockets: who hears what, and who is not heard."""

import json

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agent_gym.core.clock import SystemClock
from tests.apps.sandbox_samples import serving, session_of


@pytest.fixture(scope="module")
def place():
    with serving(session_of()) as served:
        yield served


def socket(place, path):
    return connect(place.url.replace("http", "ws") + path)


def test_a_listen_key_tells_one_account_alone():
    with serving(session_of()) as place:
        hers, his = (f"/ws/{place.listen_key(name)}" for name in ("ann", "ben"))
        with socket(place, hers) as ann, socket(place, his) as ben:
            place.order("ann", quantity="0.01")
            told = [json.loads(ann.recv(30)) for _ in range(3)]
            with pytest.raises(TimeoutError):
                ben.recv(0.3)
        assert [one.get("x") for one in told] == ["NEW", "TRADE", None]
        assert told[1]["X"] == "FILLED"
        assert told[1]["z"] == "0.01000000"
        assert told[2]["e"] == "outboundAccountPosition"


def test_streams_by_address_and_by_subscription(place):
    with socket(place, "/stream?streams=btcusdt@bookTicker/btcusdt@depth5") as named:
        with socket(place, "/ws") as plain:
            for method, names, wanted in (
                ("SUBSCRIBE", ["btcusdt@kline_1h", "btcusdt@trade"], None),
                ("UNSUBSCRIBE", ["btcusdt@trade"], None),
                ("LIST_SUBSCRIPTIONS", [], ["btcusdt@kline_1h"]),
            ):
                plain.send(json.dumps({"method": method, "params": names, "id": 7}))
                assert json.loads(plain.recv(30)) == {"result": wanted, "id": 7}
            for bad in ("btcusdt@nothing", "ethusdt@trade", "btcusdt@kline_1m"):
                plain.send(json.dumps({"method": "SUBSCRIBE", "params": [bad], "id": 8}))
                assert json.loads(plain.recv(30))["error"]["code"] in (-1130, -1121, -1120)
            for junk in ("{", "[]", '"x"', '{"method":"DROP","id":1}'):
                plain.send(junk)
                assert json.loads(plain.recv(30))["error"]
            place.step()
            closed, opened = (json.loads(plain.recv(30))["k"] for _ in range(2))
            assert (closed["x"], opened["x"]) == (True, False)
            assert closed["T"] + 1 == opened["t"]
        told = [json.loads(named.recv(30)) for _ in range(2)]
        assert {one["stream"] for one in told} == {"btcusdt@bookTicker", "btcusdt@depth5"}


def test_the_socket_api_checks_as_the_other_does(place):
    with socket(place, "/ws-api/v3") as api:

        def ask(method, params):
            api.send(json.dumps({"id": 1, "method": method, "params": params}))
            return json.loads(api.recv(30))

        assert ask("ping", {}) == {"id": 1, "status": 200, "result": {}, "rateLimits": []}
        key = place.key()[0]
        assert ask("account.status", {})["error"]["code"] == -2014
        assert ask("account.status", {"apiKey": key})["error"]["code"] == -1102
        stamp = SystemClock().now_ns() // 10**6
        forged = {"apiKey": key, "timestamp": stamp, "signature": "0" * 64}
        for method in ("account.status", "order.place", "userDataStream.subscribe.signature"):
            assert ask(method, forged)["error"]["code"] == -1022
        assert ask("order.drop", {})["error"]["code"] == -1000


def test_a_page_of_another_host_gets_nothing(place):
    for host in ("evil.example", "127.0.0.1.evil.example:80", ""):
        assert place.http.get("/api/v3/ping", headers={"host": host}).status_code in (400, 421)
    assert place.http.get("/api/v3/ping", headers={"host": "localhost:1"}).status_code == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example"):
        assert place.http.get("/api/v3/ping", headers={"origin": origin}).status_code == 421
        with pytest.raises(InvalidStatus):
            connect(place.url.replace("http", "ws") + "/ws", origin=origin)
    own = place.http.get("/api/v3/ping", headers={"origin": place.url})
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers
