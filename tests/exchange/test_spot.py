"""A spot floor tells at once what the venue will do, and the venue does just that."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import Seeds
from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.spot import SpotFloor
from agent_gym.exchange.spot_records import Refusal, Refused, TicketStatus, Wish
from agent_gym.exchange.venue import Venue
from agent_gym.markets.instrument import Instrument
from tests.samples import bars_of, flat_bars, random_bars

SYMBOL = "BTC/USDT"
CASH = 10_000.0


def market(n=120, seed=0, volume=200.0):
    bars = random_bars(n, seed, kind="spot", volume=volume)
    return replace(bars, instrument=Instrument(tick=0.01, lot=0.001, min_notional=5.0))


def floor_of(bars=None, accounts=("ann", "ben"), costs=None, history=1):
    return SpotFloor([bars or market()], costs or Costs(), CASH, accounts, history)


def buy(qty, price=None, **more):
    kind = OrderKind.MARKET if price is None else OrderKind.LIMIT
    return Wish(SYMBOL, kind, qty, price, **more)


def place(floor, wish, account="ann"):
    return floor.place(account, wish, floor.opened_ns)[0]


def refusal(floor, wish, account="ann"):
    with pytest.raises(Refused) as caught:
        place(floor, wish, account)
    return caught.value.reason


def wild(rng, floor):
    """Return an order of any kind around the price."""
    price = floor.price(SYMBOL)
    kind = (OrderKind.MARKET, OrderKind.LIMIT, OrderKind.LIMIT, OrderKind.STOP)[rng.integers(4)]
    qty = (1 + int(rng.integers(400))) * 0.1 * (1 if rng.random() < 0.5 else -1)
    if kind is OrderKind.MARKET:
        return Wish(SYMBOL, kind, round(qty, 3))
    at = round(price * float(rng.uniform(0.97, 1.03)), 2)
    validity = ("gtc", "gtc", "ioc", "fok")[rng.integers(4)] if kind is OrderKind.LIMIT else "gtc"
    post = kind is OrderKind.LIMIT and validity == "gtc" and bool(rng.random() < 0.3)
    return Wish(SYMBOL, kind, round(qty, 3), at, validity, post)


def play(floor, rng, spread=(1, 4)):
    """Trade at random to the end; returns how much was placed."""
    placed = 0
    while not floor.finished:
        for account in floor.marks:
            for _ in range(int(rng.integers(*spread))):
                try:
                    place(floor, wild(rng, floor), account)
                    placed += 1
                except VenueError:
                    pass
            for ticket in floor.open_tickets(account):
                if rng.random() < 0.2:
                    floor.cancel(account, ticket.id, floor.opened_ns)
        floor.advance()
    return placed


@given(seed=st.integers(0, 2**32), volume=st.sampled_from([50.0, 400.0, 1e6]))
def test_what_was_told_is_what_the_venue_did(seed, volume):
    floor = floor_of(market(40, seed % 7, volume))
    assert play(floor, Seeds(seed).rng()) > 0
    assert floor.revised == 0
    for ticket in floor.tickets.values():
        done = floor.venue.order(ticket.id)
        assert ticket.filled == pytest.approx(done.filled, abs=1e-9)
        assert ticket.fee == pytest.approx(done.fee, abs=1e-9)
    for account in floor.marks:
        mine = [fill for fill in floor.fills if fill.account == account]
        seen = floor.venue.account(account)
        paid = sum(fill.qty * fill.price + fill.fee for fill in mine)
        assert seen.cash == pytest.approx(CASH - paid, abs=1e-6)
        assert seen.cash >= -1e-6
        units = seen.positions[SYMBOL]
        assert units == pytest.approx(sum(fill.qty for fill in mine), abs=1e-9)
        assert units >= -1e-9
        owned = floor.balances(account)
        assert owned["USDT"].free + owned["USDT"].locked >= seen.cash - 1e-6


def test_the_floor_is_the_venue_to_the_last_bit():
    """Orders sent to a floor and the same orders sent to a venue leave the same account."""
    bars = market()
    floor = floor_of(bars, ("ann",))
    venue = Venue([bars], Costs(), AccountRules(cash=CASH, allow_short=False), ("ann",))
    rng, numbers = Seeds(3).rng(), {}
    while not floor.finished:
        for _ in range(2):
            wish = wild(rng, floor)
            if wish.validity != "gtc":
                continue
            try:
                ticket = place(floor, wish)
            except VenueError:
                continue
            order = Order(
                SYMBOL,
                wish.kind,
                wish.qty,
                wish.price,
                post_only=wish.post_only,
                immediate=wish.kind is OrderKind.MARKET,
            )
            numbers[ticket.id] = venue.submit(order, "ann")
        for ticket in floor.open_tickets("ann")[:1]:
            if rng.random() < 0.3 and not ticket.fills:
                floor.cancel("ann", ticket.id, floor.opened_ns)
                venue.cancel(numbers[ticket.id])
        floor.advance()
        venue.advance()
        assert floor.venue.account("ann") == venue.account("ann")
    assert len(floor.fills) > 20
    assert floor.marks["ann"][-1].equity == venue.account("ann").equity


def test_a_market_order_is_filled_when_it_is_sent_and_paid_when_the_bar_is_over():
    floor = floor_of()
    ticket = place(floor, buy(2.0))
    assert ticket.status is TicketStatus.FILLED
    assert ticket.filled == 2.0
    owned = floor.balances("ann")
    assert owned["BTC"].free == 2.0
    assert owned["USDT"].free == pytest.approx(CASH - ticket.worth - ticket.fee)
    assert floor.venue.account("ann").cash == CASH
    floor.advance()
    assert floor.venue.account("ann").cash == pytest.approx(owned["USDT"].free)
    assert floor.balances("ben")["USDT"].free == CASH


def test_orders_hold_their_money_back():
    floor = floor_of(flat_market())
    first = place(floor, buy(60.0, 99.0))
    assert floor.balances("ann")["USDT"].locked == pytest.approx(5_940.0)
    assert refusal(floor, buy(60.0, 99.0)) is Refusal.BALANCE
    assert refusal(floor, buy(60.0)) is Refusal.BALANCE
    floor.cancel("ann", first.id, floor.opened_ns)
    assert floor.balances("ann")["USDT"].locked == 0.0
    assert place(floor, buy(60.0, 99.0)).status is TicketStatus.NEW


def flat_market():
    return replace(flat_bars(30), instrument=Instrument(tick=0.01, lot=0.001, min_notional=5.0))


def test_nothing_is_sold_that_is_not_there():
    floor = floor_of(flat_market())
    assert refusal(floor, buy(-1.0)) is Refusal.BALANCE
    assert refusal(floor, buy(-1.0, 100.0, validity="ioc")) is Refusal.BALANCE
    place(floor, buy(2.0))
    place(floor, buy(-1.5, 120.0))
    assert refusal(floor, buy(-1.0)) is Refusal.BALANCE
    assert place(floor, buy(-0.5)).status is TicketStatus.FILLED


def test_everything_can_be_sold_again_after_many_fills():
    floor = floor_of(flat_market())
    for _ in range(10):
        place(floor, buy(0.107))
        floor.advance()
    held = round(floor.balances("ann")["BTC"].free, 3)
    assert place(floor, buy(-held)).status is TicketStatus.FILLED
    floor.advance()
    assert floor.balances("ann")["BTC"].free == 0.0


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (buy(1.0, 101.0, post_only=True), Refusal.WOULD_TAKE),
        (Wish(SYMBOL, OrderKind.STOP, 1.0, 99.0), Refusal.TRIGGERS),
        (buy(0.01), Refusal.TOO_SMALL),
        (buy(1_000.0), Refusal.BALANCE),
    ],
)
def test_an_order_is_refused_as_an_exchange_would(wish, reason):
    floor = floor_of(flat_market())
    assert refusal(floor, wish) is reason
    assert floor.tickets == {}
    assert not floor.open_tickets("ann")


def test_immediate_orders_end_at_once():
    floor = floor_of(flat_market())
    away = place(floor, buy(1.0, 90.0, validity="ioc"))
    assert away.status is TicketStatus.EXPIRED
    assert away.filled == 0.0
    near = place(floor, buy(1.0, 110.0, validity="ioc"))
    assert near.status is TicketStatus.FILLED
    floor.advance()
    assert floor.venue.account("ann").positions[SYMBOL] == 1.0


def test_all_or_nothing_is_nothing_where_the_bar_has_too_little():
    bars = bars_of(*[np.full(9, 100.0)] * 4, volume=100.0, kind="spot")
    floor = floor_of(replace(bars, instrument=Instrument(lot=0.001, tick=0.01)))
    assert place(floor, buy(30.0, 110.0, validity="fok")).status is TicketStatus.EXPIRED
    part = place(floor, buy(30.0, 110.0))
    assert part.status is TicketStatus.PARTIAL
    assert part.filled == pytest.approx(10.0)
    ticket, _ = floor.cancel("ann", part.id, floor.opened_ns)
    assert ticket.status is TicketStatus.CANCELLED
    assert floor.balances("ann")["USDT"].locked == 0.0
    floor.advance()
    floor.advance()
    assert floor.venue.account("ann").positions[SYMBOL] == pytest.approx(10.0)
    assert floor.revised == 0


def test_a_cancel_of_what_is_filled_or_another_s_is_refused():
    floor = floor_of(flat_market())
    filled, resting = place(floor, buy(1.0)), place(floor, buy(1.0, 90.0))
    for account, number in (("ann", filled.id), ("ben", resting.id), ("ann", 99)):
        with pytest.raises(Refused) as caught:
            floor.cancel(account, number, floor.opened_ns)
        assert caught.value.reason is Refusal.UNKNOWN
    assert floor.ticket("ben", resting.id) is None


def test_money_buys_what_it_pays_for():
    floor = floor_of(market(volume=5_000.0), costs=Costs(impact=3.0))
    units = floor.units_for("ann", SYMBOL, 5_000.0, buys=True)
    ticket = place(floor, buy(round(units - 0.0005, 3)))
    assert ticket.worth + ticket.fee == pytest.approx(5_000.0, rel=2e-3)
    assert ticket.worth + ticket.fee <= 5_000.0


def test_the_market_ends():
    floor = floor_of(market(4))
    while not floor.finished:
        floor.advance()
    assert refusal(floor, buy(1.0)) is Refusal.CLOSED
    assert len(floor.marks["ann"]) == 4


def test_history_is_past_when_it_begins():
    floor = floor_of(market(50), history=20)
    assert floor.venue.t == 19
    assert [mark.bar for mark in floor.marks["ann"]] == [19]


@pytest.mark.parametrize(
    ("bars", "costs", "history"),
    [
        (random_bars(10), Costs(), 1),
        (flat_market(), Costs(latency_bars=1), 1),
        (flat_market(), Costs(), 30),
    ],
)
def test_what_does_not_fit_a_floor_is_refused(bars, costs, history):
    with pytest.raises(ConfigError):
        SpotFloor([bars], costs, CASH, ("ann",), history)


def test_the_rest_of_a_bar_cannot_be_seen_before_it_is_over():
    """Another high, low, close and volume of later bars change nothing that a floor tells now."""
    bars = market(30)
    told = []
    for factor in (1.0, 3.0):
        late = np.arange(len(bars)) > 10
        after = np.arange(len(bars)) > 11
        other = replace(
            bars,
            open=np.where(after, bars.open * factor, bars.open),
            close=np.where(late, bars.close * factor, bars.close),
            high=np.where(late, bars.high * factor, bars.high),
            low=np.where(late, bars.low / factor, bars.low),
        )
        floor = floor_of(other, history=11)
        ticket = place(floor, buy(1.0))
        place(floor, buy(1.0, round(floor.price(SYMBOL) * 0.99, 2)))
        told.append((floor.balances("ann"), ticket.fills, floor.exposures("ann")))
    assert told[0] == told[1]
