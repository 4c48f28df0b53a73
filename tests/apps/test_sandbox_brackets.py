"""Brackets: a whole session of them is the venue's, and streams tell how each one goes."""

import asyncio

import ccxt.async_support
import ccxt.pro
import numpy as np

from agent_gym.apps.sandbox import ccxt_options
from agent_gym.exchange.costs import AccountRules
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from tests.apps.sandbox_samples import market, serving, session_of
from tests.apps.test_sandbox_triggers import SYMBOL, client_of, hold, new_pair


def bracket(place, client, low=0.98, high=1.02):
    """Hold a bracket at all times; returns the pairs that were sent."""
    sent = []
    client.load_markets()
    while not place.session.over:
        if not client.privateGetOpenOrderList():
            hold(client)
            sent.append(new_pair(client, low, high, "0.1"))
        place.step()
    return sent


def test_a_session_of_brackets_is_the_venue_to_the_last_bit():
    """The same orders sent to a venue without a sandbox leave the same account, twice."""
    ends = []
    for _ in range(2):
        session = session_of([market(110, seed=4)], accounts=("ann",))
        with serving(session) as place:
            sent = bracket(place, client_of(place))
        assert len(sent) > 3
        floor = session.floor
        ends.append([mark.equity for mark in floor.marks["ann"]])
        kinds = [one.wish.kind for one in floor.tickets.values() if one.fills]
        assert {OrderKind.STOP, OrderKind.LIMIT} <= set(kinds)
        assert floor.revised == 0
    assert ends[0] == ends[1]
    rules = AccountRules(cash=10_000.0, allow_short=False)
    venue = Venue([floor.venue.tape(SYMBOL).bars], floor.venue.costs, rules, ("ann",))
    while venue.t < floor.first:
        venue.advance()
    due = sorted(floor.tickets.values(), key=lambda one: one.id)
    equity = [venue.account("ann").equity]
    while not venue.finished:
        while due and due[0].created_ns <= venue.now:
            wish, group = due[0].wish, due.pop(0).list_id or 0
            order = Order(
                SYMBOL,
                wish.kind,
                wish.qty,
                wish.price,
                post_only=wish.post_only,
                immediate=wish.kind is OrderKind.MARKET,
                group=group,
                exclusive=group > 0,
            )
            venue.submit(order, "ann")
        venue.advance()
        equity.append(venue.account("ann").equity)
    assert equity == ends[0]
    assert len(set(np.round(equity, 6))) > 20


async def until(ready):
    for _ in range(3_000):
        if ready():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came")


def test_streams_tell_of_pairs_and_of_stops():
    async def watch(place):
        session, seen, told = place.session, [], []
        client = ccxt.pro.binance(ccxt_options(place.url, *place.key()) | {"newUpdates": True})
        plain = client_of(place)
        real = session.feed.tell
        session.feed.tell = lambda account, event: (told.append(event), real(account, event))

        async def collect():
            while True:
                seen.extend(dict(one) for one in await client.watch_orders(SYMBOL))

        try:
            await client.load_markets()
            await asyncio.to_thread(plain.load_markets)
            collecting = asyncio.create_task(collect())
            await until(lambda: any(one.accounts for one in session.feed.listeners))
            bought = await client.create_order_ws(SYMBOL, "market", "buy", 0.1)
            stop, limit = (
                client.price_to_precision(SYMBOL, bought["average"] * factor)
                for factor in (0.995, 0.98)
            )
            params = {"stopPrice": stop}
            order = await client.create_order_ws(SYMBOL, "limit", "sell", 0.05, limit, params)
            pair = await asyncio.to_thread(new_pair, plain, 0.99, 1.01)
            ticket = session.floor.tickets[int(order["id"])]
            sent = session.floor.pairs[int(pair["orderListId"])]
            while (ticket.status.live or sent.live) and not session.over:
                await asyncio.to_thread(place.step)
            await until(
                lambda: any((one["id"], one["status"]) == (order["id"], "closed") for one in seen)
            )
            collecting.cancel()
            return told, [one for one in seen if one["id"] == order["id"]]
        finally:
            await client.close()

    with serving(session_of([market(300, seed=4)])) as place:
        told, seen = asyncio.run(watch(place))
    lists = [event for event in told if event["e"] == "listStatus"]
    assert [(one["l"], one["L"]) for one in lists] == [
        ("EXEC_STARTED", "EXECUTING"),
        ("ALL_DONE", "ALL_DONE"),
    ]
    ids = {one["i"] for one in lists[0]["O"]}
    ends = {event["i"]: event["X"] for event in told if event.get("i") in ids}
    assert sorted(ends.values()) == ["EXPIRED", "FILLED"]
    reports = [event for event in told if event.get("i") == int(seen[0]["id"])]
    assert [(one["x"], one["w"]) for one in reports] == [
        ("NEW", False),
        ("NEW", True),
        ("TRADE", False),
    ]
    assert {one["status"] for one in seen} == {"open", "closed"}


def test_the_async_client_sends_a_pair():
    async def trade(place):
        client = ccxt.async_support.binance(ccxt_options(place.url, *place.key("ben")))
        try:
            await client.load_markets()
            order = await client.create_market_buy_order(SYMBOL, 0.05)
            prices = [client.price_to_precision(SYMBOL, order["average"] * f) for f in (0.9, 1.1)]
            given = {"symbol": "BTCUSDT", "side": "SELL", "quantity": "0.05"}
            given |= {"stopPrice": prices[0], "price": prices[1]}
            await client.privatePostOrderOco(given)
            return await client.fetch_open_orders(SYMBOL)
        finally:
            await client.close()

    with serving(session_of()) as place:
        sent = asyncio.run(trade(place))
    assert {one["info"]["type"] for one in sent} == {"STOP_LOSS", "LIMIT_MAKER"}
