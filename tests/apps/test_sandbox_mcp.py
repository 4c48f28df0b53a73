"""A client of the official MCP package, over standard input and output, trades in the sandbox."""

import ccxt
import numpy as np
import pytest

from agent_gym.apps.sandbox import ccxt_options
from agent_gym.core.registry import Ref
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from tests.apps.mcp_samples import ID, SYMBOL, played
from tests.apps.sandbox_samples import market, serving, session_of

FAST, SLOW = 5, 20


def wish(closes, held, cash):
    """Return what a crossing of means would trade now: a side and a quantity, or nothing."""
    up = sum(closes[-FAST:]) / FAST > sum(closes[-SLOW:]) / SLOW
    if up and held == 0.0:
        return "buy", round(0.9 * cash / closes[-1], 3)
    return ("sell", held) if held and not up else None


async def trade_by_tools(gym):
    finished = False
    while not finished:
        bars = await gym.ask("bars", symbol=ID, limit=SLOW + 1)
        own = (await gym.ask("account"))["balances"]
        closes = [row[4] for row in bars["rows"][:-1]]
        wanted = wish(closes, own["BTC"]["free"], own["USDT"]["free"])
        if wanted:
            side, quantity = wanted
            order = await gym.ask(
                "place_order", symbol=ID, side=side.upper(), type="MARKET", quantity=quantity
            )
            assert order["status"] == "FILLED"
        finished = (await gym.ask("step"))["finished"]
    return await gym.ask("score")


def trade_by_ccxt(place):
    client = ccxt.binance(ccxt_options(place.url, *place.key()))
    client.load_markets()
    finished = False
    while not finished:
        closes = [row[4] for row in client.fetch_ohlcv(SYMBOL, "1h", limit=SLOW + 1)][:-1]
        own = client.fetch_balance()
        wanted = wish(closes, own["BTC"]["free"], own["USDT"]["free"])
        if wanted:
            client.create_order(SYMBOL, "market", *wanted)
        finished = place.step()["finished"]


def tape(session):
    """Return every order of an account, and its equity at every bar."""
    tickets = session.floor.tickets.values()
    orders = [(one.wish.kind, one.wish.qty, one.created_ns, one.worth) for one in tickets]
    return orders, [mark.equity for mark in session.floor.marks["ann"]]


def session_with_seed(seed):
    return session_of([market(240, seed=seed)])


@pytest.fixture(scope="module")
def by_tools():
    session = session_with_seed(5)
    with serving(session) as place:
        score = played(place, trade_by_tools)
    return session, score


def test_a_client_earns_what_a_ccxt_bot_earns_with_the_same_orders(by_tools):
    session = session_with_seed(5)
    with serving(session) as place:
        trade_by_ccxt(place)
    orders, equity = tape(by_tools[0])
    assert (orders, equity) == tape(session)
    assert len(orders) > 5
    assert len(set(equity)) > 20


def test_the_score_is_that_of_the_ledger(by_tools):
    session, score = by_tools
    orders, equity = tape(session)
    assert score["equity"] == equity[-1]
    assert score["opening_equity"] == equity[0] == 10_000.0
    assert score["total_return"] == pytest.approx(equity[-1] / 10_000.0 - 1.0, abs=1e-12)
    assert score["bars_played"] == len(equity) - 1
    assert score["fills"] == len(orders)
    assert score["fees"] == pytest.approx(sum(fill.fee for fill in session.floor.fills))
    falls = 1.0 - np.array(equity) / np.maximum.accumulate(equity)
    assert score["max_drawdown"] == pytest.approx(falls.max())
    assert falls.max() > 0.0
    assert score["refused"] == 0


def test_the_same_seed_earns_the_same(by_tools):
    session, other = session_with_seed(5), session_with_seed(6)
    with serving(session) as place:
        assert played(place, trade_by_tools) == by_tools[1]
    assert tape(session) == tape(by_tools[0])
    with serving(other) as place:
        trade_by_ccxt(place)
    assert tape(other)[1] != tape(session)[1]


def test_what_a_backtest_trades_leaves_the_same_equity_to_the_cent():
    session = session_of([market(200, seed=2)], history=1)
    bars = session.floor.venue.tape(SYMBOL).bars
    rule = Ref(use="rules/sma-cross", params={"fast": FAST, "slow": SLOW})
    wanted = BacktestEngine(BacktestConfig(position_size=0.5)).run(bars, rule)
    due = {int(row["bar"]): float(row["qty"]) for row in wanted.fills}
    assert len(due) > 10

    async def send(gym):
        clock = await gym.ask("clock")
        while not clock["finished"]:
            qty = due.get(clock["bar"] + 1)
            if qty is not None:
                side = "BUY" if qty > 0 else "SELL"
                lots = round(abs(qty), 5)  # whole lots, without the noise of a float
                order = await gym.ask("place_order", symbol=ID, side=side, quantity=lots)
                assert order["status"] == "FILLED"
            clock = await gym.ask("step")

    with serving(session) as place:
        played(place, send)
    equity = np.array(tape(session)[1])
    assert np.abs(equity - wanted.equity).max() < 0.005


def test_every_tool_answers_in_short():
    async def look(gym):
        listed = {tool.name: tool for tool in (await gym.session.list_tools()).tools}
        assert all(tool.description for tool in listed.values())
        (traded,) = (await gym.ask("exchange_info"))["symbols"]
        assert traded["symbol"] == ID
        assert traded["filters"]["LOT_SIZE"]["stepSize"] == 0.00001
        price = (await gym.ask("price", symbol=ID))["lastPrice"]
        book = await gym.ask("order_book", symbol=ID, limit=3)
        assert book["bids"][0][0] < price < book["asks"][0][0]
        assert len(book["asks"]) == 3
        days = await gym.ask("bars", symbol=ID, interval="1d", limit=2)
        assert days["rows"][1][0] - days["rows"][0][0] == 86_400_000
        rests = await gym.ask(
            "place_order", symbol=ID, side="BUY", type="LIMIT", quantity="0.01", price=9000
        )
        assert rests["status"] == "NEW"
        mine = {"symbol": ID, "orderId": rests["orderId"]}
        assert (await gym.ask("account"))["balances"]["USDT"]["locked"] == 90.0
        assert [one["orderId"] for one in (await gym.ask("open_orders"))["orders"]] == [
            rests["orderId"]
        ]
        assert (await gym.ask("cancel_order", **mine))["status"] == "CANCELED"
        assert (await gym.ask("order", **mine))["status"] == "CANCELED"
        assert (await gym.ask("open_orders", symbol=ID))["orders"] == []
        bought = await gym.ask("place_order", symbol=ID, side="BUY", quoteOrderQty=1000)
        (fill,) = (await gym.ask("fills", symbol=ID))["fills"]
        assert (fill["qty"], fill["price"]) == (bought["executedQty"], bought["fills"][0]["price"])
        held = {"symbol": ID, "side": "SELL", "quantity": bought["executedQty"]}
        legs = {"aboveType": "LIMIT_MAKER", "belowType": "STOP_LOSS_LIMIT"}
        near = {"abovePrice": 30000, "belowStopPrice": 15000, "belowPrice": 14900}
        said = await gym.refused("place_oco", **held, **legs, **(near | {"belowStopPrice": 29000}))
        assert (said["code"], "between" in said["remedy"]) == (-2010, True)
        pair = await gym.ask("place_oco", **held, **legs, **near)
        assert [one["type"] for one in pair["orders"]] == ["LIMIT_MAKER", "STOP_LOSS_LIMIT"]
        ended = await gym.ask("cancel_order", symbol=ID, orderId=pair["orders"][0]["orderId"])
        assert [one["status"] for one in ended["orders"]] == ["CANCELED"] * 2
        assert (await gym.ask("results")) == {"ready": False, "results": None}
        assert (await gym.ask("leave"))["finished"] is False
        assert (await gym.ask("finish"))["finished"] is True
        asked = {"exchange_info", "price", "order_book", "bars", "place_order", "account", "order"}
        asked |= {"place_oco", "open_orders", "cancel_order", "fills", "results", "leave", "finish"}
        assert listed.keys() == asked | {"clock", "step", "score"}

    with serving(session_of()) as place:
        played(place, look)
