from __future__ import annotations

import copy
from collections import Counter

import pytest
from faulty_venue import Order, Venue, faulty
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.faults import (
    Ack,
    DelayedAckRule,
    DisconnectRule,
    DuplicateAckRule,
    FaultInjector,
    FaultPlan,
    FaultyGateway,
    PartialRule,
    Positions,
    RateLimitRule,
    RejectRule,
    StaleDataRule,
    TimeoutRule,
    VenueDisconnected,
    VenueRateLimited,
    VenueRejected,
    VenueTimeout,
)
from agent_gym.exchange.faults.plan import PATH


def test_no_rates_means_a_clear_line() -> None:
    plan = FaultPlan.from_rates(dict.fromkeys(PATH, 0.0))
    for rules in (plan, FaultPlan()):
        venue = Venue()
        gateway = FaultyGateway(venue, FaultInjector(rules, Seeds(0)))
        orders = [Order(f"o{i}", i + 1.0) for i in range(200)]
        acks = [gateway.submit(order, i) for i, order in enumerate(orders)]
        assert acks == [Ack(order.client_id, order.quantity, i) for i, order in enumerate(orders)]
        assert venue.orders == orders
        assert gateway.cancel("o1", 500) == Ack("o1", 0.0, 500)
        assert gateway.positions(500) == Positions(500, {"BTC": sum(o.quantity for o in orders)})
        assert gateway.late_acks(10**18) == []
        assert gateway.injector.log == []


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_timeout_hides_whether_the_order_arrived(share: float) -> None:
    venue, gateway = faulty(TimeoutRule(at=("submit:a:0",), reached_share=share))
    with pytest.raises(VenueTimeout) as caught:
        gateway.submit(Order("a"), 0)
    assert len(venue.orders) == int(share)
    assert gateway.injector.log[0].reached == bool(share)
    assert "reach" not in str(caught.value)
    # Sending it again, under the same id, leaves one order in either case.
    assert gateway.submit(Order("a"), 7) == Ack("a", 10.0, 7)
    assert venue.orders == [Order("a")]
    # Negative control: a new id is a new order.
    gateway.submit(Order("b"), 8)
    assert len(venue.orders) == 2


@settings(deadline=None)
@given(st.integers(0, 50), st.floats(0.0, 1.0))
def test_retrying_until_an_answer_comes_never_doubles_an_order(seed: int, share: float) -> None:
    venue, gateway = faulty(TimeoutRule(rate=0.6, reached_share=share), seed=seed)
    for i in range(5):
        for attempt in range(200):
            try:
                gateway.submit(Order(f"o{i}"), 10 * i)
                break
            except VenueTimeout:
                assert attempt < 199
    assert [order.client_id for order in venue.orders] == [f"o{i}" for i in range(5)]


def test_a_client_id_belongs_to_one_order() -> None:
    venue, gateway = faulty()
    gateway.submit(Order("a", 1.0), 0)
    with pytest.raises(VenueRejected, match="one order"):
        gateway.submit(Order("a", 2.0), 1)
    assert len(venue.orders) == 1


def test_a_venue_that_refuses_behind_a_timeout_stays_silent() -> None:
    venue, gateway = faulty(TimeoutRule(rate=1.0, reached_share=1.0))
    with pytest.raises(VenueTimeout):
        gateway.submit(Order("a", 0.0), 0)
    assert venue.orders == []
    clear, gateway = faulty()
    with pytest.raises(VenueError, match="has a size"):
        gateway.submit(Order("a", 0.0), 0)
    assert clear.orders == []


def test_a_reject_says_why_and_leaves_nothing() -> None:
    venue, gateway = faulty(RejectRule(rate=1.0, reasons=("one", "two", "three")))
    said: Counter[str] = Counter()
    for i in range(300):
        with pytest.raises(VenueRejected) as caught:
            gateway.submit(Order(f"o{i}"), 0)
        said[caught.value.what] += 1
    assert set(said) == {"one", "two", "three"}
    assert venue.orders == []
    assert gateway.cancel("o1", 0).client_id == "o1"
    _, gateway = faulty(RejectRule(rate=1.0, on=("cancel",), reasons=("too late",)))
    gateway.submit(Order("a"), 0)
    with pytest.raises(VenueRejected, match="too late"):
        gateway.cancel("a", 0)


def test_a_partial_takes_less_and_says_how_much() -> None:
    venue, gateway = faulty(PartialRule(rate=1.0, smallest=0.2, largest=0.6))
    acks = [gateway.submit(Order(f"o{i}"), 0) for i in range(200)]
    taken = [ack.quantity for ack in acks]
    assert taken == [order.quantity for order in venue.orders]
    assert 2.0 <= min(taken) < 2.4
    assert 5.6 < max(taken) <= 6.0
    fractions = [fault.fraction for fault in gateway.injector.log]
    assert taken == pytest.approx([10.0 * fraction for fraction in fractions])


def test_an_outage_lasts_until_its_end() -> None:
    venue, gateway = faulty(DisconnectRule(windows=((100, 200),)))
    gateway.submit(Order("a"), 99)
    for ts in (100, 199):
        with pytest.raises(VenueDisconnected):
            gateway.submit(Order(f"b{ts}"), ts)
        with pytest.raises(VenueDisconnected):
            gateway.cancel("a", ts)
        with pytest.raises(VenueDisconnected):
            gateway.positions(ts)
    gateway.submit(Order("c"), 200)
    assert [order.client_id for order in venue.orders] == ["a", "c"]
    assert gateway.injector.log[0].wait_ns == 100


def test_a_rate_limit_counts_simulated_time_and_says_when_to_return() -> None:
    venue, gateway = faulty(RateLimitRule(max_requests=3, window_ns=100))
    for ts in (0, 10, 20):
        gateway.submit(Order(f"o{ts}"), ts)
    with pytest.raises(VenueRateLimited) as caught:
        gateway.submit(Order("late"), 30)
    assert caught.value.retry_after_ns == 70
    with pytest.raises(VenueRateLimited):
        gateway.submit(Order("late"), 99)
    gateway.submit(Order("late"), 30 + caught.value.retry_after_ns)
    assert len(venue.orders) == 4


def test_the_waiting_time_survives_a_process_border() -> None:
    error = VenueRateLimited("too many", retry_after_ns=5, where="x", remedy="Wait")
    rebuild, arguments = error.__reduce__()[:2]
    for twin in (rebuild(*arguments), copy.copy(error)):
        assert isinstance(twin, VenueRateLimited)
        assert (twin.retry_after_ns, str(twin)) == (5, str(error))


def test_acks_come_late_or_twice() -> None:
    venue, gateway = faulty(DelayedAckRule(rate=1.0, delay_ns=50))
    assert gateway.submit(Order("a"), 100) == Ack("a", 10.0, 150)
    venue, gateway = faulty(DuplicateAckRule(rate=1.0, delay_ns=50))
    first = gateway.submit(Order("a"), 100)
    assert first == Ack("a", 10.0, 100)
    assert gateway.late_acks(149) == []
    assert gateway.late_acks(150) == [Ack("a", 10.0, 150)]
    assert gateway.late_acks(999) == []
    assert len(venue.orders) == 1


def test_stale_positions_show_an_older_time_and_state() -> None:
    _, gateway = faulty(StaleDataRule(at=("positions:50:0",), bars=3), bar_ns=10)
    for ts in (0, 10, 20, 30, 40):
        gateway.submit(Order(f"o{ts}"), ts)
    assert gateway.positions(50) == Positions(20, {"BTC": 20.0})
    assert gateway.positions(50) == Positions(50, {"BTC": 50.0})
    _, gateway = faulty(StaleDataRule(rate=1.0, bars=3), bar_ns=10)
    assert gateway.positions(0) == Positions(0, {"BTC": 0.0})


def test_stale_memory_is_bounded() -> None:
    venue, gateway = faulty(StaleDataRule(rate=0.5, bars=2), bar_ns=10)
    for ts in range(0, 10_000, 5):
        seen = gateway.positions(ts)
        assert ts - 25 <= seen.ts <= ts
    assert len(gateway._snapshots) < 10
    assert venue.reads > 2000
