"""The clock, the limits in its time, the end; and whatever else is asked is answered."""

import json
from threading import Thread

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.apps.sandbox.desk import Asked, Desk
from agent_gym.apps.sandbox.errors import UNKNOWN
from agent_gym.core.clock import ManualClock
from tests.apps.sandbox_samples import market, serving, session_of, signed

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("stamp", "window", "code"),
    [
        (-4_000, None, None),
        (-6_000, None, -1021),
        (-6_000, 10_000, None),
        (-61_000, 60_000, -1021),
        (5_000, None, -1021),
        (900, None, None),
        (0, 60_001, -1131),
    ],
)
def test_the_time_of_a_request_is_checked(stamp, window, code):
    wall = ManualClock(NOW_MS * 10**6)
    session = session_of(wall=wall)
    told = signed(session, {"timestamp": NOW_MS + stamp, "recvWindow": window})
    assert told.get("code") == code


def test_a_client_that_set_its_watch_by_the_exchange_is_not_late():
    """Simulated time stands while the client's clock goes on from what it was told."""
    wall = ManualClock(NOW_MS * 10**6)
    session = session_of(wall=wall)
    desk = Desk(session)
    then = json.loads(desk.handle(Asked("GET", "/api/v3/time")).body)["serverTime"]
    assert then == session.floor.opened_ns // 10**6
    assert "code" not in signed(session, {"timestamp": then})
    wall.sleep_s(3_600.0)
    assert "code" not in signed(session, {"timestamp": then + 3_600_000})
    assert signed(session, {"timestamp": then + 1_800_000})["code"] == -1021


def test_weights_are_counted_and_bound():
    session = session_of(weight=100)
    desk = Desk(session)
    first = desk.handle(Asked("GET", "/api/v3/exchangeInfo"))
    assert first.headers["X-MBX-USED-WEIGHT-1M"] == "20"
    assert desk.handle(Asked("GET", "/api/v3/ping")).headers["X-MBX-USED-WEIGHT"] == "21"
    for _ in range(3):
        assert desk.handle(Asked("GET", "/api/v3/exchangeInfo")).status == 200
    full = desk.handle(Asked("GET", "/api/v3/exchangeInfo"))
    assert (full.status, json.loads(full.body)["code"]) == (429, -1003)
    assert "Retry-After" in full.headers
    assert desk.handle(Asked("GET", "/api/v3/ping", client="another")).status == 200
    session.step(1)  # an hour later
    assert desk.handle(Asked("GET", "/api/v3/ping")).headers["X-MBX-USED-WEIGHT"] == "1"


def test_orders_are_counted_and_bound():
    with serving(session_of()) as place:
        codes = [place.order(quantity="0.001")[1].get("code") for _ in range(102)]
        assert codes == [None] * 100 + [-1015] * 2
        place.step()
        assert place.order(quantity="0.001")[0] == 200


TEXT = st.text(max_size=30) | st.sampled_from(
    [
        "BTCUSDT",
        "BUY",
        "SELL",
        "LIMIT",
        "MARKET",
        "LIMIT_MAKER",
        "STOP_LOSS",
        "TAKE_PROFIT_LIMIT",
        "GTC",
        "1",
        "0.01",
        "20000",
        "1h",
        "5",
        "-1",
        "1e9",
    ]
)
NAMES = st.sampled_from(
    [
        *("symbol", "symbols", "side", "type", "timeInForce", "quantity", "price", "stopPrice"),
        *("quoteOrderQty", "limit", "interval", "startTime", "endTime", "fromId", "orderId"),
        *("origClientOrderId", "newClientOrderId", "listenKey", "bars", "recvWindow"),
        *("cancelReplaceMode", "cancelOrderId", "newOrderRespType", "nothing"),
        *("trailingDelta", "aboveType", "belowType", "abovePrice", "belowPrice"),
        *("aboveStopPrice", "belowStopPrice", "orderListId", "stopLimitPrice"),
    ]
)


@given(data=st.data())
def test_whatever_is_asked_is_answered(fuzzed, data):
    """No parameters make an error of ours: each is an answer, or a code of the exchange."""
    desk, now = fuzzed
    where = data.draw(st.sampled_from(sorted(desk.endpoints)))
    if where == ("POST", "/sandbox/finish"):
        return
    params = data.draw(st.dictionaries(NAMES, TEXT, max_size=9))
    told = signed(desk.session, {"timestamp": now} | params, where[1], where[0], desk=desk)
    assert not isinstance(told, dict) or told.get("msg") != UNKNOWN.msg, (where, params, told)


@pytest.fixture(scope="module")
def fuzzed():
    wall = ManualClock(NOW_MS * 10**6)
    return Desk(session_of([market(2_000)], wall=wall, weight=10**9)), NOW_MS


def test_the_clock_runs_by_itself_or_by_steps_alone():
    wall = ManualClock()
    session = session_of([market(80)], wall=wall, speed="3600")
    desk, start = Desk(session), session.floor.opened_ns
    session.start()
    assert session.wait_s() == pytest.approx(1.0)
    wall.sleep_s(0.5)
    assert json.loads(desk.handle(Asked("GET", "/api/v3/time")).body) == {
        "serverTime": start // 10**6 + 1_800_000
    }
    wall.sleep_s(3.0)
    state = json.loads(desk.handle(Asked("GET", "/sandbox/clock")).body)
    assert state["bar"] == 49 + 3
    assert state["speed"] == 3600.0
    key = session.keys[0].api_key
    told = desk.handle(Asked("POST", "/sandbox/step", api_key=key))
    assert json.loads(told.body)["code"] == -1013
    wall.sleep_s(1_000.0)
    assert json.loads(desk.handle(Asked("GET", "/sandbox/clock")).body)["finished"]
    assert session.floor.venue.finished


def test_bots_that_go_together_wait_for_each_other():
    session = session_of(together=True)
    session.start()
    assert session.step(2, "ann") == 0
    assert session.waits("ann")
    assert session.step(1, "ben") == 1
    assert session.waits("ann")
    assert not session.waits("ben")
    assert session.step(5, "ben") == 1
    assert not session.waits("ann")
    assert session.leave("ann") == 4
    assert session.step(3, "ben") == 3
    assert session.floor.venue.t == 49 + 9


def test_two_bots_walk_through_a_market_side_by_side():
    """Each asks for bars when it likes; both see every bar once, whoever is faster."""
    session = session_of([market(90)], together=True)
    seen = {"ann": [], "ben": []}

    def walk(place, name):
        with httpx.Client(base_url=place.url, timeout=60) as client:
            headers, finished = {"X-MBX-APIKEY": place.key(name)[0]}, False
            while not finished:
                told = client.post("/sandbox/step", headers=headers).json()
                seen[name].append(told["bar"])
                finished = told["finished"]

    with serving(session) as place:
        walkers = [Thread(target=walk, args=(place, name)) for name in seen]
        for walker in walkers:
            walker.start()
        for walker in walkers:
            walker.join(120)
    assert seen == {name: list(range(50, 90)) for name in seen}


def test_a_finished_session_takes_no_orders():
    session = session_of()
    with serving(session) as place:
        place.order(quantity="0.1")
        headers = {"X-MBX-APIKEY": place.key()[0]}
        told = place.http.post("/sandbox/finish", headers=headers).json()
        assert told["finished"]
        assert place.order(quantity="0.1")[1] == {"code": -1013, "msg": "Market is closed."}
        assert place.http.get("/api/v3/exchangeInfo").json()["symbols"][0]["status"] == "BREAK"
    # What was filled at the last open is in the account: its bar was played.
    assert session.floor.venue.account("ann").positions["BTC/USDT"] == pytest.approx(0.1)


def test_rebased_bars_begin_now():
    wall = ManualClock(NOW_MS * 10**6)
    session = session_of(wall=wall, rebase=True)
    began = session.floor.opened_ns // 10**6
    assert NOW_MS - 3_600_000 < began <= NOW_MS
    session.start()
    assert session.market.now_ms == began  # a clock that is stepped stands at the open
    live = session_of(wall=wall, rebase=True, speed="1")
    live.start()
    assert live.market.now_ms == NOW_MS
    wall.sleep_s(4_000.0)
    live.catch_up()
    assert live.market.now_ms == NOW_MS + 4_000_000
