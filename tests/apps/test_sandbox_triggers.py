"""Stops, takes, trailing stops and pairs of orders, as the real ccxt client sends them."""

import ccxt
import pytest

from agent_gym.apps.sandbox import ccxt_options
from tests.apps.sandbox_samples import serving, session_of

SYMBOL = "BTC/USDT"


@pytest.fixture(scope="module")
def served():
    with serving(session_of()) as place:
        yield place


@pytest.fixture
def client(served):
    made = client_of(served)
    made.load_markets()
    yield made
    if made.fetch_open_orders(SYMBOL):
        made.cancel_all_orders(SYMBOL)


def client_of(place, name="ann"):
    return ccxt.binance(ccxt_options(place.url, *place.key(name)))


def at(client, factor):
    return float(client.price_to_precision(SYMBOL, client.fetch_ticker(SYMBOL)["last"] * factor))


def hold(client, units=0.1):
    """Own some units that no order holds back."""
    lacking = units - client.fetch_balance()["BTC"]["free"]
    if lacking > 0.00001:
        client.create_market_buy_order(SYMBOL, client.amount_to_precision(SYMBOL, lacking))


def old_pair(client, low, high, amount="0.05", **more):
    given = {
        "symbol": "BTCUSDT",
        "side": "SELL",
        "quantity": amount,
        "price": at(client, high),
        "stopPrice": at(client, low),
        "stopLimitPrice": at(client, low * 0.99),
        "stopLimitTimeInForce": "GTC",
    }
    return client.privatePostOrderOco({k: v for k, v in (given | more).items() if v is not None})


def new_pair(client, low, high, amount="0.05", **more):
    given = {
        "symbol": "BTCUSDT",
        "side": "SELL",
        "quantity": amount,
        "aboveType": "LIMIT_MAKER",
        "abovePrice": at(client, high),
        "belowType": "STOP_LOSS",
        "belowStopPrice": at(client, low),
    }
    given = {k: v for k, v in (given | more).items() if v is not None}
    return client.privatePostOrderListOco(given)


WAYS = {
    "stop_loss": lambda c: c.create_order(
        SYMBOL, "market", "sell", 0.05, None, {"stopLossPrice": at(c, 0.9)}
    ),
    "stop_loss_limit": lambda c: c.create_order(
        SYMBOL, "limit", "sell", 0.05, at(c, 0.89), {"stopPrice": at(c, 0.9)}
    ),
    "take_profit": lambda c: c.create_order(
        SYMBOL, "market", "sell", 0.05, None, {"takeProfitPrice": at(c, 1.1)}
    ),
    "take_profit_limit": lambda c: c.create_order(
        SYMBOL, "limit", "sell", 0.05, at(c, 1.09), {"takeProfitPrice": at(c, 1.1)}
    ),
    "limit_maker": lambda c: c.create_order(
        SYMBOL, "limit", "sell", 0.05, at(c, 1.1), {"postOnly": True}
    ),
}


@pytest.mark.parametrize("kind", WAYS)
def test_ccxt_creates_fetches_and_cancels_it(client, kind):
    hold(client)
    order = WAYS[kind](client)
    assert order["status"] == "open"
    found = client.fetch_order(order["id"], SYMBOL)
    assert found["info"]["type"] == kind.upper()
    waits = kind != "limit_maker"
    assert found["info"]["isWorking"] is not waits
    assert (found["triggerPrice"] is not None) == waits
    assert found["id"] in [one["id"] for one in client.fetch_open_orders(SYMBOL)]
    assert client.fetch_balance()["BTC"]["used"] == pytest.approx(0.05)
    assert client.cancel_order(order["id"], SYMBOL)["status"] == "canceled"
    assert client.fetch_balance()["BTC"]["used"] == 0.0


def test_the_words_of_ccxt_for_it_work_too(client):
    hold(client)
    stop = client.create_stop_loss_order(SYMBOL, "market", "sell", 0.05, None, at(client, 0.9))
    take = client.create_take_profit_order(
        SYMBOL, "limit", "sell", 0.05, at(client, 1.1), at(client, 1.09)
    )
    assert client.fetch_order(stop["id"], SYMBOL)["info"]["type"] == "STOP_LOSS"
    assert client.fetch_order(take["id"], SYMBOL)["info"]["type"] == "TAKE_PROFIT_LIMIT"
    client.cancel_all_orders(SYMBOL)
    trail = client.create_trailing_percent_order(
        SYMBOL, "market", "sell", 0.05, None, 1.5, None, {"stopLossOrTakeProfit": "stopLoss"}
    )
    assert client.fetch_order(trail["id"], SYMBOL)["info"]["trailingDelta"] in (150, "150")


@pytest.mark.parametrize(
    ("kind", "side", "params", "error"),
    [
        ("market", "sell", {"stopLossPrice": 1.05}, ccxt.OrderImmediatelyFillable),
        ("market", "sell", {"takeProfitPrice": 0.95}, ccxt.OrderImmediatelyFillable),
        ("market", "buy", {"stopLossPrice": 0.95}, ccxt.OrderImmediatelyFillable),
        ("limit", "buy", {"takeProfitPrice": 1.05}, ccxt.OrderImmediatelyFillable),
        ("market", "sell", {"stopLossPrice": 0.01}, ccxt.InvalidOrder),
        (
            "market",
            "sell",
            {"trailingPercent": 90, "stopLossOrTakeProfit": "stopLoss"},
            ccxt.BadRequest,
        ),
    ],
)
def test_what_the_exchange_refuses_is_refused(client, kind, side, params, error):
    hold(client)
    named = {
        name: at(client, one) if name.endswith("Price") else one for name, one in params.items()
    }
    with pytest.raises(error):
        client.create_order(SYMBOL, kind, side, 0.05, at(client, 1.0), named)
    assert client.fetch_open_orders(SYMBOL) == []


@pytest.mark.parametrize("send", [old_pair, new_pair])
def test_a_pair_of_orders_goes_its_way(client, send):
    hold(client)
    pair = send(client, 0.9, 1.1)
    number = int(pair["orderListId"])
    assert pair["contingencyType"] == "OCO"
    assert (pair["listStatusType"], pair["listOrderStatus"]) == ("EXEC_STARTED", "EXECUTING")
    assert {one["type"] for one in pair["orderReports"]} >= {"LIMIT_MAKER"}
    assert client.fetch_balance()["BTC"]["used"] == pytest.approx(0.05)  # once, not twice
    found = client.privateGetOrderList({"orderListId": number})
    assert [one["orderId"] for one in found["orders"]] == [one["orderId"] for one in pair["orders"]]
    by_name = client.privateGetOrderList({"origClientOrderId": pair["listClientOrderId"]})
    assert by_name["orderListId"] == pair["orderListId"]
    assert len(client.privateGetOpenOrderList()) == 1
    assert len(client.fetch_open_orders(SYMBOL)) == 2
    gone = client.privateDeleteOrderList({"symbol": "BTCUSDT", "orderListId": number})
    assert {one["status"] for one in gone["orderReports"]} == {"CANCELED"}
    assert client.privateGetOpenOrderList() == []
    assert client.fetch_balance()["BTC"]["used"] == 0.0
    with pytest.raises(ccxt.OrderNotFound):
        client.privateDeleteOrderList({"symbol": "BTCUSDT", "orderListId": number})
    assert client.privateGetAllOrderList()[-1]["listOrderStatus"] == "ALL_DONE"


def test_who_cancels_one_of_a_pair_cancels_both(client):
    hold(client)
    pair = new_pair(client, 0.9, 1.1)
    client.cancel_order(str(pair["orders"][0]["orderId"]), SYMBOL)
    assert client.fetch_open_orders(SYMBOL) == []
    new_pair(client, 0.9, 1.1)
    assert len(client.cancel_all_orders(SYMBOL)) == 1
    assert client.fetch_open_orders(SYMBOL) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"abovePrice": 10_000}, -2010),
        ({"belowStopPrice": 40_000}, -2010),
        ({"aboveType": "STOP_LOSS", "aboveStopPrice": 30_000, "abovePrice": None}, -1197),
        ({"belowType": "LIMIT_MAKER", "belowPrice": 18_000, "belowStopPrice": None}, -1168),
        ({"belowType": "TAKE_PROFIT"}, -1199),
        ({"side": "BUY"}, -1165),
        ({"aboveType": "MARKET"}, -1158),
        ({"aboveType": None}, -1102),
        ({"abovePrice": None}, -1102),
        ({"belowStopPrice": None}, -1102),
        ({"aboveStopPrice": 30_000}, -1106),
        ({"quantity": "50"}, -2010),
        ({"quantity": "0.0000001"}, -1013),
        ({"symbol": "ETHUSDT"}, -1121),
        ({"aboveClientOrderId": "same", "belowClientOrderId": "same"}, -2010),
    ],
)
def test_a_bad_pair_gets_the_exchange_s_code_and_leaves_nothing(served, client, changes, code):
    hold(client)
    given = {
        "symbol": "BTCUSDT",
        "side": "SELL",
        "quantity": "0.05",
        "aboveType": "LIMIT_MAKER",
        "abovePrice": at(client, 1.1),
        "belowType": "STOP_LOSS",
        "belowStopPrice": at(client, 0.9),
    }
    status, told = served.asked("POST", "/api/v3/orderList/oco", given | changes)
    assert (status, told["code"]) == (400, code), told
    assert client.fetch_open_orders(SYMBOL) == []
    assert client.fetch_balance()["BTC"]["used"] == 0.0


def test_a_missing_part_is_called_as_the_client_calls_it(served, client):
    hold(client)
    given = {"symbol": "BTCUSDT", "side": "SELL", "quantity": "0.05", "price": at(client, 1.1)}
    _, told = served.asked("POST", "/api/v3/order/oco", given)
    assert (
        told["msg"]
        == "Param 'stopPrice' or 'trailingDelta' must be sent, but both were empty/null!"
    )
    more = {"stopPrice": at(client, 0.9), "stopLimitPrice": at(client, 0.9)}
    _, told = served.asked("POST", "/api/v3/order/oco", given | more)
    assert "'stopLimitTimeInForce'" in told["msg"]


def test_only_five_orders_may_wait_for_a_price(client):
    hold(client)
    for _ in range(5):
        client.create_stop_loss_order(SYMBOL, "market", "sell", 0.01, None, at(client, 0.9))
    with pytest.raises(ccxt.ExchangeError, match="MAX_NUM_ALGO_ORDERS"):
        client.create_stop_loss_order(SYMBOL, "market", "sell", 0.01, None, at(client, 0.9))


def test_an_order_is_replaced_by_one_that_waits(client):
    hold(client)
    first = client.create_stop_loss_order(SYMBOL, "market", "sell", 0.05, None, at(client, 0.9))
    second = client.edit_order(
        first["id"],
        SYMBOL,
        "limit",
        "sell",
        0.05,
        at(client, 0.92),
        {"stopPrice": at(client, 0.93)},
    )
    assert client.fetch_order(first["id"], SYMBOL)["status"] == "canceled"
    assert client.fetch_order(second["id"], SYMBOL)["info"]["type"] == "STOP_LOSS_LIMIT"


def test_the_requests_of_stoploss_on_exchange(client):
    """What freqtrade sends to keep a stop behind a position, to move it, and to leave."""
    hold(client)
    kind, stop = "stop_loss_limit", at(client, 0.95)
    limit = client.price_to_precision(SYMBOL, stop * 0.99)
    order = client.create_order(SYMBOL, kind, "sell", 0.1, limit, {"stopPrice": stop})
    found = client.fetch_order(order["id"], SYMBOL)
    assert (found["status"], found["info"]["type"]) == ("open", kind.upper())
    assert (found["stopPrice"], found["price"]) == (stop, float(limit))
    with pytest.raises(ccxt.InsufficientFunds):  # the stop holds the units back
        client.create_market_sell_order(SYMBOL, 0.1)
    gone = client.cancel_order(order["id"], SYMBOL)
    assert {"status", "amount", "fee"} <= gone.keys()
    assert (gone["status"], gone["filled"]) == ("canceled", 0.0)
    moved = client.create_order(SYMBOL, kind, "sell", 0.1, limit, {"stopPrice": at(client, 0.97)})
    assert client.fetch_order(moved["id"], SYMBOL)["stopPrice"] > found["stopPrice"]
    client.cancel_order(moved["id"], SYMBOL)
    assert client.create_market_sell_order(SYMBOL, 0.1)["status"] == "closed"
    hold(client)
    over = at(client, 1.01)
    with pytest.raises(ccxt.OrderImmediatelyFillable):
        client.create_order(SYMBOL, kind, "sell", 0.1, over, {"stopPrice": over})
