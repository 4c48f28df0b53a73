"""Orders that belong together: what a partner's fill takes, and how each of them ends."""

import numpy as np
import pytest
from venue_samples import SYMBOL, limit, stop, two_markets

from agent_gym.core import VenueError
from agent_gym.exchange import Costs
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of

TENTH = Costs.free().model_copy(update={"participation": 0.1})


def thin_then_thick(high):
    opened = np.full(4, 100.0)
    low = np.array([95.0, 95.0, 99.0, 99.0])
    bars = bars_of(opened, np.array(high), low, opened, volume=1e6)
    bars.volume.flags.writeable = True
    bars.volume[1] = 50.0
    return bars


def test_a_partner_that_was_reduced_ends_partial():
    venue = Venue([thin_then_thick([111.0, 111.0, 120.0, 120.0])], TENTH)
    venue.submit(limit(20.0, 98.0, group=1))
    number = venue.submit(stop(20.0, 112.0, group=1))
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.reason, placed.filled) == (OrderStatus.OPEN, None, 0.0)
    assert [trade.qty for trade in venue.advance()] == [15.0]
    placed = venue.order(number)
    assert (placed.status, placed.reason) == (OrderStatus.PARTIAL, DropReason.PARTNER_FILLED)
    assert placed.filled == 15.0


def test_a_partner_keeps_only_what_is_worth_a_trade_at_its_own_price():
    bars = thin_then_thick([111.0] * 4)
    bars = type(bars)(
        bars.instrument.model_copy(update={"min_notional": 100.0}),
        bars.period_ns,
        bars.ts,
        *(getattr(bars, name) for name in ("open", "high", "low", "close", "volume")),
    )
    for price, status in ((104.0, OrderStatus.OPEN), (90.0, OrderStatus.CANCELLED)):
        venue = Venue([bars], TENTH)
        venue.submit(limit(6.3, 98.0, group=1))
        kind = OrderKind.STOP if price > 100.0 else OrderKind.LIMIT
        price = 112.0 if kind is OrderKind.STOP else price
        number = venue.submit(Order(SYMBOL, kind, 6.0, price, group=1))
        assert [trade.qty for trade in venue.advance()] == [5.0]
        assert venue.order(number).status is status


def test_an_order_withdrawn_after_it_was_reduced_says_so():
    venue = Venue([thin_then_thick([111.0] * 4)], TENTH)
    venue.submit(limit(20.0, 98.0, group=1))
    number = venue.submit(stop(20.0, 112.0, group=1))
    venue.advance()
    venue.cancel(number)
    venue.advance()
    placed = venue.order(number)
    assert (placed.status, placed.reason) == (OrderStatus.CANCELLED, DropReason.WITHDRAWN)


def test_a_group_over_two_instruments_is_refused():
    markets = two_markets(10)
    venue = Venue(markets, accounts=("a", "b"))
    first, second = venue.symbols
    number = venue.submit(Order(first, OrderKind.LIMIT, 1.0, 50.0, group=3), "a")
    with pytest.raises(VenueError, match="group") as caught:
        venue.submit(Order(second, OrderKind.LIMIT, 1.0, 50.0, group=3), "a")
    assert caught.value.where == second
    assert first in str(caught.value.expected)
    assert [placed.id for placed in venue.open_orders("a")] == [number]
    venue.submit(Order(second, OrderKind.LIMIT, 1.0, 50.0, group=3), "b")
    venue.submit(Order(second, OrderKind.LIMIT, 1.0, 50.0, group=4), "a")
    venue.submit(Order(first, OrderKind.LIMIT, 1.0, 50.0, group=3), "a")


def test_a_group_whose_orders_have_ended_is_free_again():
    venue = Venue(two_markets(10))
    first, second = venue.symbols
    number = venue.submit(Order(first, OrderKind.LIMIT, 1.0, 50.0, group=3))
    venue.cancel(number)
    venue.advance()
    assert venue.submit(Order(second, OrderKind.LIMIT, 1.0, 50.0, group=3)) == 2
