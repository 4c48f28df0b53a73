import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk import Quote, RejectCode
from agent_gym.agents.desk.execution import ExecutionOrder, ExecutionPolicy, RoutedExecution
from agent_gym.agents.desk.execution_work import OrderWork
from agent_gym.agents.desk.routes import RouteRefused
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from tests.agents.desk_venue import BTC, Line, S, Venue

C = RejectCode
FAULTS = [None, "reached", "lost", "down", "busy", "refused"]


def order(quantity=1.0, price=101.0, name="s1", reference=100.0):
    return ExecutionOrder(name, BTC, quantity, price, reference)


def worked(lines, wanted=None, policy=None, prices=(), until_s=2_000, quotes=None):
    """Work one order second by second until it is done; prices come one a second."""
    execution = RoutedExecution(lines, policy, Seeds(3))
    venues = {id(line.venue): line.venue for line in lines}.values()
    report = execution.start(wanted or order(), 0, quotes)
    now_s = 0
    while report is None and now_s < until_s:
        now_s += 1
        for venue in venues:
            venue.move(prices[now_s - 1] if now_s <= len(prices) else venue.price, now_s * S)
        ended = execution.poll(now_s * S, quotes)
        report = ended[0] if ended else None
    return execution, report


def test_a_plain_order_fills_on_the_primary():
    venue = Venue()
    lines = [Line(venue), Line(Venue(), "secondary")]
    execution, report = worked(lines)
    assert (report.status, report.filled, report.average_price) == ("filled", 1.0, 100.0)
    assert (report.attempts, report.fallbacks, report.routes) == (1, 0, ("primary",))
    assert execution.book.position(BTC) == venue.position() == 1.0
    assert lines[0].requests == [("submit", "s1-1")]


def test_a_timeout_that_reached_the_venue_is_asked_for_and_not_sent_again():
    venue = Venue()
    line = Line(venue, faults=["reached"])
    _, report = worked([line, Line(Venue(), "secondary")])
    assert [verb for verb, _ in line.requests] == ["submit", "state"]
    assert (report.status, venue.position(), report.attempts) == ("filled", 1.0, 1)
    assert venue.double_sent == []


def test_a_timeout_that_never_arrived_is_sent_again_under_the_same_name():
    line = Line(Venue(), faults=["lost"])
    _, report = worked([line])
    assert line.requests == [("submit", "s1-1"), ("state", "s1-1"), ("submit", "s1-1")]
    assert (report.status, report.retries, report.attempts) == ("filled", 1, 1)


def test_nothing_else_is_sent_while_an_order_is_in_doubt():
    venue, other = Venue(), Venue()
    line = Line(venue, faults=["reached", *["down"] * 50])
    execution, report = worked([line, Line(other, "secondary")])
    assert {verb for verb, _ in line.requests[1:]} == {"state"}
    assert (report.status, other.orders) == ("filled", {})
    assert execution.book.position(BTC) == 1.0


@pytest.mark.parametrize("fault", ["down", "refused"])
def test_a_route_that_fails_for_certain_is_left_at_once(fault):
    primary, secondary = Line(Venue(), faults=[fault] * 9), Line(Venue(), "secondary")
    execution, report = worked([primary, secondary])
    assert (report.status, report.routes) == ("filled", ("primary", "secondary"))
    assert report.done_ns == report.first_failure_ns == 0
    assert execution.book.position(BTC, "secondary") == 1.0


def test_a_busy_route_is_tried_again_when_it_says():
    _, report = worked([Line(Venue(), faults=["busy"])])
    assert (report.status, report.retries, report.done_ns >= S) == ("filled", 1, True)


def test_a_refusal_for_good_ends_it():
    poor = RouteRefused("no funds", code=C.EXEC_INSUFFICIENT_FUNDS)
    other = Line(Venue(), "secondary")
    _, report = worked([Line(Venue(), faults=[poor]), other])
    assert (report.status, report.code, other.requests) == (
        "rejected",
        C.EXEC_INSUFFICIENT_FUNDS,
        [],
    )


def test_a_limit_that_does_not_fill_is_taken_back_and_goes_on_to_the_market():
    venue = Venue(price=105.0)
    policy = ExecutionPolicy(limit_wait_s=10)
    _, report = worked([Line(venue)], policy=policy)
    assert (report.status, report.kinds) == ("filled", ("limit", "market"))
    assert report.slippage_bp == pytest.approx(500.0)
    assert [p.status for p in venue.orders.values()] == ["cancelled", "filled"]


def test_the_rest_of_a_partial_is_taken_back_and_only_the_rest_goes_on():
    venue = Venue(share=0.25)
    policy = ExecutionPolicy(limit_wait_s=3, market_wait_s=1_000)
    execution, report = worked([Line(venue)], policy=policy)
    first, second = venue.orders.values()
    assert (first.status, report.status) == ("cancelled", "filled")
    assert second.order.quantity == pytest.approx(1.0 - first.filled)
    assert venue.position() == pytest.approx(1.0)
    assert execution.book.position(BTC) == pytest.approx(venue.position(), abs=1e-12)


def test_at_the_deadline_a_partial_ends_with_its_rest_taken_back():
    venue = Venue(share=0.5)
    policy = ExecutionPolicy(limit_wait_s=1e6, deadline_s=3)
    execution, report = worked([Line(venue)], policy=policy)
    assert (report.status, report.code) == ("partial", C.EXEC_PARTIAL_EXPIRED)
    assert venue.live() == []
    assert report.filled == venue.position() == execution.book.position(BTC)


def test_a_failed_cancel_is_tried_until_it_is_certain():
    venue = Venue(price=105.0)
    faults = [None, *[None] * 3, "lost", "down", "reached"]
    line = Line(venue, faults=faults)
    _, report = worked([line], policy=ExecutionPolicy(limit_wait_s=3))
    assert report.status == "filled"
    assert sum(verb == "cancel" for verb, _ in line.requests) >= 3
    assert len(venue.orders) == 2
    assert venue.position() == 1.0


def test_a_cancel_that_takes_its_time_is_waited_for():
    venue = Venue(price=105.0, slow=True)
    line = Line(venue)
    _, report = worked([line], policy=ExecutionPolicy(limit_wait_s=3))
    assert (report.status, venue.position()) == ("filled", 1.0)
    assert [verb for verb, _ in line.requests].count("cancel") == 1
    fills = [(fill.client_id, fill.kind, fill.filled) for fill in report.fills]
    assert fills == [("s1-1", "limit", 0.0), ("s1-2", "market", 1.0)]


def test_a_fill_that_overtakes_the_cancel_is_booked():
    venue = Venue(price=105.0)
    execution = RoutedExecution([Line(venue)], ExecutionPolicy(limit_wait_s=5), Seeds(3))
    execution.start(order(), 0)
    execution.poll(4 * S)
    venue.move(100.0)
    (report,) = execution.poll(5 * S)
    assert (report.filled, report.attempts, venue.position()) == (1.0, 1, 1.0)


def test_no_market_order_far_from_the_reference():
    venue = Venue(price=105.0)
    quotes = {BTC: Quote(0.0, 104.9, 105.1, 1e4, 0.01)}
    policy = ExecutionPolicy(limit_wait_s=5, deadline_s=60, max_slippage_bp=200)
    _, report = worked([Line(venue)], policy=policy, quotes=quotes)
    assert (report.status, report.code) == ("unfilled", C.EXEC_SLIPPAGE_EXCEEDED)
    assert all(p.order.kind == "limit" for p in venue.orders.values())
    near = {BTC: Quote(0.0, 101.4, 101.5, 1e4, 0.01)}
    assert worked([Line(Venue(price=105.0))], policy=policy, quotes=near)[1].status == "filled"


def test_a_seller_pays_slippage_with_the_other_sign():
    venue = Venue(price=99.0)
    _, report = worked([Line(venue)], order(-2.0, price=None))
    assert (report.filled, report.slippage_bp) == (-2.0, pytest.approx(100.0))
    assert venue.position() == -2.0


def test_an_outage_longer_than_all_retries_is_waited_out():
    line = Line(Venue(), faults=["down"] * 9)
    _, report = worked([line])
    assert (report.status, report.attempts) == ("filled", 1)


def test_the_breaker_of_a_route_opens_and_the_other_is_used():
    execution = RoutedExecution(
        [Line(Venue(), faults=["down"] * 99), Line(Venue(), "secondary")], None, Seeds(3)
    )
    for i in range(9):
        execution.start(order(name=f"s{i}"), i * S)
    assert execution.breakers["primary"].opened_ns == [4 * S]
    assert execution.breakers["secondary"].opened_ns == []
    assert execution.report("s8").routes == ("secondary",)


def test_a_repeated_signal_starts_nothing():
    venue = Venue()
    execution = RoutedExecution([Line(venue)])
    first = execution.start(order(), 0)
    assert execution.start(order(5.0), S) == first
    assert venue.position() == 1.0


def test_withdrawing_takes_back_and_reports():
    venue = Venue(price=105.0)
    execution = RoutedExecution([Line(venue, faults=[None, None, "lost"])])
    execution.start(order(), 0)
    execution.poll(S)
    execution.withdraw("s1", 2 * S)
    execution.poll(3 * S)
    report = execution.report("s1")
    assert (report.status, report.filled, venue.live()) == ("unfilled", 0.0, [])


def test_an_immediate_order_never_rests_and_never_goes_on():
    venue, other = Venue(price=105.0), Venue()
    lines = [Line(venue), Line(other, "secondary")]
    _, report = worked(lines, ExecutionOrder("s1", BTC, 1.0, 101.0, 100.0, immediate=True))
    assert (report.status, report.done_ns, other.orders) == ("unfilled", S, {})
    assert venue.live() == []
    part = Venue(share=0.5)
    _, report = worked([Line(part)], ExecutionOrder("s1", BTC, 1.0, 101.0, 100.0, immediate=True))
    assert (report.status, report.attempts) == ("partial", 1)
    assert report.filled == part.position() == 0.75
    down = [Line(Venue(), faults=["down"]), Line(other, "secondary")]
    _, report = worked(down, ExecutionOrder("s1", BTC, 1.0, 101.0, 100.0, immediate=True))
    assert (report.status, other.position()) == ("filled", 1.0)


def test_routes_need_names_of_their_own():
    with pytest.raises(ConfigError):
        RoutedExecution([])
    with pytest.raises(ConfigError):
        RoutedExecution([Line(Venue()), Line(Venue())])


def laws(lines, venues, execution, report):
    """Return which laws of execution are broken at the end."""
    broken = []
    if report is None:
        return ["comes to an end"]
    held = sum(venue.position() for venue in venues)
    if abs(held - execution.book.position(BTC)) > 1e-9:
        broken.append("the book equals the venues")
    if abs(held) > abs(report.quantity) * (1 + 1e-9):
        broken.append("never more than asked for")
    if any(venue.live() for venue in venues):
        broken.append("no order is left behind")
    if any(_resent_blindly(line.requests) for line in lines):
        broken.append("asks before it sends again")
    return broken


def _resent_blindly(requests):
    """Return whether an order was submitted twice without a word on its state in between.

    A busy or dead line never took it, so those do not count; the tests that use this have none.
    """
    sent = set()
    for verb, name in requests:
        if verb == "submit":
            if name in sent:
                return True
            sent.add(name)
        elif verb == "state":
            sent.discard(name)
    return False


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(FAULTS), max_size=25),
    st.lists(st.sampled_from(FAULTS), max_size=10),
    st.lists(st.floats(95, 106), max_size=60),
    st.sampled_from([1.0, 0.5, 0.1]),
    st.sampled_from([1.0, -1.0]),
    st.booleans(),
)
def test_whatever_the_faults_the_laws_hold(first, second, prices, share, side, slow):
    venues = [Venue(share=share, slow=slow), Venue(share=share, slow=slow)]
    lines = [Line(venues[0], faults=first), Line(venues[1], "secondary", faults=second)]
    policy = ExecutionPolicy(limit_wait_s=5, market_wait_s=20, deadline_s=120)
    price = 101.0 if side > 0 else 99.0
    execution, report = worked(lines, order(side, price), policy, prices)
    broken = laws(lines, venues, execution, report)
    assert [law for law in broken if law != "asks before it sends again"] == []


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([None, "reached", "lost"]), max_size=25), st.floats(95, 106))
def test_after_a_timeout_it_always_asks_first(faults, price):
    venue = Venue(price=price)
    lines = [Line(venue, faults=faults)]
    execution, report = worked(lines, policy=ExecutionPolicy(limit_wait_s=5, deadline_s=120))
    assert laws(lines, [venue], execution, report) == []


class SendsAgain(OrderWork):
    """Planted: a timeout is sent again at once, under a new name."""

    def _ask(self, now_ns):
        self._next_rung(now_ns)


class ForgetsTheRest(OrderWork):
    """Planted: an order that rests is left where it is."""

    def _take_back(self, now_ns):
        self._next_rung(now_ns)


@pytest.mark.parametrize(
    ("plant", "law"),
    [(SendsAgain, "never more than asked for"), (ForgetsTheRest, "no order is left behind")],
)
def test_planted_faults_are_seen(monkeypatch, plant, law):
    monkeypatch.setattr("agent_gym.agents.desk.execution.OrderWork", plant)
    price = 100.0 if plant is SendsAgain else 105.0
    venue = Venue(price=price)
    lines = [Line(venue, faults=["reached"])]
    execution, report = worked(lines, policy=ExecutionPolicy(limit_wait_s=5, deadline_s=60))
    assert law in laws(lines, [venue], execution, report)


def test_waits_are_drawn_from_seeds_for_each_order():
    def done(seed, name):
        execution = RoutedExecution([Line(Venue(), faults=["lost", None])], None, Seeds(seed))
        execution.start(order(name=name), 0)
        for tick in range(1, 4_000):
            if execution.poll(tick * S // 1_000):
                return tick
        return None

    assert done(1, "a") == done(1, "a")
    assert len({done(seed, name) for seed in (1, 2) for name in ("a", "b")}) == 4
