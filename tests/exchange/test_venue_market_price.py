"""Nobody trades beyond the market: what stands there takes, and no price lies outside the bar."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from venue_samples import SYMBOL, limit, market, one_bar, stop
from wild_orders import ACCOUNTS, COSTS, RULES, SESSIONS, market_sets, play

from agent_gym.exchange import Costs
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of, flat_bars

WIDE = Costs.free().model_copy(update={"half_spread_bps": 50.0, "participation": 0.1})


def waiting(kind, qty, trigger, price, **more):
    return Order(SYMBOL, kind, qty, price, trigger=trigger, **more)


def fills(venue):
    """Return side, price and maker of every trade until the end."""
    told = []
    while not venue.finished:
        told += [(trade.qty, round(trade.price, 9), trade.maker) for trade in venue.advance()]
    return told


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("kind", ["limit", "stop_limit", "take_limit"])
def test_what_is_left_beyond_the_market_takes_at_the_next_open(kind, side):
    price, beyond = 100.0, 100.0 * (1 + 0.02 * side)
    order = {
        "limit": limit(3.0 * side, beyond),
        "stop_limit": waiting(OrderKind.STOP_LIMIT, 3.0 * side, price, beyond),
        "take_limit": waiting(OrderKind.TAKE_LIMIT, 3.0 * side, price, beyond),
    }[kind]
    venue = Venue([flat_bars(5, kind="perpetual", volume=10.0)], WIDE)
    venue.submit(order)
    assert fills(venue) == [(side, pytest.approx(100.0 * (1 + 0.005 * side)), False)] * 3


def test_a_limit_to_which_the_price_fell_is_a_maker_even_if_it_opens_below():
    """It rested above no market at the close before, so the gap came to it."""
    price = np.array([100.0, 100, 90, 90, 90])
    bars = bars_of(price, price, price, price, volume=10.0, kind="perpetual")
    venue = Venue([bars], WIDE)
    venue.submit(limit(2.0, 95.0))
    assert fills(venue) == [(1.0, 90.0, True), (1.0, pytest.approx(90.45), False)]


def test_a_post_only_order_never_takes_what_is_left():
    """The market opens below what is left of it: it stays a maker, at its limit or the high."""
    opened, high = np.array([100.0, 100, 90, 90, 90]), np.array([100.0, 100, 90, 92, 97])
    bars = bars_of(opened, high, opened, opened, volume=10.0, kind="perpetual")
    venue = Venue([bars], WIDE)
    venue.submit(limit(3.0, 95.0, post_only=True))
    assert fills(venue) == [(1.0, 90.0, True), (1.0, 92.0, True), (1.0, 95.0, True)]


def test_a_limit_inside_the_spread_gets_its_limit_and_no_more():
    venue = one_bar(100, 101, 99, 100)
    venue._terms[:, 0] = 0.005  # half a spread of 50 bps
    venue.submit(limit(1, 100.2))
    (trade,) = venue.advance()
    assert (trade.price, trade.maker) == (100.2, True)  # the open was never on offer


def test_a_take_that_had_nothing_to_sell_at_the_open_sells_at_the_market():
    """The target that opens the position stands behind it in the queue."""
    venue = one_bar(100, 101, 99, 100.5, kind="spot")
    venue._terms[:, 0] = 0.005
    number = venue.submit(waiting(OrderKind.TAKE_LIMIT, -1.0, 80.0, 80.0))
    venue.submit(Order(SYMBOL, OrderKind.TARGET, 1.0))
    _, sold = venue.advance()
    assert (sold.order, sold.maker, sold.price) == (number, False, pytest.approx(99.5))


@pytest.mark.parametrize("kind", [OrderKind.STOP, OrderKind.STOP_LIMIT])
@pytest.mark.parametrize("entry", [market(1.0), limit(1.0, 88.0)])
def test_a_stop_past_which_the_market_opened_sells_at_the_market(kind, entry):
    """Its position came later in that bar, and no price since then was as good as the stop."""
    order = stop(-1.0, 95.0, reduce_only=True)
    if kind is OrderKind.STOP_LIMIT:
        order = waiting(kind, -1.0, 95.0, 80.0, reduce_only=True)
    venue = one_bar(90, 92, 87, 91, before=90.0)
    venue.submit(order)
    venue.submit(entry)
    bought, sold = venue.advance()
    assert (bought.price, sold.price) == (entry.price or 90.0, entry.price or 90.0)


def test_a_limit_above_the_bar_that_was_hit_trades_inside_the_bar():
    """Taking at the trigger would cost more than the limit, which no price of the bar reached."""
    venue = one_bar(100, 105, 99, 101)
    venue._terms[:, 0] = 0.02
    venue.submit(waiting(OrderKind.STOP_LIMIT, 1.0, 105.0, 106.0))
    (trade,) = venue.advance()
    assert (trade.price, trade.maker) == (105.0, True)


@settings(deadline=None)
@given(markets=market_sets(), sessions=SESSIONS, costs=COSTS, rules=RULES, free=st.booleans())
def test_no_price_lies_outside_its_bar(markets, sessions, costs, rules, free):
    """A maker's never does, and a taker's does not before its costs."""
    if free:
        kept = {"participation", "latency_bars", "limit_on_touch"}
        update = Costs.free().model_dump(exclude=kept)
        costs = costs.model_copy(update=update | {"spread_from_data": False})
    venue = Venue(markets, costs, rules, accounts=ACCOUNTS)
    by_symbol = {bars.instrument.symbol: bars for bars in markets}
    for _, _, trades in play(venue, markets, sessions):
        for trade in trades:
            bars, slack = by_symbol[trade.symbol], 1e-12 * trade.price
            if (trade.maker or free) and not trade.forced:
                low, high = bars.low[venue.t], bars.high[venue.t]
                assert low - slack <= trade.price <= high + slack


@settings(deadline=None)
@given(markets=market_sets(), sessions=SESSIONS, costs=COSTS, rules=RULES)
def test_makers_were_never_beyond_the_market(markets, sessions, costs, rules):
    """A maker at the open rested short of the last close; inside the bar it gets its limit."""
    venue = Venue(markets, costs, rules, accounts=ACCOUNTS)
    by_symbol = {bars.instrument.symbol: bars for bars in markets}
    for _, _, trades in play(venue, markets, sessions):
        for trade in (trade for trade in trades if trade.maker):
            bars, order, t = by_symbol[trade.symbol], venue.order(trade.order).order, venue.t
            side = np.sign(order.qty)
            edge = bars.high[t] if side > 0 else bars.low[t]
            inside = min(side * order.price, side * edge) == side * trade.price
            rested = side * (bars.close[t - 1] - order.price) >= 0.0
            assert inside or (rested and trade.price == bars.open[t])
