"""A desk's plan with one part made otherwise: what every fault in a desk is built on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

from typing_extensions import override

from agent_gym.agents.desk.acceptor import Acceptor
from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.core_agent import DeskPlan, Filter, Flow, Logic
from agent_gym.agents.desk.execution import RoutedExecution
from agent_gym.agents.desk.flow import Transition
from agent_gym.agents.desk.protection import DrawdownBreaker, ProtectionKeeper
from agent_gym.agents.desk.routes import Route
from agent_gym.agents.desk.schemas import AgentResponse
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.sabotage import Sabotage


def one_of(n: int, name: str) -> bool:
    """Say of a name whether it is one of n, always the same ones."""
    digest = blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % n == 0


class AlteredPlan(DeskPlan):
    """A plan that makes every part as another plan does; a fault overrides one."""

    def __init__(self, inner: DeskPlan) -> None:
        super().__init__(inner.config)
        self.inner = inner

    @override
    def make_filter(self, acceptor: Acceptor | None = None, seeds: Seeds | None = None) -> Filter:
        return self.inner.make_filter(acceptor, seeds)

    @override
    def make_logic(self) -> Logic:
        return self.inner.make_logic()

    @override
    def make_flow(
        self,
        io: AgentIO,
        seeds: Seeds | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_response: Callable[[AgentResponse, int], None] | None = None,
    ) -> Flow:
        return self.inner.make_flow(io, seeds, on_transition, on_response)

    @override
    def make_execution(
        self, routes: Sequence[Route], seeds: Seeds | None = None
    ) -> RoutedExecution:
        return self.inner.make_execution(routes, seeds)

    @override
    def make_protection(self, route: Route, prefix: str = "guard") -> ProtectionKeeper:
        return self.inner.make_protection(route, prefix)

    @override
    def make_breaker(self, keepers: Sequence[ProtectionKeeper] = ()) -> DrawdownBreaker:
        return self.inner.make_breaker(keepers)


class Altered(Sabotage):
    """A fault that puts an altered plan in place of the desk's own."""

    def __init__(self, alter: Callable[[DeskPlan], DeskPlan]) -> None:
        self._alter = alter

    @override
    def plan(self, plan: DeskPlan) -> DeskPlan:
        return self._alter(plan)
