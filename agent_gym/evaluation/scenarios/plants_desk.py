"""Faults in how the desk takes signals: its settings, filter, rule table and flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import structs
from typing_extensions import override

from agent_gym.agents.desk.acceptor import Acceptor
from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.core_agent import CoreAgent, DeskPlan, Filter, Flow, Handled, Logic
from agent_gym.agents.desk.filter import FILTER_RULES, SignalFilter
from agent_gym.agents.desk.filter_case import FilterRule
from agent_gym.agents.desk.flow import FlowResult, PaperFill, Transition
from agent_gym.agents.desk.log import CoreAgentLogger
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import (
    AgentName,
    AgentRequest,
    AgentResponse,
    Decision,
    FilterResult,
    Signal,
)
from agent_gym.agents.desk.signals import readable_id
from agent_gym.agents.desk.view import DeskView
from agent_gym.core.clock import Clock
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.plants_plan import AlteredPlan, one_of
from agent_gym.evaluation.scenarios.sabotage import Sabotage


class OtherConfig(Sabotage):
    """A fault that is a wrong setting: ``part`` with some values changed, unchecked."""

    def __init__(self, **changes: Mapping[str, Any]) -> None:
        self._changes = changes

    @override
    def plan(self, plan: DeskPlan) -> DeskPlan:
        update = {
            part: getattr(plan.config, part).model_copy(update=dict(values))
            for part, values in self._changes.items()
        }
        return type(plan)(plan.config.model_copy(update=update))


class OtherRules(Sabotage):
    """A fault in the filter: rules left out, or with another code."""

    def __init__(
        self, *without: RejectCode, renamed: tuple[RejectCode, RejectCode] | None = None
    ) -> None:
        self._without = without
        self._renamed = renamed

    @override
    def plan(self, plan: DeskPlan) -> DeskPlan:
        rules = tuple(self._named(rule) for rule in FILTER_RULES if rule.code not in self._without)

        class Careless(AlteredPlan):
            @override
            def make_filter(
                self, acceptor: Acceptor | None = None, seeds: Seeds | None = None
            ) -> Filter:
                return SignalFilter(self.config.filter, acceptor, seeds, rules)

        return Careless(plan)

    def _named(self, rule: FilterRule) -> FilterRule:
        if self._renamed is None or rule.code != self._renamed[0]:
            return rule
        return rule._replace(code=self._renamed[1])


class _DroppingAgent(CoreAgent):
    """Loses one signal in a hundred without a word."""

    def __init__(self, inner: CoreAgent) -> None:
        self._inner = inner
        self.filter, self.logic, self.flow = inner.filter, inner.logic, inner.flow
        self.context = inner.context

    @override
    def handle(self, raw: Mapping[str, Any] | Signal, view: DeskView, clock: Clock) -> Handled:
        name = readable_id(raw)
        if one_of(100, name):
            return Handled(name, FilterResult(name, False, "schema"))
        return self._inner.handle(raw, view, clock)


class DroppingPlan(AlteredPlan):
    """One signal in a hundred gets no answer."""

    @override
    def open(
        self,
        *,
        io: AgentIO,
        context: RecentContext,
        seeds: Seeds,
        logger: CoreAgentLogger | None = None,
        acceptor: Acceptor | None = None,
    ) -> CoreAgent:
        agent = super().open(io=io, context=context, seeds=seeds, logger=logger, acceptor=acceptor)
        return _DroppingAgent(agent)


class _ForgetfulFlow:
    """Begins every signal as if it had never seen one."""

    def __init__(self, make: Callable[[], Flow]) -> None:
        self._make = make

    def run(
        self,
        signal: Signal,
        decision: Decision,
        context: RecentContext,
        clock: Clock,
        *,
        paper: PaperFill | None = None,
    ) -> FlowResult:
        return self._make().run(signal, decision, context, clock, paper=paper)


class RepeatingPlan(AlteredPlan):
    """Neither the filter nor the flow knows what came before."""

    @override
    def make_filter(self, acceptor: Acceptor | None = None, seeds: Seeds | None = None) -> Filter:
        rules = tuple(rule for rule in FILTER_RULES if rule.stage != "dedupe")
        return SignalFilter(self.config.filter, acceptor, seeds, rules)

    @override
    def make_flow(
        self,
        io: AgentIO,
        seeds: Seeds | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_response: Callable[[AgentResponse, int], None] | None = None,
    ) -> Flow:
        return _ForgetfulFlow(lambda: self.inner.make_flow(io, seeds, on_transition, on_response))


class AlteredIO(AgentIO):
    """Another door to the same agents."""

    def __init__(self, inner: AgentIO) -> None:
        super().__init__(redactor=inner.redactor)
        self.inner = inner

    @override
    def can(self, name: AgentName, verb: str) -> bool:
        return self.inner.can(name, verb)

    @override
    def send(self, request: AgentRequest, clock: Clock) -> AgentResponse:
        return self.inner.send(request, clock)

    @override
    def ask_state(self, request: AgentRequest, clock: Clock) -> AgentResponse | None:
        return self.inner.ask_state(request, clock)

    @override
    def cancel(self, request: AgentRequest, clock: Clock) -> AgentResponse:
        return self.inner.cancel(request, clock)


class _ResendingIO(AlteredIO):
    """Takes every order without an answer for one that never arrived."""

    @override
    def ask_state(self, request: AgentRequest, clock: Clock) -> AgentResponse | None:
        return None


class _LeavingIO(AlteredIO):
    """Cannot take anything back."""

    @override
    def can(self, name: AgentName, verb: str) -> bool:
        return verb != "cancel" and self.inner.can(name, verb)


class OtherIOPlan(AlteredPlan):
    """The flow talks to its agents through another door."""

    door: Callable[[AgentIO], AgentIO]

    @override
    def make_flow(
        self,
        io: AgentIO,
        seeds: Seeds | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_response: Callable[[AgentResponse, int], None] | None = None,
    ) -> Flow:
        return self.inner.make_flow(type(self).door(io), seeds, on_transition, on_response)


class ResendingPlan(OtherIOPlan):
    """An order without an answer is sent again unasked."""

    door = _ResendingIO


class LeavingPlan(OtherIOPlan):
    """The rest of a partly filled order is left standing."""

    door = _LeavingIO


class _GreedyLogic:
    """Orders a tenth more than was asked for."""

    def __init__(self, inner: Logic) -> None:
        self._inner = inner

    def execute(
        self,
        signal: Signal,
        view: DeskView,
        context: RecentContext,
        result: FilterResult | None = None,
    ) -> Decision:
        decision = self._inner.execute(signal, view, context, result)
        return structs.replace(decision, size=1.1 * decision.size)


class GreedyPlan(AlteredPlan):
    """Every order is a tenth too large."""

    @override
    def make_logic(self) -> Logic:
        return _GreedyLogic(self.inner.make_logic())
