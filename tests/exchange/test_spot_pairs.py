"""Orders that wait for a price, and pairs of which one cancels the other, on a spot floor."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_spot import SYMBOL, buy, flat_market, floor_of, market, place, refusal

from agent_gym.core import Seeds
from agent_gym.core.errors import VenueError
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.spot_records import Refusal, Refused, TicketStatus, Wish
from agent_gym.markets.instrument import Instrument
from tests.samples import bars_of


def bracket(floor, low, high, qty=1.0, limit=None, account="ann"):
    """Hold some units, and protect them by a stop and a target."""
    place(floor, buy(qty), account)
    kind = OrderKind.STOP if limit is None else OrderKind.STOP_LIMIT
    stop = Wish(SYMBOL, kind, -qty, limit or low, trigger=None if limit is None else low)
    target = Wish(SYMBOL, OrderKind.LIMIT, -qty, high, post_only=True)
    return floor.place_pair(account, (stop, target), "pair", floor.opened_ns)[0]


def path_market(opened, high, low, close):
    bars = bars_of(*(np.array(one, dtype=float) for one in (opened, high, low, close)))
    return replace(bars, instrument=Instrument(tick=0.01, lot=0.001, min_notional=5.0))


def test_a_pair_holds_its_units_back_once_and_ends_together():
    floor = floor_of(path_market([100] * 4, [100, 101, 106, 100], [99] * 4, [100] * 4))
    pair = bracket(floor, 95.0, 105.0)
    assert floor.balances("ann")["BTC"].locked == 1.0
    assert [one.wish.kind for one in floor.open_tickets("ann")] == [OrderKind.STOP, OrderKind.LIMIT]
    floor.advance()
    assert pair.live
    floor.advance()
    stop, target = pair.tickets
    assert (stop.status, target.status) == (TicketStatus.EXPIRED, TicketStatus.FILLED)
    assert not pair.live
    assert floor.balances("ann")["BTC"].locked == 0.0
    assert refusal_of_cancel(floor, stop) is Refusal.UNKNOWN


def refusal_of_cancel(floor, ticket):
    with pytest.raises(Refused) as caught:
        floor.cancel(ticket.account, ticket.id, floor.opened_ns)
    return caught.value.reason


def test_a_bar_that_touches_both_fills_the_stop():
    floor = floor_of(path_market([100] * 3, [100, 110, 100], [100, 90, 100], [100] * 3))
    stop, target = bracket(floor, 95.0, 105.0).tickets
    floor.advance()
    assert (stop.status, target.status) == (TicketStatus.FILLED, TicketStatus.EXPIRED)
    assert stop.fills[0].price < 95.0  # it took, and paid for it


def test_what_was_told_to_be_over_does_not_come_back():
    """At the second open the stop is hit and its limit is not met; then it is taken back."""
    opened = [100, 100, 92, 92, 92]
    floor = floor_of(path_market(opened, [100, 101, 106, 106, 106], [99, 99, 90, 90, 90], opened))
    stop, target = bracket(floor, 95.0, 105.0, limit=94.5).tickets
    floor.advance()
    assert stop.hit_ns is not None
    assert (stop.status, target.status) == (TicketStatus.NEW, TicketStatus.EXPIRED)
    floor.cancel("ann", stop.id, floor.opened_ns)
    floor.advance()
    floor.advance()
    assert target.fills == []
    assert floor.venue.account("ann").positions[SYMBOL] == 1.0
    assert floor.revised == 0


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (Wish(SYMBOL, OrderKind.TAKE, 1.0, 100.0), Refusal.TRIGGERS),
        (Wish(SYMBOL, OrderKind.STOP_LIMIT, 1.0, 99.0, trigger=99.0), Refusal.TRIGGERS),
        (Wish(SYMBOL, OrderKind.TAKE_LIMIT, 1.0, 99.0, trigger=101.0), Refusal.TRIGGERS),
        (Wish(SYMBOL, OrderKind.STOP, -1.0, 95.0), Refusal.BALANCE),
        (Wish(SYMBOL, OrderKind.STOP, 1_000.0, trail_bps=100.0), Refusal.BALANCE),
        (Wish(SYMBOL, OrderKind.STOP_LIMIT, 1.0, 101.0, "fok", trigger=101.0), Refusal.UNSUPPORTED),
    ],
)
def test_an_order_that_waits_is_refused_as_an_exchange_would(wish, reason):
    assert refusal(floor_of(flat_market()), wish) is reason


def test_a_pair_is_taken_whole_or_not_at_all():
    floor = floor_of(flat_market())
    with pytest.raises(Refused) as caught:
        bracket(floor, 101.0, 105.0)
    assert caught.value.reason is Refusal.TRIGGERS
    assert floor.pairs == {}
    assert [one.wish.kind for one in floor.tickets.values()] == [OrderKind.MARKET]


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32))
def test_pairs_and_stops_are_told_as_the_venue_does_them(seed):
    rng = Seeds(seed).rng()
    floor = floor_of(market(25, seed % 5, 300.0), accounts=("ann",))
    while not floor.finished:
        price, low, high = floor.price(SYMBOL), *rng.uniform(0.002, 0.03, 2)
        stop, target = round(price * (1 - low), 2), round(price * (1 + high), 2)
        try:
            bracket(floor, stop, target, 10.0, stop - 0.5 if rng.random() < 0.5 else None)
            place(floor, Wish(SYMBOL, OrderKind.STOP, 5.0, trail_bps=float(rng.integers(20, 200))))
        except VenueError:
            pass
        for ticket in floor.open_tickets("ann"):
            if rng.random() < 0.1 and ticket.status.live:
                floor.cancel("ann", ticket.id, floor.opened_ns)
        floor.advance()
    assert floor.revised == 0
    for pair in floor.pairs.values():
        assert sum(bool(one.fills) for one in pair.tickets) <= 1
    for ticket in floor.tickets.values():
        done = floor.venue.order(ticket.id)
        assert ticket.filled == pytest.approx(done.filled, abs=1e-9)
        assert ticket.status.live == (done.status.value == "open")
