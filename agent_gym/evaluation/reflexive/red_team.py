"""The red team: a search for the crowd in which an agent loses most, among realistic ones.

It goes around a crowd that it is given, best one that was fitted to real bars. Kept apart from the
fit on purpose: a policy may train in a fitted market and is then tested here.
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
from agent_gym.evaluation.reflexive.crowds import (
    between,
    echo_config,
    point_of,
    weights_at,
    with_echoes,
)
from agent_gym.evaluation.reflexive.episodes import AgentFactory, growth
from agent_gym.evaluation.reflexive.fit import mean_distance
from agent_gym.evaluation.reflexive.moments import RealismTarget

FAMILIES = len(ORDER)
REACH = 0.25  # of the unit cube, by which mixture and genome may leave the first crowd
FACTORS = {"capital": 8.0, "impact": 8.0, "pull": 4.0, "news": 1.5}
"""By how much a law may become stronger or weaker than it was at first."""
DIMENSIONS = FAMILIES + GENOME_SIZE + len(FACTORS)
PENALTY = 1.0  # log growth by which a market is worse for each unit beyond the bound
Progress = Callable[[int, float], None]


class RedTeamConfig(Config):
    """How long to look, in which market, and how unreal a crowd may be."""

    market: ReflexiveConfig = Field(default=ReflexiveConfig(bars=500), description="where to begin")
    largest_distance: float = Field(
        default=1.5,
        gt=0.0,
        description="realism distance that no accepted crowd may pass; 1 is that of a real stretch",
    )
    generations: int = Field(default=6, ge=0, description="of the search; 0: the first crowd alone")
    candidates: int = Field(default=8, ge=4, description="crowds tried by generation")
    episodes: int = Field(default=1, ge=1, description="episodes played in each crowd")
    paths: int = Field(default=2, ge=1, description="courses that realism is judged by")
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
    """What the search found.

    ``baseline`` is the crowd that was begun with; ``worst`` may be the same, and is None if that
    lies beyond the bound: then nothing was searched. ``worst`` was searched for, so its loss is
    flattered by luck. ``fresh_worst`` and ``fresh_baseline`` are the same two crowds under seeds
    that the search never saw: quote these. ``accepted`` counts those tried that kept to the bound.
    """

    baseline: Attack
    worst: Attack | None
    fresh_baseline: Attack
    fresh_worst: Attack | None
    tried: int
    accepted: int
    target: RealismTarget
    config: RedTeamConfig
    history: list[float]

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
    """Return the crowd at a point of the unit cube around the one of a market.

    The middle of the cube is that crowd itself, if it has a genome. The numbers are those of the
    mixture, of the genome, and of the laws: capital, impact, pull, and the size of the news.
    """
    echoes, away = echo_config(market), REACH * (2.0 * point - 1.0)
    mixture = point_of(echoes.mixture) + away[:FAMILIES]
    first = np.full(GENOME_SIZE, 0.5) if echoes.genome is None else np.array(echoes.genome)
    genome = np.clip(first + away[FAMILIES : FAMILIES + GENOME_SIZE], 0.0, 1.0)
    now = {
        "capital": echoes.capital_adv,
        "impact": market.impact.strength,
        "pull": market.pull,
        "news": market.sigma,
    }
    shares = point[FAMILIES + GENOME_SIZE :].tolist()
    law = {
        name: between(now[name] / factor, now[name] * factor, share)
        for (name, factor), share in zip(FACTORS.items(), shares, strict=True)
    }
    changed = with_echoes(
        market, weights=weights_at(mixture), genome=genome.tolist(), capital_adv=law["capital"]
    )
    impact = market.impact.model_copy(update={"strength": law["impact"]})
    update = {"impact": impact, "pull": min(law["pull"], 1.0), "sigma": law["news"]}
    return changed.model_copy(update=update)


def red_team(
    agent: AgentFactory,
    target: RealismTarget,
    config: RedTeamConfig,
    progress: Progress | None = None,
) -> RedTeamResult:
    """Search around a crowd for the one that costs an agent most and still looks like the target.

    A first crowd beyond the bound is told, and nothing is searched: around what does not look real
    there is little that does.

    Args:
        agent: Makes a fresh agent for each episode.
        target: What markets should look like; a crowd is judged by its bars without the agent.
        config: The budget and the bound.
        progress: Told the number of the generation and the agent's lowest growth so far.
    """
    seeds = Seeds(config.seed).child("red-team")

    def attack(market: ReflexiveConfig, node: Seeds) -> Attack:
        made = [growth(agent(), market, node.child(i)) for i in range(config.episodes)]
        distance = mean_distance(market, target, node.child("realism"), config.paths)
        return Attack(market, float(np.mean(made)), distance)

    seen, bound = seeds.child("seen"), config.largest_distance
    baseline = attack(config.market, seen)
    worst = [baseline] if baseline.distance <= bound else []
    generations = config.generations if worst else 0
    search = Search(DIMENSIONS, config.candidates)
    accepted, history = 0, []
    for generation in range(generations):
        points = search.ask(seeds.child("ask", generation))
        attacks = [attack(crowd_at(config.market, point), seen) for point in points]
        over = np.array([max(0.0, a.distance - bound) for a in attacks])
        search.tell(points, np.array([a.growth for a in attacks]) + PENALTY * over)
        real = [a for a in attacks if a.distance <= bound]
        accepted += len(real)
        worst = [min([*worst, *real], key=_growth)]
        history.append(worst[0].growth)
        if progress is not None:
            progress(generation + 1, history[-1])
    return RedTeamResult(
        baseline=baseline,
        worst=worst[0] if worst else None,
        fresh_baseline=attack(config.market, seeds.child("fresh")),
        fresh_worst=attack(worst[0].market, seeds.child("fresh")) if worst else None,
        tried=generations * config.candidates,
        accepted=accepted,
        target=target,
        config=config,
        history=history,
    )


def _growth(attack: Attack) -> float:
    return attack.growth
