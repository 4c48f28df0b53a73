"""Positions entered within a bar: liquidated at prices that came after them, and all counted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from venue_samples import SYMBOL, limit, market, stop
from wild_orders import ACCOUNTS, COSTS, RULES, SESSIONS, market_sets, play

from agent_gym.exchange import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of, renamed

RULES_50 = AccountRules(max_leverage=50.0)
KEEP = RULES_50.maintenance_margin


def market_of(o, h, low, c, symbol=SYMBOL, before=100.0):
    columns = ([before, o, c], [before, h, c], [before, low, c], [before, c, c])
    return renamed(bars_of(*map(np.array, columns), kind="perpetual"), symbol)


def mirrored(bars):
    """Return the market with prices turned over at 100."""
    turned = {"open": 200 - bars.open, "high": 200 - bars.low, "low": 200 - bars.high}
    return replace(bars, **turned, close=200 - bars.close)


def dry_price(cash, qty, entry):
    return -(cash - qty * entry) / (qty - KEEP * abs(qty))


def test_a_position_that_a_stop_opened_is_not_liquidated_at_the_open():
    venue = Venue([market_of(100.0, 104.0, 99.9, 104.0)], Costs.free(), RULES_50)
    venue.submit(stop(4000.0, 103.0))
    opened, forced = venue.advance()
    assert (opened.price, forced.forced) == (103.0, True)
    assert forced.price == pytest.approx(dry_price(10_000.0, 4000.0, 103.0))
    assert venue.account().insurance == 0.0


def test_the_same_for_a_short():
    bars = mirrored(market_of(100.0, 104.0, 99.9, 104.0))
    venue = Venue([bars], Costs.free(), RULES_50)
    venue.submit(stop(-4000.0, 97.0))
    opened, forced = venue.advance()
    assert (opened.price, forced.forced) == (97.0, True)
    assert forced.price == pytest.approx(dry_price(10_000.0, -4000.0, 97.0))
    assert venue.account().insurance == 0.0


def test_a_position_that_a_stop_enlarged_or_turned_is_liquidated_below_its_entry():
    for first, second in ((100.0, 4000.0), (-100.0, 4100.0)):
        venue = Venue([market_of(100.0, 104.0, 99.9, 104.0)], Costs.free(), RULES_50)
        venue.submit(market(first))
        venue.submit(stop(second, 103.0))
        *_, forced = venue.advance()
        cash = 10_000.0 - first * 100.0 - second * 103.0
        held = first + second
        assert forced.forced
        assert forced.price == pytest.approx(-cash / (held * (1.0 - KEEP)))
        assert forced.price > 100.0


def test_a_position_held_before_the_bar_is_still_closed_at_a_gap():
    price = np.array([100.0, 100.0, 95.0, 95.0])
    bars = bars_of(price, price, price, price, kind="perpetual")
    venue = Venue([bars], Costs.free(), RULES_50)
    venue.submit(market(4000.0))
    venue.advance()
    (forced,) = venue.advance()
    assert (forced.price, forced.forced) == (95.0, True)


def test_the_next_bar_knows_nothing_of_an_entry():
    opened = np.array([100.0, 102.5, 90.0, 90.0])
    high, low = np.maximum(opened, [100.0, 103.0, 90.0, 90.0]), opened
    close = np.array([100.0, 103.0, 90.0, 90.0])
    bars = bars_of(opened, high, low, close, kind="perpetual")
    venue = Venue([bars], Costs.free(), RULES_50)
    venue.submit(stop(1000.0, 103.0))
    assert [trade.forced for trade in venue.advance()] == [False]
    (forced,) = venue.advance()  # it ran dry at 93.5: the market gapped past that
    assert (forced.price, forced.forced) == (90.0, True)


def test_several_positions_are_closed_on_the_way_from_their_entries():
    first = market_of(100.0, 104.0, 99.0, 104.0)
    second = market_of(100.0, 100.0, 98.0, 100.0, symbol="ETH/USDT")
    venue = Venue([second, first], Costs.free(), RULES_50)
    venue.submit(stop(3000.0, 103.0))
    venue.submit(Order("ETH/USDT", OrderKind.MARKET, 500.0))
    other, opened, two, one = venue.advance()
    assert (opened.price, other.price, one.forced, two.forced) == (103.0, 100.0, True, True)
    assert one.price > 100.0
    way = (103.0 - one.price) / (103.0 - 99.0)
    assert two.price == pytest.approx(100.0 - way * 2.0)
    left = 10_000.0 + 3000.0 * (one.price - 103.0) + 500.0 * (two.price - 100.0)
    assert left == pytest.approx(KEEP * (3000.0 * one.price + 500.0 * two.price))
    assert venue.account().insurance == 0.0


def test_no_unit_that_a_limit_bought_is_closed_above_it():
    first = market_of(100.0, 100.0, 89.5, 95.0)
    second = market_of(100.0, 100.0, 70.0, 75.0, symbol="ETH/USDT")
    venue = Venue([first, second], Costs.free(), RULES_50)
    venue.submit(limit(1000.0, 90.0))
    venue.submit(Order("ETH/USDT", OrderKind.MARKET, 1000.0))
    opened, _, one, _ = venue.advance()
    assert opened.price == 90.0
    assert one.forced
    assert 89.5 <= one.price <= 90.0


def test_turnover_counts_liquidations():
    venue = Venue([market_of(100.0, 104.0, 99.9, 104.0)], Costs.free(), RULES_50)
    venue.submit(stop(4000.0, 103.0))
    trades = venue.advance()
    assert len(trades) == 2
    worth = sum(abs(trade.qty) * trade.price for trade in trades)
    assert venue.account().turnover == pytest.approx(worth)


@settings(deadline=None, max_examples=40)
@given(markets=market_sets(), sessions=SESSIONS, costs=COSTS, rules=RULES)
def test_turnover_is_the_worth_of_all_trades(markets, sessions, costs, rules):
    venue = Venue(markets, costs, rules, accounts=ACCOUNTS)
    worth = dict.fromkeys(ACCOUNTS, 0.0)
    for _, _, trades in play(venue, markets, sessions):
        for trade in trades:
            worth[trade.account] += abs(trade.qty) * trade.price
        for name in ACCOUNTS:
            assert venue.account(name).turnover == pytest.approx(worth[name])
