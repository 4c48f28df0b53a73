"""Self-test only: an agent and a desk with luck of their own, which means nothing.

Two of them that differ in nothing but ``salt`` are equally good and never do the same. A gate that
sees a regression between them has cried wolf. They are in no list of agents and desks: whoever
wants them imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.agents.desk.agent_io import AgentIO
from agent_gym.agents.desk.core_agent import DeskConfig, DeskPlan, Flow
from agent_gym.agents.desk.execution import RoutedExecution
from agent_gym.agents.desk.flow import Transition
from agent_gym.agents.desk.routes import Route
from agent_gym.agents.desk.schemas import AgentRequest, AgentResponse
from agent_gym.agents.rules.sma_cross import SmaCrossConfig, sma_cross
from agent_gym.core.clock import Clock
from agent_gym.core.registry import Config, Ref, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.evaluation.scenarios.plants_desk import AlteredIO
from agent_gym.evaluation.scenarios.plants_plan import AlteredPlan
from agent_gym.evaluation.scenarios.scenario import Subject

AGENT, DESK = "self-test/lucky-sma-cross", "self-test/lucky-desk"
FLIPPED_SHARE = 0.02
EXTRA_MS = 20.0  # mean time that a question takes longer, exponential


class LuckConfig(Config):
    """Which luck it is; every salt is as good as another."""

    salt: int = Field(default=0, ge=0)


def lucky_subject(salt: int) -> Subject:
    """Return agent and desk with the luck of a salt."""
    params = {"salt": salt}
    return Subject(desk=Ref(use=DESK, params=params), agent=Ref(use=AGENT, params=params))


@register("agent", AGENT, LuckConfig)
class LuckySmaCross:
    """Crossing averages that take the other side at 2 % of the closes; a series agent."""

    name = AGENT

    def __init__(self, config: LuckConfig) -> None:
        self._salt = config.salt
        self._rule = sma_cross(SmaCrossConfig())
        self.needs = self._rule.needs
        self._rng = np.random.Generator(np.random.PCG64(0))

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode."""
        self._rule.reset(start)
        self._rng = self._luck(start)

    def act(self, obs: Observation) -> Decision:
        """Follow the rule, or not."""
        made = self._rule.act(obs)
        if self._rng.random() >= FLIPPED_SHARE:
            return made
        return Decision(1.0 - float(made.action), made.signals, made.rationale)

    def observe(self, step: Step) -> None:
        """Learn nothing."""

    def targets(self, start: EpisodeStart, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Return the whole series at once, as act() would give it."""
        made = np.asarray(self._rule.targets(start, columns), dtype=np.float64)
        flipped = self._luck(start).random(made.size) < FLIPPED_SHARE
        return np.where(flipped, 1.0 - made, made)

    def _luck(self, start: EpisodeStart) -> np.random.Generator:
        return start.seeds.child("self-test luck", self._salt).rng()


class _LuckyIO(AlteredIO):
    """Every question takes a little longer, by luck."""

    def __init__(self, inner: AgentIO, seeds: Seeds) -> None:
        super().__init__(inner)
        self._rng = seeds.rng()

    @override
    def send(self, request: AgentRequest, clock: Clock) -> AgentResponse:
        clock.sleep_s(float(self._rng.exponential(EXTRA_MS)) / 1e3)
        return self.inner.send(request, clock)


class _LuckyPlan(AlteredPlan):
    """The jitter of retries and the time that questions take are drawn from the salt."""

    def __init__(self, inner: DeskPlan, salt: int) -> None:
        super().__init__(inner)
        self._salt = salt

    @override
    def make_flow(
        self,
        io: AgentIO,
        seeds: Seeds | None = None,
        on_transition: Callable[[Transition], None] | None = None,
        on_response: Callable[[AgentResponse, int], None] | None = None,
    ) -> Flow:
        luck = self._luck(seeds)
        door = _LuckyIO(io, luck.child("latency"))
        return self.inner.make_flow(door, luck, on_transition, on_response)

    @override
    def make_execution(
        self, routes: Sequence[Route], seeds: Seeds | None = None
    ) -> RoutedExecution:
        return self.inner.make_execution(routes, self._luck(seeds))

    def _luck(self, seeds: Seeds | None) -> Seeds:
        return (seeds or Seeds(0)).child("self-test luck", self._salt)


class LuckyDeskConfig(DeskConfig):
    """The built-in desk with a salt."""

    salt: int = Field(default=0, ge=0)


@register("desk", DESK, LuckyDeskConfig)
def lucky_desk(config: LuckyDeskConfig) -> DeskPlan:
    """Return the built-in desk with luck of its own."""
    return _LuckyPlan(DeskPlan(config), config.salt)
