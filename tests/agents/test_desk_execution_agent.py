import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.desk import RejectCode, Signal, SignalParams
from agent_gym.agents.desk.agent_io import AgentIO, ScriptedAgent
from agent_gym.agents.desk.execution import ExecutionPolicy, RoutedExecution
from agent_gym.agents.desk.execution_agent import RoutedExecutionAgent
from agent_gym.agents.desk.flow import FlowManager, FlowPolicy, FlowState
from agent_gym.agents.desk.routes import RouteRefused
from agent_gym.core.clock import ManualClock
from agent_gym.core.seeds import Seeds
from tests.agents.desk_flows import Context, decision
from tests.agents.desk_venue import BTC, Line, Venue

C = RejectCode
FAULTS = [None, "reached", "lost", "down", "busy", "refused"]


class MovingClock(ManualClock):
    """Moves the venue with the time."""

    def __init__(self, venue, prices):
        super().__init__()
        self.venue, self.prices = venue, list(prices)

    def advance_ns(self, nanos):
        super().advance_ns(nanos)
        if self.prices:
            self.venue.move(self.prices.pop(0), self.now_ns())


def through_the_flow(venue, faults, prices, policy=None, tif="gtc"):
    io, clock = AgentIO(), MovingClock(venue, prices)
    for name in ("strategy", "risk"):
        io.register(name, ScriptedAgent())
    execution = RoutedExecution([Line(venue, faults=faults)], policy, Seeds(5))
    io.register("execution", RoutedExecutionAgent(execution))
    flow = FlowManager(io, FlowPolicy(deadline_ms=60_000, execution_ms=20_000))
    wish = Signal("s1", "momentum", SignalParams(1.0, price=101.0, tif=tif), 0.0)
    return execution, flow.run(wish, decision(), Context(), clock)


def test_the_flow_trades_over_routes():
    venue = Venue()
    _, result = through_the_flow(venue, ["reached", "lost"], [])
    assert (result.state, result.filled, venue.position()) == (FlowState.FILLED, 1.0, 1.0)


@pytest.mark.parametrize(
    ("tif", "price", "code"),
    [
        ("ioc", 105.0, C.EXEC_PARTIAL_EXPIRED),
        ("ioc", 100.0, None),
        ("fok", 100.0, C.EXEC_EXCHANGE_REJECT),
    ],
)
def test_time_in_force_is_kept(tif, price, code):
    venue = Venue(price=price)
    _, result = through_the_flow(venue, [], [], tif=tif)
    assert result.code is code
    assert venue.live() == []
    assert venue.position() == (1.0 if code is None else 0.0)


def test_past_its_deadline_the_flow_takes_the_rest_back():
    venue = Venue(price=100.0, share=0.5)
    policy = ExecutionPolicy(limit_wait_s=1e4, deadline_s=1e5)
    execution, result = through_the_flow(venue, [], [], policy)
    assert (result.state, result.code) == (FlowState.PARTIAL, C.EXEC_PARTIAL_EXPIRED)
    assert result.rest_cancelled
    assert venue.live() == []
    assert result.filled == venue.position() == execution.book.position(BTC) == 0.5


def test_a_refused_order_is_certain_to_have_traded_nothing():
    poor = RouteRefused("no funds", code=C.EXEC_INSUFFICIENT_FUNDS)
    _, result = through_the_flow(Venue(), [poor], [])
    assert (result.state, result.code) == (FlowState.REJECTED, C.EXEC_INSUFFICIENT_FUNDS)
    assert not result.uncertain


def test_a_line_that_stays_down_ends_in_unavailable():
    policy = ExecutionPolicy(deadline_s=5)
    _, result = through_the_flow(Venue(), ["down"] * 999, [], policy)
    assert (result.state, result.code) == (FlowState.FAILED, C.AGENT_UNAVAILABLE)
    assert not result.uncertain


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.sampled_from(FAULTS), max_size=15),
    st.lists(st.floats(95, 106), max_size=30),
    st.sampled_from([1.0, 0.3]),
)
def test_through_the_flow_the_book_equals_the_venue(faults, prices, share):
    venue = Venue(share=share)
    policy = ExecutionPolicy(limit_wait_s=3, deadline_s=15)
    _, result = through_the_flow(venue, faults, prices, policy)
    if not result.uncertain:
        assert result.filled == pytest.approx(venue.position(), abs=1e-9)
        assert venue.live() == []
    assert abs(venue.position()) <= 1.0 + 1e-9
