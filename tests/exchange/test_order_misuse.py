"""What is no order at all is refused with an error that says where, what was found and expected."""

from decimal import Decimal

import numpy as np
import pytest
from venue_samples import SYMBOL, limit, market

from agent_gym.core import ConfigError, VenueError
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from tests.samples import flat_bars

KIND = OrderKind.MARKET


@pytest.mark.parametrize(
    "order",
    [
        Order(SYMBOL, "market", 1.0),
        Order(SYMBOL, None, 1.0),
        Order(SYMBOL, KIND, None),
        Order(SYMBOL, KIND, "1"),
        Order(SYMBOL, KIND, True),
        Order(SYMBOL, KIND, Decimal("1.5")),
        Order(SYMBOL, KIND, 10**400),
        Order(SYMBOL, KIND, np.ones(2)),
        Order(SYMBOL, OrderKind.LIMIT, 1.0, "100"),
        Order(SYMBOL, OrderKind.LIMIT, 1.0, 10**400),
        Order(SYMBOL, KIND, 1.0, group=2**70),
        Order(SYMBOL, KIND, 1.0, group=-1),
        Order(SYMBOL, KIND, 1.0, group=1.5),
        Order(SYMBOL, KIND, 1.0, group=None),
        Order(SYMBOL, KIND, 1.0, reduce_only="yes"),
        Order(SYMBOL, OrderKind.LIMIT, 1.0, 90.0, post_only=None),
        Order(SYMBOL, KIND, 1.0, immediate=2),
    ],
    ids=repr,
)
def test_wrong_types_are_refused(order):
    venue = Venue([flat_bars(4)])
    with pytest.raises(VenueError) as caught:
        venue.submit(order)
    error = caught.value
    assert SYMBOL in error.where
    assert error.found is not None
    assert error.expected is not None
    assert venue.open_orders() == []
    assert venue.submit(limit(1.0, 50.0)) == 1


@pytest.mark.parametrize("thing", [None, "order", {"symbol": SYMBOL}])
def test_what_is_no_order_is_refused(thing):
    with pytest.raises(VenueError, match="Order"):
        Venue([flat_bars(4)]).submit(thing)


@pytest.mark.parametrize("name", [None, 5, ["BTC/USDT"]])
def test_names_that_are_no_text_are_unknown(name):
    venue = Venue([flat_bars(4)])
    with pytest.raises(ConfigError, match="instrument"):
        venue.submit(Order(name, KIND, 1.0))
    with pytest.raises(ConfigError, match="account"):
        venue.submit(market(1.0), name)


@pytest.mark.parametrize("number", ["x", None, 1.0, 1.5, True, 0, 2, 2**70])
def test_a_number_that_is_no_order_is_refused(number):
    venue = Venue([flat_bars(4)])
    venue.submit(limit(1.0, 50.0))
    for ask in (venue.cancel, venue.order):
        with pytest.raises(VenueError, match="no such order") as caught:
            ask(number)
        error = caught.value
        assert None not in (error.where, error.found, error.expected)


def test_numbers_of_numpy_are_numbers():
    venue = Venue([flat_bars(4)])
    order = Order(SYMBOL, OrderKind.LIMIT, np.float32(1.0), np.int64(50), group=np.int64(2))
    assert venue.cancel(np.int64(venue.submit(order)))
    assert venue.submit(Order(SYMBOL, KIND, 1, reduce_only=np.True_)) == 2
