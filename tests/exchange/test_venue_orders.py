"""What becomes of an order: cancels on their way, targets reached in part, the smallest trade."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from venue_samples import SYMBOL, limit, market, one_bar, stop

from agent_gym.core import VenueError
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of, flat_bars, random_bars


def target(qty):
    return Order(SYMBOL, OrderKind.TARGET, qty)


def free(**changes):
    return Costs.free().model_copy(update=changes)


def with_instrument(bars, **changes):
    grid = bars.instrument.model_copy(update=changes)
    columns = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    return type(bars)(grid, bars.period_ns, bars.ts, *columns, bars.extra)


def falling(n=12):
    price = 100.0 - np.arange(float(n))
    return bars_of(price, price + 0.5, price - 0.5, price, kind="perpetual")


@pytest.mark.parametrize("latency", [0, 1, 2, 3])
def test_a_cancel_acts_when_an_order_sent_then_would_arrive(latency):
    # The market opens below the limit in bar 6; it rests from bar 1 + latency on.
    for sent in range(6):
        venue = Venue([falling()], free(latency_bars=latency))
        number = venue.submit(limit(1.0, 94.25))
        for _ in range(sent):
            venue.advance()
        assert venue.cancel(number)
        assert venue.order(number).cancel_bar == sent + 1 + latency
        trades = []
        while not venue.finished:
            trades += venue.advance()
        placed = venue.order(number)
        if sent + 1 + latency <= 6:
            assert (trades, placed.status) == ([], OrderStatus.CANCELLED)
            assert placed.reason is DropReason.WITHDRAWN
        else:  # it was filled before the cancel came in
            assert [trade.order for trade in trades] == [number]
            assert (placed.status, placed.reason) == (OrderStatus.FILLED, None)


def test_an_order_is_open_until_its_cancel_arrives():
    venue = Venue([flat_bars(10)], free(latency_bars=2))
    number = venue.submit(limit(1.0, 50.0))
    venue.advance()
    assert venue.cancel(number)
    venue.advance()
    assert venue.cancel(number)  # asking again does not postpone it
    assert venue.order(number).cancel_bar == 4
    assert [placed.id for placed in venue.open_orders()] == [number]
    venue.advance()
    assert venue.order(number).status is OrderStatus.OPEN
    venue.advance()
    assert (venue.order(number).status, venue.open_orders()) == (OrderStatus.CANCELLED, [])
    assert not venue.cancel(number)
    with pytest.raises(VenueError, match="no such order"):
        venue.cancel(number + 1)


def test_a_cancelled_partial_fill_keeps_what_it_filled():
    venue = Venue([flat_bars(10, volume=10.0)], free(participation=0.1, latency_bars=1))
    number = venue.submit(market(5.0))
    venue.advance()
    venue.advance()
    assert venue.cancel(number)
    trades = venue.advance()
    assert [trade.qty for trade in trades] == [1.0]
    assert venue.advance() == []
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.CANCELLED, 2.0)
    assert venue.account().positions[SYMBOL] == 2.0


def test_a_cancelled_target_lets_the_older_one_go_on():
    venue = Venue([flat_bars(8, volume=10.0)], free(participation=0.1))
    venue.submit(target(3.0))
    venue.cancel(venue.submit(target(-3.0)))
    assert [trade.qty for _ in range(4) for trade in venue.advance()] == [1.0, 1.0, 1.0]


def test_a_target_that_cannot_be_afforded_is_partial_and_says_why():
    venue = Venue([flat_bars(6)], free(), AccountRules(cash=1000.0))
    number = venue.submit(target(25.0))
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.PARTIAL, 10.0)
    assert placed.reason is DropReason.UNAFFORDABLE
    again = venue.submit(target(25.0))
    venue.advance()
    placed = venue.order(again)
    assert (placed.status, placed.filled) == (OrderStatus.CANCELLED, 0.0)
    assert placed.reason is DropReason.UNAFFORDABLE
    assert venue.open_orders() == []


def test_a_short_target_where_shorts_are_forbidden_is_partial():
    venue = Venue([flat_bars(6)], free())
    venue.submit(target(3.0))
    venue.advance()
    number = venue.submit(target(-5.0))
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.PARTIAL, 3.0)
    assert placed.reason is DropReason.NO_SHORTS
    assert venue.account().positions[SYMBOL] == 0.0


def test_a_target_that_was_reached_is_filled_also_if_nothing_had_to_trade():
    venue = Venue([flat_bars(6)], free())
    for wanted in (3.0, 3.0, 0.0):
        number = venue.submit(target(wanted))
        venue.advance()
        placed = venue.order(number)
        assert (placed.status, placed.reason) == (OrderStatus.FILLED, None)


@given(
    wish=st.floats(-60.0, 60.0),
    cash=st.sampled_from([100.0, 1000.0, 1e6]),
    kind=st.sampled_from(["spot", "perpetual"]),
    participation=st.sampled_from([None, 1e-6]),
    seed=st.integers(0, 50),
)
def test_filled_means_that_the_target_is_held(wish, cash, kind, participation, seed):
    bars = random_bars(12, seed, kind=kind)
    venue = Venue([bars], Costs(participation=participation), AccountRules(cash=cash))
    number = venue.submit(target(wish))
    traded = 0.0
    for _ in range(5):
        traded += sum(abs(trade.qty) for trade in venue.advance() if not trade.forced)
        placed, held = venue.order(number), venue.account().positions[SYMBOL]
        assert placed.filled == pytest.approx(traded)
        ended = placed.status in (OrderStatus.PARTIAL, OrderStatus.CANCELLED)
        assert (placed.reason is not None) == ended
        if placed.status is OrderStatus.FILLED:
            assert held == wish
        if placed.status is OrderStatus.PARTIAL:
            assert 0.0 < placed.filled < abs(wish)


def test_a_market_order_whose_rest_is_dropped_is_partial():
    venue = Venue([flat_bars(6)], free(), AccountRules(cash=1000.0))
    number = venue.submit(market(25.0))
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.PARTIAL, 10.0)
    assert placed.reason is DropReason.UNAFFORDABLE
    number = venue.submit(market(-15.0, reduce_only=True))
    venue.advance()
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.PARTIAL, 10.0)
    assert placed.reason is DropReason.NOTHING_TO_REDUCE


def test_a_rest_below_the_smallest_trade_is_dropped_and_not_called_filled():
    bars = with_instrument(flat_bars(6, volume=10.0), min_notional=150.0)
    venue = Venue([bars], free(participation=0.4))
    number = venue.submit(market(5.0))
    assert [trade.qty for trade in venue.advance()] == [4.0]
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.PARTIAL, 4.0)
    assert placed.reason is DropReason.TOO_SMALL


def holding_little(price_after=10.0, **changes):
    """Return a venue whose account holds 2 units, worth less than the smallest trade of 50."""
    price = np.array([100.0, 100.0, *[price_after] * 6])
    bars = bars_of(price, price + 1.0, price - 1.0, price, volume=1e6, kind="perpetual")
    bars = with_instrument(bars, min_notional=50.0, **changes)
    venue = Venue([bars], free())
    venue.submit(target(2.0))
    venue.advance()
    assert venue.account().positions[SYMBOL] == 2.0
    return venue


@pytest.mark.parametrize(
    "close",
    [
        target(0.0),
        market(-2.0, reduce_only=True),
        market(-9.0, reduce_only=True),
        limit(-2.0, 10.5, reduce_only=True),
        stop(-2.0, 9.5, reduce_only=True),
    ],
)
def test_a_position_below_the_smallest_trade_can_be_closed(close):
    venue = holding_little()
    venue.advance()
    venue.submit(close)
    assert [trade.qty for trade in venue.advance()] == [-2.0]
    assert venue.account().positions[SYMBOL] == 0.0


@pytest.mark.parametrize(
    "other", [target(1.0), market(-1.0, reduce_only=True), market(-2.0), market(2.0)]
)
def test_the_smallest_trade_binds_what_does_not_close(other):
    venue = holding_little()
    venue.advance()
    venue.submit(other)
    assert venue.advance() == []


def test_an_order_below_the_smallest_trade_is_refused_unless_it_reduces():
    venue = holding_little()
    with pytest.raises(VenueError, match="reduce-only"):
        venue.submit(limit(-2.0, 10.5))
    assert venue.submit(limit(-2.0, 10.5, reduce_only=True)) == 2


def test_closing_in_slices_ends_flat():
    bars = with_instrument(flat_bars(9, volume=10.0, kind="perpetual"), min_notional=110.0)
    for close in (target(0.0), market(-3.7, reduce_only=True), market(-7.0, reduce_only=True)):
        venue = Venue([bars], free(participation=0.4))
        venue.submit(target(3.7))
        venue.advance()
        venue._terms[:, 4] = 0.1  # one unit a bar, worth 100
        venue.submit(close)
        sold = [trade.qty for _ in range(5) for trade in venue.advance()]
        assert sold == pytest.approx([-1.0, -1.0, -1.0, -0.7])
        assert venue.account().positions[SYMBOL] == 0.0
    wish = np.where(np.arange(9) < 2, 0.037, 0.0)
    series = run_series(bars, wish, free(participation=0.1))
    assert series.position[-1] == 0.0


def test_a_guard_outlives_a_partner_that_leaves_little_to_close():
    venue = holding_little(60.0)
    venue.advance()
    venue._terms[:, 4] = 1.5e-6  # one and a half units a bar
    venue.submit(limit(-2.0, 60.5, reduce_only=True, group=4))
    guard = venue.submit(stop(-2.0, 20.0, reduce_only=True, group=4))
    assert [trade.qty for trade in venue.advance()] == [-1.5]
    assert venue.order(guard).status is OrderStatus.OPEN  # half a unit, worth 30, is still held
    assert [trade.qty for trade in venue.advance()] == [-0.5]
    placed = venue.order(guard)
    assert (placed.status, placed.reason) == (OrderStatus.CANCELLED, DropReason.PARTNER_FILLED)


def test_each_end_has_its_reason():
    venue = one_bar(101, 103, 99, 102)
    taker = venue.submit(limit(1, 105.0, post_only=True))
    brief = venue.submit(limit(1, 90.0, immediate=True))
    old, new = venue.submit(target(1.0)), venue.submit(target(2.0))
    venue.advance()
    found = {number: venue.order(number).reason for number in (taker, brief, old, new)}
    assert found == {
        taker: DropReason.WOULD_TAKE,
        brief: DropReason.BAR_OVER,
        old: DropReason.REPLACED,
        new: None,
    }


def test_more_orders_than_there_was_room_for():
    venue = Venue([flat_bars(10)], free())
    numbers = [venue.submit(limit(1.0, 1 + k / 20)) for k in range(1000)]
    venue.advance()
    last = venue.submit(market(1.0))
    assert [trade.order for trade in venue.advance()] == [last]
    assert [placed.id for placed in venue.open_orders()] == numbers
    assert venue.order(numbers[7]).order == limit(1.0, 1 + 7 / 20)


def test_a_copy_of_a_venue_goes_its_own_way():
    bars = random_bars(40, 4)
    first = Venue([bars], Costs(), accounts=("main", "other"))
    for k in range(70):
        first.submit(limit(1.0, 60.0 + k), ("main", "other")[k % 2])
    first.advance()
    second = copy.deepcopy(first)
    second.submit(market(5.0))
    seconds = [second.advance() for _ in range(10)]
    before = copy.deepcopy(first)
    firsts = [first.advance() for _ in range(10)]
    assert firsts == [before.advance() for _ in range(10)] != seconds
    assert second.account().positions != first.account().positions == before.account().positions
