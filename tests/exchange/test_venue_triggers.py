"""Orders that wait for a price: when a bar hits them, what they get, and who is cancelled then."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from venue_samples import SYMBOL, limit, market, one_bar, stop

from agent_gym.core import VenueError
from agent_gym.exchange import Costs
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of, random_bars


def take(qty, price, **more):
    return Order(SYMBOL, OrderKind.TAKE, qty, price, **more)


def stop_limit(qty, trigger, price, **more):
    return Order(SYMBOL, OrderKind.STOP_LIMIT, qty, price, trigger=trigger, **more)


def take_limit(qty, trigger, price, **more):
    return Order(SYMBOL, OrderKind.TAKE_LIMIT, qty, price, trigger=trigger, **more)


def trailing(qty, bps, price=None, kind=OrderKind.STOP):
    return Order(SYMBOL, kind, qty, price, trail_bps=bps)


@pytest.mark.parametrize(
    ("order", "bar", "paid"),
    [
        # A take must be traded through, a stop need only be touched.
        (take(-1, 105), (100, 105, 99, 101), None),
        (take(-1, 105), (100, 105.1, 99, 101), 105),
        (take(-1, 105), (107, 108, 99, 101), 107),
        (take(1, 95), (100, 101, 94.9, 101), 95),
        (take(1, 95), (94, 101, 93, 101), 94),
        # A stop-limit takes at its trigger while that is within its limit.
        (stop_limit(-1, 95, 94), (100, 101, 95, 100), 95),
        (stop_limit(-1, 95, 94), (100, 101, 95.1, 100), None),
        (stop_limit(1, 105, 106), (100, 105, 99, 100), 105),
        # The market opened past its trigger, within the limit, or past the limit, too.
        (stop_limit(-1, 95, 90), (92, 93, 91, 92), 92),
        (stop_limit(-1, 95, 94), (92, 93, 91, 92), None),
        (stop_limit(-1, 95, 94), (92, 94.5, 91, 92), 94),
        # It rests at a limit above its trigger: only the close is surely later than the hit.
        (stop_limit(-1, 95, 97), (100, 101, 94, 96), None),
        (stop_limit(-1, 95, 97), (100, 101, 94, 99), 97),
        (stop_limit(1, 105, 103), (100, 106, 99, 104), None),
        (stop_limit(1, 105, 103), (100, 106, 99, 101), 103),
        # A take-limit beyond its trigger is passed by a bar that goes on.
        (take_limit(-1, 105, 107), (100, 106, 99, 101), None),
        (take_limit(-1, 105, 107), (100, 107.5, 99, 101), 107),
        (take_limit(-1, 105, 104), (100, 106, 99, 101), 105),
        (take_limit(1, 95, 93), (100, 101, 92.9, 101), 93),
        # A trailing stop: from the open, then from the best price of the bars before.
        (trailing(-1, 500), (100, 101, 96, 100), None),
        (trailing(-1, 500), (100, 101, 95, 100), 95),
        (trailing(-1, 500), (100, 101, 94, 100), 95),
        (trailing(1, 500), (100, 105, 99.9, 100), 105),
        # The bar is wide enough for it: it counts as hit, at the worst price it can have had.
        (trailing(-1, 500), (100, 110, 98, 109), 98),
        (trailing(1, 500), (100, 101, 90, 91), 101),
        # It begins to follow where it is told to.
        (trailing(-1, 500, 108), (100, 107, 94, 100), None),
        (trailing(-1, 500, 108, OrderKind.TAKE), (100, 107, 94, 100), None),
        (trailing(-1, 500, 108, OrderKind.TAKE), (100, 108, 94, 100), 102.6),
    ],
)
def test_where_orders_with_a_trigger_fill(order, bar, paid):
    if order.kind is OrderKind.STOP and order.price == 108:
        order = trailing(-1, 500, 90)  # the price must fall to it first
    venue = one_bar(*bar)
    number = venue.submit(order)
    trades = venue.advance()
    if paid is None:
        assert trades == []
        assert venue.order(number).status is OrderStatus.OPEN
        return
    (trade,) = trades
    assert trade.price == pytest.approx(paid)
    assert min(bar) <= trade.price <= max(bar)
    assert venue.order(number).hit_bar == 1


def test_the_level_of_a_trailing_stop_follows_and_never_turns_back():
    price = np.array([100.0, 100, 104, 108, 105, 103, 103])
    bars = bars_of(price, price + 0.5, price - 0.5, price, kind="perpetual")
    venue = Venue([bars], Costs.free())
    number = venue.submit(trailing(-1.0, 500.0))
    assert venue.order(number).level is None
    levels, trades = [], []
    while not venue.finished:
        trades += venue.advance()
        levels.append(venue.order(number).level)
    assert levels == pytest.approx([95.475, 99.275, 103.075, 103.075, 103.075, 103.075])
    assert [trade.price for trade in trades] == [103.0]  # the market opened below it


def test_a_limit_that_was_hit_rests_for_the_bars_that_follow():
    price = np.array([100.0, 100, 96, 96, 98])
    high, low = np.array([100.0, 100, 96.5, 97.5, 98]), np.array([100.0, 95, 94, 94, 96])
    close = np.array([100.0, 96, 96, 96, 98])
    venue = Venue([bars_of(price, high, low, close, kind="perpetual")], Costs.free())
    number = venue.submit(stop_limit(-1.0, 95.0, 97.0))
    assert [len(venue.advance()) for _ in range(2)] == [0, 0]
    assert (venue.order(number).hit_bar, venue.order(number).status) == (1, OrderStatus.OPEN)
    (trade,) = venue.advance()
    assert (trade.price, trade.maker) == (97.0, True)


def test_an_immediate_stop_limit_waits_for_its_hit_and_not_longer():
    flat, low = np.full(5, 100.0), np.array([99.0, 99, 99, 94, 99])
    bars = bars_of(flat, flat, low, np.array([100.0, 100, 100, 94, 100]), kind="perpetual")
    venue = Venue([bars], Costs.free())
    number = venue.submit(stop_limit(-1.0, 95.0, 97.0, immediate=True))
    assert [len(venue.advance()) for _ in range(2)] == [0, 0]
    assert venue.order(number).status is OrderStatus.OPEN
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.reason) == (OrderStatus.EXPIRED, DropReason.BAR_OVER)


@pytest.mark.parametrize("first", ["stop", "profit"])
@pytest.mark.parametrize("kind", ["limit", "take", "take_limit"])
def test_a_bar_that_touches_both_legs_takes_the_stop(first, kind):
    """Whichever was sent first, and whatever the target is: the bar does not say, so the worse."""
    profits = {
        "limit": limit(-1, 105, group=1, exclusive=True),
        "take": take(-1, 105, group=1, exclusive=True),
        "take_limit": take_limit(-1, 105, 105, group=1, exclusive=True),
    }
    legs = {"stop": stop(-1, 95, group=1, exclusive=True), "profit": profits[kind]}
    venue = one_bar(100, 110, 90, 109)
    order = [first, "profit" if first == "stop" else "stop"]
    numbers = {name: venue.submit(legs[name]) for name in order}
    (trade,) = venue.advance()
    assert (trade.order, trade.price) == (numbers["stop"], 95.0)
    gone = venue.order(numbers["profit"])
    assert (gone.status, gone.reason) == (OrderStatus.CANCELLED, DropReason.PARTNER_FILLED)


def test_a_stop_that_was_hit_cancels_its_partner_even_if_its_limit_is_not_met():
    venue = one_bar(92, 106, 91, 92)
    leg = venue.submit(stop_limit(-1, 95, 107, group=1, exclusive=True))
    other = venue.submit(limit(-1, 105, group=1, exclusive=True))
    assert venue.advance() == []
    assert venue.order(leg).status is OrderStatus.OPEN
    assert venue.order(other).status is OrderStatus.CANCELLED


def test_any_fill_ends_an_exclusive_partner():
    price = np.full(4, 100.0)
    high = np.full(4, 106.0)
    bars = bars_of(price, high, price - 1, price, volume=10.0, kind="perpetual")
    venue = Venue([bars], Costs.free().model_copy(update={"participation": 0.1}))
    first = venue.submit(limit(-3, 105, group=1, exclusive=True))
    second = venue.submit(stop(-3, 95, group=1, exclusive=True))
    (trade,) = venue.advance()
    assert trade.qty == pytest.approx(-1.0)
    assert venue.order(first).status is OrderStatus.OPEN
    assert venue.order(second).status is OrderStatus.CANCELLED


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (Order(SYMBOL, OrderKind.TAKE, 1.0), "need a price"),
        (Order(SYMBOL, OrderKind.STOP_LIMIT, 1.0, 95.0), "needs a trigger"),
        (Order(SYMBOL, OrderKind.LIMIT, 1.0, 95.0, trigger=95.0), "others have none"),
        (stop_limit(1.0, float("nan"), 95.0), "positive"),
        (stop_limit(1.0, -1.0, 95.0), "positive"),
        (limit(1.0, 95.0, trail_bps=10.0), "trail"),
        (trailing(1.0, -5.0), "trail_bps"),
        (trailing(1.0, 10_000.0), "trail_bps"),
        (market(1.0, exclusive=True), "needs a group"),
    ],
)
def test_orders_that_make_no_sense_are_refused(order, said):
    with pytest.raises(VenueError, match=said):
        one_bar(100, 101, 99, 100).submit(order)


@given(
    seed=st.integers(0, 300),
    qty=st.sampled_from([-1.0, 1.0]),
    distance=st.floats(0.002, 0.05),
    offset=st.floats(-0.01, 0.01),
    takes=st.booleans(),
)
def test_a_trigger_is_never_better_than_knowing_it_before(seed, qty, distance, offset, takes):
    """An order with a trigger and a limit pays no less than the limit alone, at its own price."""
    bars = random_bars(40, seed, sigma=0.02)
    away = distance if (qty > 0) != takes else -distance
    trigger = float(bars.close[0]) * (1 + away)
    price = trigger * (1 + offset)
    kind = OrderKind.TAKE_LIMIT if takes else OrderKind.STOP_LIMIT
    venue = Venue([bars], Costs.free())
    venue.submit(Order(SYMBOL, kind, qty, price, trigger=trigger))
    for trade in (one for _ in range(39) for one in venue.advance()):
        assert qty * (trade.price - price) <= 1e-9
        hit = venue.order(trade.order).hit_bar
        reached = bars.high if (qty > 0) != takes else -bars.low
        level = trigger if (qty > 0) != takes else -trigger
        assert (reached[1 : hit + 1] >= level).any()
        assert not (reached[1:hit] > level).any()
