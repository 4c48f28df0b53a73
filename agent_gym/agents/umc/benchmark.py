"""UMC as a player of benchmark snapshots: one mind for each perpetual, learned while playing.

A snapshot shows several markets at once and no past, so there is nothing to learn from before it
begins. Each perpetual has a UMC agent of its own that learns from the ticks seen so far, now and
then anew. Before the first lesson, and where a lesson fails, it holds nothing; questions with a yes
or a no are not its business.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import Field

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.market_gi import MarketGIConfig
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Config, Ref, register
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step

NAME = "umc/benchmark"
KIND, PRICE, OPEN = "perpetual", "price", "open"
WARM_TICKS = 20  # shown again after a lesson, so that volatility is known; few count twice
# News of a snapshot move its prices by whole deviations; inputs of other markets by hundredths.
NEWS = MarketGIConfig(
    tiers=(Ref(use="umc/exact", params={"slopes": [0.1, 0.2, 0.4, 0.8]}),),
)


class UMCBenchmarkConfig(Config):
    """When it learns, and what it is."""

    learn_ticks: int = Field(
        default=40, ge=WARM_TICKS, le=100_000, description="ticks from one lesson to the next"
    )
    umc: UMCConfig = Field(
        default=UMCConfig(inputs=("gap",), model=NEWS),
        description="the agent of each perpetual; inputs are columns that the world has for a "
        "market",
    )


@dataclass(slots=True, eq=False)
class Desk:
    """One perpetual: where its columns are, what was seen, and who has learned from it."""

    at: int
    places: dict[str, int]
    open_at: int
    start: EpisodeStart
    seen: dict[str, list[float]] = field(default_factory=dict)
    agent: UMCAgent | None = None
    since: int = 0

    def look(self, row: FloatArray) -> None:
        """Take in one tick."""
        for name, place in self.places.items():
            self.seen.setdefault(name, []).append(float(row[place]))

    @property
    def ticks(self) -> int:
        """Return how many ticks were seen."""
        return len(self.seen[PRICE])

    def columns(self, first: int = 0) -> dict[str, FloatArray]:
        """Return what was seen from a tick on, as UMC reads it."""
        found = {"close": np.exp(self.seen[PRICE][first:])}
        for name in list(self.places)[1:]:
            found[name] = np.array(self.seen[name][first:])
            found[f"{name}_known"] = np.ones(self.ticks - first)
        return found

    def learn(self, config: UMCConfig) -> None:
        """Learn from all that was seen; what teaches nothing leaves nobody who could decide."""
        agent, self.agent = UMCAgent(config), None
        lesson = replace(self.start, seeds=self.start.seeds.child(self.at, self.ticks))
        try:
            agent.fit(lesson, self.columns())
            agent.targets(self.start, self.columns())  # a plan may not come out of so few ticks
        except (AgentError, DataError):
            return
        self.agent, self.since = agent, max(0, self.ticks - WARM_TICKS)

    def target(self) -> float:
        """Return the share of the budget to hold."""
        if self.agent is None:
            return 0.0
        return float(self.agent.targets(self.start, self.columns(self.since))[-1])


class UMCBenchmarkAgent:
    """Implements Agent for worlds with one target a market."""

    name = NAME

    def __init__(self, config: UMCBenchmarkConfig) -> None:
        self.config = config
        self._markets: tuple[str, ...] = ()
        self._desks: list[Desk] = []

    def reset(self, start: EpisodeStart) -> None:
        """Find the markets; nothing is known yet."""
        ends = f"/{KIND}"
        self._markets = tuple(
            name.removesuffix(ends) for name in start.feature_names if name.endswith(ends)
        )
        if not self._markets:
            raise AgentError(
                "this world shows no markets side by side",
                where=NAME,
                expected=f"columns like pm-1{ends}",
                remedy="Play a benchmark snapshot, or name the agent umc",
            )
        self._kinds = [start.column(f"{name}{ends}") for name in self._markets]
        self._start, self._desks = start, []
        self._tick = 0

    def act(self, obs: Observation) -> Decision:
        """Take in one tick and return the targets."""
        row = obs.features
        if self._tick == 0:
            self._desks = [self._desk(m) for m, at in enumerate(self._kinds) if row[at] > 0.0]
        self._tick += 1
        targets = np.zeros(len(self._markets))
        for desk in self._desks:
            desk.look(row)
            if self._tick % self.config.learn_ticks == 0:
                desk.learn(self.config.umc)
            if row[desk.open_at] > 0.0:
                targets[desk.at] = desk.target()
        return Decision(targets)

    def observe(self, step: Step) -> None:
        """Learn nothing from rewards: prices say it all."""

    def _desk(self, market: int) -> Desk:
        name = self._markets[market]
        try:
            places = {
                one: self._start.column(f"{name}/{one}") for one in (PRICE, *self.config.umc.inputs)
            }
        except LookupError as error:
            raise AgentError(
                "the world does not show what this agent reads",
                where=f"{NAME}, market {name}",
                found=", ".join(self.config.umc.inputs),
            ) from error
        return Desk(market, places, self._start.column(f"{name}/{OPEN}"), self._start)


@register("agent", NAME, UMCBenchmarkConfig)
def umc_benchmark(config: UMCBenchmarkConfig) -> UMCBenchmarkAgent:
    """Play the perpetuals of a benchmark snapshot, learning each of them from its own ticks."""
    return UMCBenchmarkAgent(config)
