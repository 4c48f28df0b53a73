"""Ways in which bar venues flatter: each of these once paid, and must not again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from venue_samples import ORDERS, SYMBOL, limit, market, one_bar, prices_of, stop, two_markets

from agent_gym.exchange import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue
from agent_gym.markets import Bars, Instrument
from tests.samples import START_NS, bars_of, flat_bars, random_bars


def test_a_stop_that_was_hit_goes_on_as_a_market_order():
    price = np.array([100.0, 100, 94, 100, 100, 100])
    low = np.array([100.0, 100, 90, 100, 100, 100])
    bars = bars_of(price, price, low, price, volume=10.0, kind="perpetual")
    venue = Venue([bars], Costs.free().model_copy(update={"participation": 0.2}))
    venue.submit(Order(SYMBOL, OrderKind.TARGET, 2.0))
    venue.submit(stop(-4.0, 95.0))
    sold = [trade.qty for _ in range(5) for trade in venue.advance() if trade.qty < 0]
    assert sold == [-2.0, -2.0]


def test_a_partial_fill_reduces_its_partner_and_does_not_cancel_it():
    opened = np.full(6, 100.0)
    high = np.array([100.0, 100, 106, 100, 100, 100])
    low = np.array([100.0, 100, 100, 90, 100, 100])
    bars = bars_of(opened, high, low, opened, volume=100.0, kind="perpetual")
    venue = Venue([bars], Costs.free().model_copy(update={"participation": 0.5}))
    venue.submit(Order(SYMBOL, OrderKind.TARGET, 40.0))
    venue.advance()
    venue._terms[:, 4] = 0.01
    venue.submit(limit(-40, 105.0, reduce_only=True, group=3))
    guard = venue.submit(stop(-40, 95.0, reduce_only=True, group=3))
    assert [trade.qty for trade in venue.advance()] == [-1.0]
    assert venue.order(guard).status is OrderStatus.OPEN
    venue._terms[:, 4] = 0.5
    assert [trade.qty for trade in venue.advance()] == [-39.0]
    assert venue.account().positions[SYMBOL] == 0.0


def test_slicing_an_order_saves_no_impact():
    def paid(slices):
        bars = random_bars(40, 3, volume=1000.0)
        venue = Venue(
            [bars], Costs.free().model_copy(update={"impact": 1.0}), AccountRules(cash=1e6)
        )
        for _ in range(30):
            venue.advance()
        for _ in range(slices):
            venue.submit(market(100.0 / slices))
        return sum(trade.qty * trade.price for trade in venue.advance())

    assert paid(50) == pytest.approx(paid(1), rel=1e-9)


def test_a_limit_at_the_open_needs_more_than_a_touch_and_pays_the_spread():
    venue = one_bar(100, 101, 100, 100)
    venue.submit(limit(1, 100.0))
    assert venue.advance() == []
    bars = flat_bars(5)
    venue = Venue([bars], Costs.free().model_copy(update={"half_spread_bps": 50.0}))
    venue.submit(limit(1, 100.2))
    assert [trade.maker for trade in venue.advance()] == [True]  # taking would have cost 100.5
    venue.submit(limit(1, 101.0))
    (taken,) = venue.advance()
    assert (taken.maker, taken.price) == (False, pytest.approx(100.5))


@given(orders=ORDERS, seed=st.integers(0, 500))
def test_makers_fill_within_the_bar_and_nobody_flat_owes_money(orders, seed):
    markets = two_markets(30, seed, kind="spot", sigma=0.1)
    venue = Venue(markets, Costs(participation=0.01), AccountRules(max_leverage=3.0))
    queue = list(orders)
    while not venue.finished:
        for _, what, kind, qty, level, reduce_only, pair in queue[:3]:
            group = pair and 2 * pair + what  # a group has one instrument
            price = markets[what].close[venue.t] * level
            reduce_only &= kind is not OrderKind.TARGET
            ways = {"reduce_only": reduce_only, "group": group} | prices_of(kind, price)
            venue.submit(Order(venue.symbols[what], kind, qty, **ways))
        queue = queue[3:]
        for trade in venue.advance():
            bars = markets[venue.symbols.index(trade.symbol)]
            if trade.maker:
                assert bars.low[venue.t] <= trade.price <= bars.high[venue.t]
        view = venue.account()
        if not any(view.positions.values()):
            assert view.equity >= 0.0


def test_insurance_pays_losses_of_a_portfolio_and_not_its_fees():
    n, falls = 5, np.array([100.0, 100, 100, 20, 20])
    rises = np.array([100.0, 100, 100, 101, 101])
    markets = [
        Bars(
            Instrument(symbol=name, kind="perpetual"),
            3_600_000_000_000,
            START_NS + 3_600_000_000_000 * np.arange(n),
            *([price] * 4),
            np.full(n, 1e9),
            {"funding": np.zeros(n)},
        )
        for name, price in (("A/USDT", rises), ("B/USDT", falls))
    ]
    venue = Venue(markets, Costs.free(), AccountRules(cash=100.0, max_leverage=4.0))
    for name in venue.symbols:
        venue.submit(Order(name, OrderKind.TARGET, 2.0))
    for _ in range(4):
        venue.advance()
    view = venue.account()
    assert view.equity == 0.0
    assert view.insurance == pytest.approx(2 * 80 - 2 - 100)
    assert view.fees == 0.0
