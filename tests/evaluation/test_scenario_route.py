from __future__ import annotations

import pytest

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.routes import (
    RouteBusy,
    RouteDown,
    RouteOrder,
    RouteRefused,
    RouteTimeout,
)
from agent_gym.core.clock import SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.desk_market import SYMBOLS, Course, draw_bars
from agent_gym.evaluation.scenarios.venue_route import VenueRoute
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.faults import (
    DisconnectRule,
    FaultPlan,
    FaultRule,
    PartialRule,
    RateLimitRule,
    RejectRule,
    TimeoutRule,
)
from agent_gym.exchange.venue import Venue

BAR_NS = 5 * SECOND_NS
SYMBOL = SYMBOLS[0]


def a_venue(**costs: object) -> Venue:
    course = Course(60, BAR_NS, 3e-4, 4.0, 1_000.0)
    bars = draw_bars(course, SYMBOLS[:1], Seeds(5))
    return Venue(bars, Costs.model_validate(costs), AccountRules(cash=1e6, max_leverage=5.0))


def a_route(venue: Venue, *rules: FaultRule) -> VenueRoute:
    return VenueRoute("primary", venue, FaultPlan(bar_ns=BAR_NS, rules=rules), Seeds(1))


def market(name: str = "a-1", quantity: float = 10.0) -> RouteOrder:
    return RouteOrder(name, SYMBOL, quantity, "market")


def test_an_order_fills_with_the_next_bar_and_tells_the_truth() -> None:
    venue = a_venue()
    route = a_route(venue)
    assert route.state("a-1", venue.now).status == "unknown"
    assert route.submit(market(quantity=-10.0), venue.now).status == "open"
    (trade,) = venue.advance()
    state = route.state("a-1", venue.now)
    assert (state.status, state.filled) == ("filled", -10.0)
    assert state.average_price == trade.price
    assert state.fees == trade.fee > 0.0
    assert route.position(SYMBOL, venue.now) == -10.0
    assert [order.client_id for order, _ in route.orders()] == ["a-1"]


def test_the_same_id_is_one_order() -> None:
    venue = a_venue()
    route = a_route(venue)
    for _ in range(3):
        route.submit(market(), venue.now)
    venue.advance()
    assert route.position(SYMBOL, venue.now) == 10.0
    assert len(route.sent) == 3
    with pytest.raises(RouteRefused):
        route.submit(market(quantity=11.0), venue.now)


@pytest.mark.parametrize("reached", [0.0, 1.0])
def test_a_timeout_does_not_say_whether_the_order_arrived(reached: float) -> None:
    venue = a_venue()
    route = a_route(venue, TimeoutRule(at=("submit:a-1:0",), reached_share=reached))
    with pytest.raises(RouteTimeout):
        route.submit(market(), venue.now)
    assert route.state("a-1", venue.now).status == ("open" if reached else "unknown")
    route.submit(market(), venue.now)
    venue.advance()
    assert route.position(SYMBOL, venue.now) == 10.0


def test_a_part_that_was_taken_ends_cancelled_with_what_it_traded() -> None:
    venue = a_venue()
    route = a_route(venue, PartialRule(rate=1.0, smallest=0.4, largest=0.4))
    route.submit(market(), venue.now)
    venue.advance()
    state = route.state("a-1", venue.now)
    assert state.status == "cancelled"
    assert state.filled == pytest.approx(4.0)


def test_a_cancel_acts_with_the_next_bar() -> None:
    venue = a_venue()
    route = a_route(venue)
    far = RouteOrder("a-1", SYMBOL, 10.0, "limit", price=50.0)
    route.submit(far, venue.now)
    venue.advance()
    assert route.cancel("a-1", venue.now).status == "open"
    venue.advance()
    assert route.state("a-1", venue.now).status == "cancelled"
    assert route.state("a-1", venue.now).filled == 0.0
    with pytest.raises(RouteRefused):
        route.cancel("nobody", venue.now)


def test_an_order_ends_when_its_time_is_over() -> None:
    venue = a_venue()
    route = a_route(venue)
    end_ns = venue.now + 2 * BAR_NS
    route.submit(RouteOrder("a-1", SYMBOL, 1.0, "limit", 50.0, good_until_ns=end_ns), venue.now)
    standing = []
    for _ in range(4):
        venue.advance()
        route.expire(venue.now)
        standing.append(route.state("a-1", venue.now).status)
    assert standing == ["open", "open", "cancelled", "cancelled"]


def test_an_order_that_fills_over_bars_is_partial_meanwhile() -> None:
    venue = a_venue(participation=0.01)
    route = a_route(venue)
    route.submit(market(quantity=40.0), venue.now)
    venue.advance()
    state = route.state("a-1", venue.now)
    assert state.status == "partial"
    assert 0.0 < state.filled < 40.0


def test_what_the_account_cannot_afford_is_rejected() -> None:
    venue = a_venue()
    route = a_route(venue)
    down = RouteOrder("a-1", SYMBOL, 1e-12, "market")
    route.submit(down, venue.now)
    venue.advance()
    assert route.state("a-1", venue.now).status == "rejected"


def test_failures_have_the_desks_names() -> None:
    window = (0, 2**62)
    cases: list[tuple[FaultRule, type[Exception]]] = [
        (DisconnectRule(windows=(window,)), RouteDown),
        (RateLimitRule(rate=1.0), RouteBusy),
        (TimeoutRule(rate=1.0), RouteTimeout),
    ]
    for rule, error in cases:
        venue = a_venue()
        route = a_route(venue, rule)
        for call in (
            lambda route=route, venue=venue: route.submit(market(), venue.now),
            lambda route=route, venue=venue: route.state("a-1", venue.now),
            lambda route=route, venue=venue: route.position(SYMBOL, venue.now),
            lambda route=route, venue=venue: route.cancel("a-1", venue.now),
        ):
            with pytest.raises(error):
                call()


def test_a_refusal_says_why() -> None:
    reasons = {
        "insufficient funds": RejectCode.EXEC_INSUFFICIENT_FUNDS,
        "price out of band": RejectCode.EXEC_EXCHANGE_REJECT,
    }
    for reason, code in reasons.items():
        venue = a_venue()
        route = a_route(venue, RejectRule(rate=1.0, reasons=(reason,)))
        with pytest.raises(RouteRefused) as caught:
            route.submit(market(), venue.now)
        assert caught.value.code is code
