"""Keys are checked, accounts are apart, and what is wrong gets the exchange's own code."""

import pytest

from agent_gym.apps.sandbox.desk import Desk
from tests.apps.sandbox_samples import serving, session_of

NOW_MS = 1_800_000_000_000
SIGNED = [
    ("GET", "/api/v3/account"),
    ("GET", "/api/v3/account/commission"),
    ("POST", "/api/v3/order"),
    ("POST", "/api/v3/order/test"),
    ("POST", "/api/v3/order/cancelReplace"),
    ("DELETE", "/api/v3/order"),
    ("GET", "/api/v3/order"),
    ("GET", "/api/v3/openOrders"),
    ("DELETE", "/api/v3/openOrders"),
    ("GET", "/api/v3/allOrders"),
    ("GET", "/api/v3/myTrades"),
    ("POST", "/api/v3/order/oco"),
    ("POST", "/api/v3/orderList/oco"),
    ("GET", "/api/v3/orderList"),
    ("DELETE", "/api/v3/orderList"),
    ("GET", "/api/v3/openOrderList"),
    ("GET", "/api/v3/allOrderList"),
    ("GET", "/api/v3/rateLimit/order"),
    ("GET", "/sapi/v1/capital/config/getall"),
    ("GET", "/sapi/v1/asset/tradeFee"),
]
KEYED = [
    ("POST", "/api/v3/userDataStream"),
    ("PUT", "/api/v3/userDataStream"),
    ("DELETE", "/api/v3/userDataStream"),
    ("GET", "/sapi/v1/margin/allPairs"),
    ("GET", "/sapi/v1/margin/isolated/allPairs"),
    ("POST", "/sandbox/step"),
    ("POST", "/sandbox/leave"),
    ("POST", "/sandbox/finish"),
    ("GET", "/sandbox/results"),
    ("GET", "/sandbox/score"),
]


@pytest.fixture(scope="module")
def place():
    with serving(session_of()) as served:
        yield served


def test_the_lists_above_are_all_there_is_behind_a_key(place):
    table = Desk(place.session).endpoints
    found = {where: one.security for where, one in table.items()}
    assert {where for where, kind in found.items() if kind == "signed"} == set(SIGNED)
    assert {where for where, kind in found.items() if kind == "key"} == set(KEYED)
    public = {where for where, kind in found.items() if kind == "none"}
    assert all(method == "GET" for method, _ in public)


@pytest.mark.parametrize(("method", "path"), [*SIGNED, *KEYED])
def test_nothing_private_is_told_without_a_key(place, method, path):
    state = place.session.state()
    answer = place.http.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (401, -2014)
    answer = place.http.request(method, path, headers={"X-MBX-APIKEY": "a" * 64})
    assert (answer.status_code, answer.json()["code"]) == (401, -2015)
    assert place.session.state() == state


@pytest.mark.parametrize(("method", "path"), SIGNED)
def test_a_key_alone_is_not_enough(place, method, path):
    headers = {"X-MBX-APIKEY": place.key()[0]}
    answer = place.http.request(method, path, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, -1102)
    status, told = place.asked(method, path, signature="0" * 64)
    assert (status, told["code"]) == (400, -1022)
    # The key of one account, signed with the secret of another.
    status, told = place.asked(method, path, key=place.key("ben")[0])
    assert (status, told["code"]) == (400, -1022)


def test_what_was_not_signed_does_not_pass(place):
    status, told = place.asked("GET", "/api/v3/account", tail="&omitZeroBalances=true")
    assert (status, told["code"]) == (400, -1022)
    assert place.asked("GET", "/api/v3/account", {"omitZeroBalances": "true"})[0] == 200


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"symbol": None}, -1102),
        ({"symbol": "btcusdt"}, -1100),
        ({"symbol": "ETHUSDT"}, -1121),
        ({"side": "LONG"}, -1117),
        ({"side": None}, -1102),
        ({"type": "OCO"}, -1116),
        ({"type": "STOP_LOSS_LIMIT"}, -1102),
        ({"type": "STOP_LOSS"}, -1102),
        ({"type": "STOP_LOSS", "stopPrice": "25000", "price": "25000"}, -1106),
        ({"type": "STOP_LOSS", "stopPrice": "25000.001"}, -1013),
        ({"type": "STOP_LOSS", "trailingDelta": "5"}, -1013),
        ({"type": "STOP_LOSS", "trailingDelta": "x"}, -1100),
        ({"type": "LIMIT_MAKER", "price": "18000", "stopPrice": "18000"}, -1106),
        ({"type": "TAKE_PROFIT", "stopPrice": "25000"}, -2010),
        (
            {"type": "STOP_LOSS_LIMIT", "stopPrice": "25000", "price": "25000"}
            | {"timeInForce": "FOK"},
            -1014,
        ),
        ({"quantity": None}, -1102),
        ({"quantity": "1e3"}, -1100),
        ({"quantity": "-1"}, -1100),
        ({"quantity": "nan"}, -1100),
        ({"quantity": "0.123456789"}, -1111),
        ({"quantity": "0"}, -1013),
        ({"quantity": "0.000001"}, -1013),
        ({"quantity": "0.00001"}, -1013),
        ({"quantity": "99999999"}, -1013),
        ({"price": "20000"}, -1106),
        ({"quoteOrderQty": "100"}, -1106),
        ({"timeInForce": "GTC"}, -1106),
        ({"type": "LIMIT"}, -1102),
        ({"type": "LIMIT", "price": "20000", "timeInForce": "DAY"}, -1115),
        ({"type": "LIMIT", "price": "20000.001", "timeInForce": "GTC"}, -1013),
        ({"type": "LIMIT", "price": "1", "timeInForce": "GTC"}, -1013),
        ({"type": "LIMIT", "price": "900000", "timeInForce": "GTC"}, -1013),
        ({"type": "LIMIT_MAKER", "price": "30000"}, -2010),
        ({"type": "STOP_LOSS", "stopPrice": "10000"}, -2010),
        ({"quantity": "5"}, -2010),
        ({"side": "SELL", "quantity": "0.5"}, -2010),
        ({"type": "LIMIT", "price": "19000", "timeInForce": "GTC", "quantity": "1"}, -2010),
        ({"quantity": "0.01", "newClientOrderId": "a b"}, -1100),
        ({"quantity": "0.01", "icebergQty": "0.01"}, -2010),
        ({"quantity": "0.01", "newOrderRespType": "ALL"}, -1130),
    ],
)
def test_a_bad_order_gets_the_exchange_s_code(place, params, code):
    before = len(place.session.floor.tickets)
    status, told = place.order(**({"quantity": "0.01"} | params))
    assert (status, told["code"]) == (400, code)
    assert told["msg"]
    assert len(place.session.floor.tickets) == before
    tested = {"symbol": "BTCUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.01"} | params
    assert place.asked("POST", "/api/v3/order/test", tested)[1]["code"] == code


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/api/v3/klines?symbol=BTCUSDT&interval=7m", -1120),
        ("/api/v3/klines?symbol=BTCUSDT&interval=1m", -1120),
        ("/api/v3/klines?symbol=BTCUSDT", -1102),
        ("/api/v3/klines?symbol=BTCUSDT&interval=1h&limit=0", -1130),
        ("/api/v3/klines?symbol=BTCUSDT&interval=1h&startTime=x", -1100),
        ("/api/v3/depth?symbol=NOPE", -1121),
        ("/api/v3/ticker/price?symbol=../etc", -1100),
        ("/api/v3/exchangeInfo?symbols=[%22NOPE%22]", -1121),
    ],
)
def test_a_bad_question_gets_the_exchange_s_code(place, path, code):
    answer = place.http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_what_is_not_there_is_not_found(place):
    for path in ("/", "/api/v3/../account", "/api/v3/nothing", "/docs", "/openapi.json"):
        assert place.http.get(path).status_code == 404
    assert place.http.request("PATCH", "/api/v3/order").status_code == 405
    assert place.http.post("/api/v3/klines").status_code == 404


def test_two_bots_have_two_accounts():
    with serving(session_of()) as place:
        status, order = place.order("ann", quantity="0.1")
        assert (status, order["status"]) == (200, "FILLED")
        rest = {"type": "LIMIT", "price": "15000", "timeInForce": "GTC", "quantity": "0.1"}
        resting = place.order("ann", **rest)[1]["orderId"]
        mine = {"symbol": "BTCUSDT", "orderId": resting}
        assert place.asked("GET", "/api/v3/order", mine, "ben")[1]["code"] == -2013
        assert place.asked("DELETE", "/api/v3/order", mine, "ben")[1]["code"] == -2011
        assert (
            place.asked("DELETE", "/api/v3/openOrders", {"symbol": "BTCUSDT"}, "ben")[1]["code"]
            == -2011
        )
        for path in ("openOrders", "allOrders", "myTrades"):
            assert place.asked("GET", f"/api/v3/{path}", {"symbol": "BTCUSDT"}, "ben")[1] == []
        owned = place.asked("GET", "/api/v3/account", name="ben")[1]["balances"]
        assert {one["asset"]: float(one["free"]) for one in owned} == {"USDT": 10_000.0, "BTC": 0.0}
        assert place.asked("GET", "/api/v3/order", mine)[1]["status"] == "NEW"
        keys = {name: place.listen_key(name) for name in ("ann", "ben")}
        assert keys["ann"] != keys["ben"]
        headers = {"X-MBX-APIKEY": place.key("ben")[0]}
        stolen = place.http.put(
            "/api/v3/userDataStream", params={"listenKey": keys["ann"]}, headers=headers
        )
        assert stolen.json()["code"] == -1125


def test_long_requests_are_refused(place):
    answer = place.http.post("/api/v3/order", content=b"a=" + b"x" * 100_000)
    assert answer.status_code == 413
    many = "&".join(f"p{i}=1" for i in range(200))
    assert place.http.get(f"/api/v3/ping?{many}").json()["code"] == -1101


def test_a_name_for_an_order_is_taken_once_while_it_is_open(place):
    wish = {
        "type": "LIMIT",
        "price": "15000",
        "timeInForce": "GTC",
        "quantity": "0.01",
        "newClientOrderId": "mine",
    }
    assert place.order(**wish)[0] == 200
    assert place.order(**wish)[1]["code"] == -2010
    named = {"symbol": "BTCUSDT", "origClientOrderId": "mine"}
    assert place.asked("DELETE", "/api/v3/order", named)[1]["status"] == "CANCELED"
    assert place.order(**wish)[0] == 200


def test_an_order_is_replaced_whole_or_in_part(place):
    wish = {"type": "LIMIT", "price": "15000", "timeInForce": "GTC", "quantity": "0.01"}
    old = place.order("ben", **wish)[1]["orderId"]
    wish |= {"symbol": "BTCUSDT", "side": "BUY", "cancelReplaceMode": "STOP_ON_FAILURE"}

    def replace(**more):
        return place.asked("POST", "/api/v3/order/cancelReplace", wish | more, "ben")

    status, told = replace(cancelOrderId=old, price="14000")
    assert (status, told["cancelResult"], told["newOrderResult"]) == (200, "SUCCESS", "SUCCESS")
    new = told["newOrderResponse"]["orderId"]
    status, told = replace(cancelOrderId=old)
    assert (status, told["code"]) == (400, -2022)
    assert told["data"]["newOrderResult"] == "NOT_ATTEMPTED"
    status, told = replace(cancelOrderId=new, quantity="0.000001")
    assert (status, told["code"]) == (400, -1013)  # filters come first: nothing was taken back
    status, told = replace(cancelOrderId=new, quantity="9")
    assert (status, told["code"]) == (409, -2021)
    assert told["data"]["newOrderResponse"]["code"] == -2010
    assert place.asked("GET", "/api/v3/openOrders", {"symbol": "BTCUSDT"}, "ben")[1] == []
