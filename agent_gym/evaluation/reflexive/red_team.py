"""The red team: a search for the crowd in which an agent loses most, among realistic ones.

Kept apart from the fit on purpose: a policy may train in a fitted market and is then tested here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from agent_gym.agents.echo import GENOME_SIZE, ORDER, Search
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive import ReflexiveConfig
from agent_gym.evaluation.reflexive.crowds import echo_config, point_of, weights_at, with_echoes
from agent_gym.evaluation.reflexive.episodes import AgentFactory, growth
from agent_gym.evaluation.reflexive.fit import mean_distance
from agent_gym.evaluation.reflexive.moments import RealismTarget

FAMILIES = len(ORDER)
DIMENSIONS = FAMILIES + GENOME_SIZE
PENALTY = 1.0  # log growth by which a market is worse for each unit beyond the bound
Progress = Callable[[int, float | None], None]


class RedTeamConfig(Config):
    """How long to look, in which market, and how unreal a crowd may be."""

    market: ReflexiveConfig = Field(default=ReflexiveConfig(bars=500), description="where to begin")
    largest_distance: float = Field(
        default=2.5, gt=0.0, description="realism distance that no accepted crowd may pass"
    )
    realism_bars: int = Field(
        default=2_000, ge=200, description="bars of the courses that realism is judged by"
    )
    generations: int = Field(default=6, ge=1, description="of the search")
    candidates: int = Field(default=8, ge=4, description="crowds tried by generation")
    episodes: int = Field(default=1, ge=1, description="episodes played in each crowd")
    seed: int = Field(default=0, ge=0, description="of the search, the news and the agent")


@dataclass(frozen=True, slots=True)
class Attack:
    """One crowd, what the agent made in it, and how far from real it is."""

    market: ReflexiveConfig
    growth: float
    distance: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports."""
        market = self.market.model_dump(mode="json")
        return {"market": market, "growth": self.growth, "distance": self.distance}


@dataclass(frozen=True, slots=True, eq=False)
class RedTeamResult:
    """What the search found; None where no crowd kept to the bound.

    ``worst`` was searched for, so its loss is flattered by luck. ``fresh_worst`` and
    ``fresh_baseline`` are the same two crowds under seeds that the search never saw: quote these.
    """

    baseline: Attack
    worst: Attack | None
    fresh_baseline: Attack
    fresh_worst: Attack | None
    tried: int
    accepted: int
    target: RealismTarget
    config: RedTeamConfig
    history: list[float | None]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports."""
        return {
            "baseline": self.baseline.as_dict(),
            "worst": None if self.worst is None else self.worst.as_dict(),
            "fresh_baseline": self.fresh_baseline.as_dict(),
            "fresh_worst": None if self.fresh_worst is None else self.fresh_worst.as_dict(),
            "tried": self.tried,
            "accepted": self.accepted,
            "target": self.target.as_dict(),
            "config": self.config.model_dump(mode="json"),
            "history": list(self.history),
        }


def crowd_at(market: ReflexiveConfig, point: FloatArray) -> ReflexiveConfig:
    """Return the market with the crowd at a point of the unit cube: mixture, then genome."""
    genome = np.clip(point[FAMILIES:], 0.0, 1.0).tolist()
    return with_echoes(market, weights=weights_at(point[:FAMILIES]), genome=genome)


def red_team(
    agent: AgentFactory,
    target: RealismTarget,
    config: RedTeamConfig,
    progress: Progress | None = None,
) -> RedTeamResult:
    """Search for the crowd that costs an agent most and still looks like the target.

    Args:
        agent: Makes a fresh agent for each episode.
        target: What markets should look like; a crowd is judged by its bars without the agent.
        config: The budget and the bound.
        progress: Told the number of the generation and the agent's lowest growth so far.
    """
    seeds = Seeds(config.seed).child("red-team")

    def attack(market: ReflexiveConfig, node: Seeds) -> Attack:
        made = [growth(agent(), market, node.child(i)) for i in range(config.episodes)]
        longer = market.model_copy(update={"bars": config.realism_bars})
        distance = mean_distance(longer, target, node.child("realism"), config.episodes)
        return Attack(market, float(np.mean(made)), distance)

    first = point_of(echo_config(config.market).mixture)
    start = np.concatenate([first, np.full(GENOME_SIZE, 0.5)])
    search = Search(DIMENSIONS, config.candidates, start)
    worst, accepted, history = None, 0, []
    for generation in range(config.generations):
        points = search.ask(seeds.child("ask", generation))
        attacks = [attack(crowd_at(config.market, p), seeds.child("seen")) for p in points]
        over = np.array([max(0.0, a.distance - config.largest_distance) for a in attacks])
        search.tell(points, np.array([a.growth for a in attacks]) + PENALTY * over)
        real = [a for a in attacks if a.distance <= config.largest_distance]
        accepted += len(real)
        worst = min([*([] if worst is None else [worst]), *real], key=_growth, default=None)
        history.append(None if worst is None else worst.growth)
        if progress is not None:
            progress(generation + 1, history[-1])
    return RedTeamResult(
        baseline=attack(config.market, seeds.child("seen")),
        worst=worst,
        fresh_baseline=attack(config.market, seeds.child("fresh")),
        fresh_worst=None if worst is None else attack(worst.market, seeds.child("fresh")),
        tried=config.generations * config.candidates,
        accepted=accepted,
        target=target,
        config=config,
        history=history,
    )


def _growth(attack: Attack) -> float:
    return attack.growth
