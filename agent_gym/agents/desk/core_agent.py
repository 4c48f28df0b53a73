"""The Core Agent: a signal comes in, a record of what became of it comes out.

DeskPlan is the recipe (registered as desk ``core-agent``); its ``make_*`` methods are the places
where another desk puts parts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, structs

from agent_gym.agents.desk.acceptor import Acceptor
from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.desk_records import DeskRecords, paper_fill, rejection_of, trade_outcome
from agent_gym.agents.desk.execution import ExecutionPolicy, RoutedExecution
from agent_gym.agents.desk.features import signal_features
from agent_gym.agents.desk.filter import SignalFilter
from agent_gym.agents.desk.filter_config import FilterConfig
from agent_gym.agents.desk.flow import (
    FlowManager,
    FlowPolicy,
    FlowResult,
    FlowState,
    PaperFill,
    Transition,
)
from agent_gym.agents.desk.log import CoreAgentLogger
from agent_gym.agents.desk.logic import LogicExecutor
from agent_gym.agents.desk.logic_rules import LogicConfig, default_rules
from agent_gym.agents.desk.protection import DrawdownBreaker, ProtectionKeeper, ProtectionPolicy
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.routes import Route
from agent_gym.agents.desk.schemas import (
    AgentResponse,
    Decision,
    FilterResult,
    Outcome,
    PnLSnapshot,
    Signal,
    SignalFeatures,
)
from agent_gym.agents.desk.signals import BadSignal, parse_signal
from agent_gym.agents.desk.view import DeskView
from agent_gym.core.clock import Clock
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds


class Filter(Protocol):
    """Says whether a signal may be traded."""

    def check(
        self, signal: Signal | Mapping[str, Any], view: DeskView, context: RecentContext
    ) -> FilterResult: ...


class Logic(Protocol):
    """Says what is to be done with an accepted signal."""

    def execute(
        self,
        signal: Signal,
        view: DeskView,
        context: RecentContext,
        result: FilterResult | None = None,
    ) -> Decision: ...


class Flow(Protocol):
    """Takes a decided signal to its end."""

    def run(
        self,
        signal: Signal,
        decision: Decision,
        context: RecentContext,
        clock: Clock,
        *,
        paper: PaperFill | None = None,
    ) -> FlowResult: ...


class DeskConfig(Config):
    """Every limit and habit of the desk.

    ``store_features`` keeps the features of every signal as a model would be shown them, so that
    training reads what was seen; without them it has to rebuild what it can.
    """

    filter: FilterConfig = FilterConfig()
    logic: LogicConfig = LogicConfig()
    flow: FlowPolicy = FlowPolicy()
    execution: ExecutionPolicy = ExecutionPolicy()
    protection: ProtectionPolicy = ProtectionPolicy()
    store_features: bool = True


class Handled(Struct, frozen=True):
    """What became of one signal.

    ``code`` is why it was not traded whole, None if it was. ``outcome`` is None for one that never
    got as far as the agents; that of a trade says ``flat`` until it is settled.
    """

    signal_id: str
    filter_result: FilterResult
    decision: Decision | None = None
    flow: FlowResult | None = None
    outcome: Outcome | None = None
    code: RejectCode | None = None
    latency_ms: float = 0.0

    @property
    def state(self) -> FlowState:
        """Return where the signal ended."""
        return FlowState.REJECTED if self.flow is None else self.flow.state


@register("desk", "core-agent", DeskConfig)
class DeskPlan:
    """How a desk is put together; subclass it and override one ``make_*`` to change one part."""

    def __init__(self, config: DeskConfig | None = None) -> None:
        self.config = config or DeskConfig()

    def make_filter(self, acceptor: Acceptor | None = None, seeds: Seeds | None = None) -> Filter:
        """Return the filter."""
        return SignalFilter(self.config.filter, acceptor, seeds)

    def make_logic(self) -> Logic:
        """Return the rule table."""
        return LogicExecutor(default_rules(self.config.logic))

    def make_flow(
        self,
        io: AgentIO,
        seeds: Seeds | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_response: Callable[[AgentResponse, int], None] | None = None,
    ) -> Flow:
        """Return the flow."""
        return FlowManager(io, self.config.flow, seeds, on_transition, on_response)

    def make_execution(
        self, routes: Sequence[Route], seeds: Seeds | None = None
    ) -> RoutedExecution:
        """Return execution over routes, the primary first."""
        return RoutedExecution(routes, self.config.execution, seeds)

    def make_protection(self, route: Route, prefix: str = "guard") -> ProtectionKeeper:
        """Return the keeper of a route's positions."""
        return ProtectionKeeper(route, self.config.protection, prefix)

    def make_breaker(self, keepers: Sequence[ProtectionKeeper] = ()) -> DrawdownBreaker:
        """Return the drawdown breaker over keepers."""
        return DrawdownBreaker(self.config.protection.drawdown_limit, keepers)

    def open(
        self,
        *,
        io: AgentIO,
        context: RecentContext,
        seeds: Seeds,
        logger: CoreAgentLogger | None = None,
        acceptor: Acceptor | None = None,
    ) -> CoreAgent:
        """Return the desk, ready for signals."""
        records = DeskRecords(context, io.redactor, logger)
        parts = (
            self.make_filter(acceptor, seeds.child("agent")),
            self.make_logic(),
            self.make_flow(io, seeds.child("retries"), records.transition, records.response),
        )
        return CoreAgent(parts, records, store_features=self.config.store_features)


class CoreAgent:
    """One desk at work; all that it learns goes to the context, and to the log if there is one."""

    def __init__(
        self,
        parts: tuple[Filter, Logic, Flow],
        records: DeskRecords,
        *,
        store_features: bool = True,
    ) -> None:
        self.filter, self.logic, self.flow = parts
        self.context = records.context
        self._records = records
        self._store_features = store_features

    def handle(self, raw: Mapping[str, Any] | Signal, view: DeskView, clock: Clock) -> Handled:
        """Take one signal through filter, rules and agents; never raises for what comes in."""
        begun_s = clock.monotonic_s()
        now_ns = clock.now_ns()
        try:
            signal = self._records.clean_signal(parse_signal(raw))
        except BadSignal:
            signal = None
        result = self._records.clean_result(
            self.filter.check(raw if signal is None else signal, view, self.context)
        )
        if signal is not None:
            self._keep(signal, view, now_ns)
        self._records.store("result", result, now_ns)
        code = result.code
        if signal is None or not result.accepted:
            code = code or RejectCode.OPS_CONFIG_ERROR
            self._records.step(result.signal_id, FlowState.REJECTED, code, now_ns)
            self._records.store("rejection", rejection_of(result, code, signal, now_ns), now_ns)
            return Handled(result.signal_id, result, code=code, latency_ms=_ms(begun_s, clock))
        self._records.step(signal.signal_id, FlowState.FILTERED, None, now_ns)
        traded = self._traded(signal, result, view, clock)
        return structs.replace(traded, latency_ms=_ms(begun_s, clock))

    def _keep(self, signal: Signal, view: DeskView, now_ns: int) -> None:
        """Keep a signal, and what a model is shown of it: both as of before it was kept."""
        features: SignalFeatures | None = None
        if self._store_features:
            values = signal_features(signal, view, self.context)
            features = SignalFeatures(signal.signal_id, values)
        self._records.store("signal", signal, now_ns)
        if features is not None:
            self._records.store("features", features, now_ns)

    def settle(self, outcome: Outcome, clock: Clock) -> None:
        """Keep what a trade, or a paper trade, came to in the end."""
        self._records.store("outcome", outcome, clock.now_ns())

    def note_pnl(self, snapshot: PnLSnapshot, clock: Clock) -> None:
        """Keep the account as it stands."""
        self._records.store("pnl", snapshot, clock.now_ns())

    def _traded(
        self, signal: Signal, result: FilterResult, view: DeskView, clock: Clock
    ) -> Handled:
        records = self._records
        try:
            decision = self.logic.execute(signal, view, self.context, result)
        except AgentError as error:  # a rule broke its own law: nothing is traded, people are told
            decision = Decision(signal.signal_id, "reject", 0.0, code=RejectCode.OPS_CONFIG_ERROR)
            records.trouble(signal.signal_id, str(error), clock.now_ns())
        records.store("decision", decision, clock.now_ns())
        paper = paper_fill(view) if result.paper else None
        flow = self.flow.run(signal, decision, self.context, clock, paper=paper)
        now_ns, code = clock.now_ns(), flow.code
        if flow.uncertain:
            records.trouble(signal.signal_id, "it is not certain what became of the order", now_ns)
        outcome: Outcome | None = None
        if flow.repeated:  # the filter let a known id pass; the flow did not
            code = RejectCode.DUP_DUPLICATE_ID
            records.step(signal.signal_id, FlowState.REJECTED, code, now_ns, FlowState.FILTERED)
        else:
            outcome = trade_outcome(flow, paper=result.paper)
            records.store("outcome", outcome, now_ns)
        if code is not None and (flow.repeated or flow.filled == 0.0):
            records.store("rejection", rejection_of(result, code, signal, now_ns), now_ns)
        return Handled(signal.signal_id, result, decision, flow, outcome, code)


def _ms(begun_s: float, clock: Clock) -> float:
    return 1e3 * (clock.monotonic_s() - begun_s)
