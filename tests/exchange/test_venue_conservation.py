"""Money, units and liquidity at the order venue are conserved, whatever orders are sent."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from wild_orders import ACCOUNTS, COSTS, RULES, SESSIONS, Books, market_sets, play

from agent_gym.exchange.orders import OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue


@settings(deadline=None)
@given(markets=market_sets(), sessions=SESSIONS, costs=COSTS, rules=RULES)
def test_money_is_conserved_for_orders_of_every_kind(markets, sessions, costs, rules):
    venue = Venue(markets, costs, rules, accounts=ACCOUNTS)
    books = Books(markets, rules)
    for _, _, trades in play(venue, markets, sessions):
        books.pay_funding(venue.t)
        for trade in trades:
            books.take(trade)
            event(f"forced {trade.forced}, maker {trade.maker}")
        books.check(venue)


@settings(deadline=None)
@given(markets=market_sets(), sessions=SESSIONS, costs=COSTS, rules=RULES)
def test_every_order_does_what_it_said(markets, sessions, costs, rules):
    venue = Venue(markets, costs, rules, accounts=ACCOUNTS)
    by_symbol = {bars.instrument.symbol: bars for bars in markets}
    sent, filled, fees = {}, defaultdict(float), defaultdict(float)
    for placed, taken, trades in play(venue, markets, sessions):
        t = venue.t
        sent |= dict.fromkeys(placed, t - 1)
        for number in taken:
            assert venue.order(number).cancel_bar <= t + costs.latency_bars
        used = defaultdict(float)
        for trade in trades:
            if trade.forced:
                continue
            number, order = trade.order, venue.order(trade.order).order
            filled[number] += abs(trade.qty)
            fees[number] += trade.fee
            used[trade.symbol] += abs(trade.qty)
            arrived = sent[number] + 1 + costs.latency_bars
            cancelled = venue.order(number).cancel_bar
            assert arrived <= t
            assert cancelled is None or t < cancelled
            since = venue.order(number).hit_bar if order.kind.waits else arrived
            assert not order.immediate or t == since
            assert trade.maker or not order.post_only
            assert order.kind is OrderKind.TARGET or trade.qty * order.qty > 0.0
            if order.kind is OrderKind.LIMIT:
                better = (order.price - trade.price) * np.sign(order.qty)
                assert better >= -1e-9 * order.price
        for symbol, units in used.items():
            cap = np.inf if costs.participation is None else costs.participation
            assert units <= cap * by_symbol[symbol].volume[t] * (1 + 1e-9)
        for number in sent:
            check_order(venue.order(number), filled[number], fees[number])


def check_order(placed, filled, fee):
    order = placed.order
    event(f"{order.kind}: {placed.status}, {placed.reason}")
    assert placed.filled == pytest.approx(filled, rel=1e-9)
    assert placed.fee == pytest.approx(fee, rel=1e-9, abs=1e-9)
    if order.kind is not OrderKind.TARGET:
        assert filled <= abs(order.qty) * (1 + 1e-9)
        if placed.status is OrderStatus.FILLED:
            assert filled == pytest.approx(abs(order.qty), rel=1e-9)
    unfinished = placed.status in (OrderStatus.OPEN, OrderStatus.FILLED)
    assert (placed.reason is None) == unfinished
    if placed.status is OrderStatus.PARTIAL:
        assert filled > 0.0


@settings(deadline=None, max_examples=30)
@given(markets=market_sets(), sessions=SESSIONS, costs=COSTS, rules=RULES, data=st.data())
def test_a_planted_leak_is_seen(markets, sessions, costs, rules, data):
    venue = Venue(markets, costs, rules, accounts=ACCOUNTS)
    books = Books(markets, rules)
    leak = data.draw(st.integers(1, len(venue) - 1))
    for _, _, trades in play(venue, markets, sessions):
        books.pay_funding(venue.t)
        for trade in trades:
            books.take(trade)
        if venue.t == leak:
            books.cash["a"] += 1e-6 * books.volume
            with pytest.raises(AssertionError):
                books.check(venue)
            return
