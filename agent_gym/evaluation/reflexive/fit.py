"""Realism: which mixture of echoes makes bars like the given ones, by simulated moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import Field

from agent_gym.agents.echo import ORDER, Search
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive import ClusteredNews, LinearImpact, ReflexiveConfig, simulate
from agent_gym.evaluation.reflexive.crowds import (
    between,
    echo_config,
    point_of,
    weights_at,
    with_echoes,
)
from agent_gym.evaluation.reflexive.moments import RealismTarget
from agent_gym.markets.bars import Bars

STRENGTHS = (0.002, 0.5)
PULLS = (0.001, 0.2)
CAPITALS = (0.1, 4.0)
NEWS_SHARES = (0.2, 1.2)  # of the deviation of the given returns
SPREADS = (0.05, 1.0)  # of the news' log deviation
FORGETTING = (0.2, 0.002)  # one less the memory of the news' deviation
FAMILIES = len(ORDER)
LAWS = 6
DIMENSIONS = FAMILIES + LAWS
Progress = Callable[[int, float], None]


class FitConfig(Config):
    """How long to look, and in which market."""

    market: ReflexiveConfig = Field(
        default=ReflexiveConfig(bars=2_000), description="what is not fitted"
    )
    generations: int = Field(default=8, ge=1, description="of the search")
    candidates: int = Field(default=12, ge=4, description="markets tried by generation")
    paths: int = Field(default=1, ge=1, description="courses simulated for each market")
    seed: int = Field(default=0, ge=0, description="of the search and of the courses")


@dataclass(frozen=True, slots=True, eq=False)
class FitResult:
    """The best market that was found.

    ``distance`` was minimised; ``fresh_distance`` is that of courses which the search never saw,
    and the one to quote. ``start_distance`` is that of the config's own market on the same courses,
    and ``crowdless_distance`` that of the fitted one without its crowd: if it is no larger, the
    news make the likeness and not the echoes.
    """

    market: ReflexiveConfig
    distance: float
    fresh_distance: float
    start_distance: float
    crowdless_distance: float
    misses: dict[str, float]
    target: RealismTarget
    config: FitConfig
    history: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports."""
        return {
            "market": self.market.model_dump(mode="json"),
            "distance": self.distance,
            "fresh_distance": self.fresh_distance,
            "start_distance": self.start_distance,
            "crowdless_distance": self.crowdless_distance,
            "misses": self.misses,
            "target": self.target.as_dict(),
            "config": self.config.model_dump(mode="json"),
            "history": list(self.history),
        }


def market_at(base: ReflexiveConfig, point: FloatArray, deviation: float) -> ReflexiveConfig:
    """Return the market at a point of the unit cube: mixture, capital, impact, pull and news."""
    capital, strength, pull, news, spread, memory = point[FAMILIES:].tolist()
    crowd = with_echoes(
        base, weights=weights_at(point[:FAMILIES]), capital_adv=between(*CAPITALS, capital)
    )
    law = {
        "impact": LinearImpact(strength=between(*STRENGTHS, strength)),
        "pull": between(*PULLS, pull),
        "sigma": deviation * between(*NEWS_SHARES, news),
        "clustering": ClusteredNews(
            spread=between(*SPREADS, spread), memory=1.0 - between(*FORGETTING, memory)
        ),
    }
    return crowd.model_copy(update=law)


def mean_distance(
    market: ReflexiveConfig, target: RealismTarget, seeds: Seeds, paths: int
) -> float:
    """Return the mean distance of some courses of a market."""
    courses = (simulate(market, seeds.child(path)).settled for path in range(paths))
    return float(np.mean([target.distance(bars) for bars in courses]))


def fit_crowd(bars: Bars, config: FitConfig, progress: Progress | None = None) -> FitResult:
    """Search for the market whose bars have the moments of the given ones.

    Fitted are the weights of the families, the crowd's capital, a linear impact, the pull, and how
    large the news are and how they cluster. All candidates meet the same draws, so that they differ
    by what they are and not by luck.
    """
    target = RealismTarget.of(bars)
    deviation = target.values["deviation_bp"] * 1e-4
    seeds = Seeds(config.seed).child("fit")
    base = point_of(echo_config(config.market).mixture)
    search = Search(DIMENSIONS, config.candidates, np.concatenate([base, np.full(LAWS, 0.5)]))
    best, best_distance, history = config.market, np.inf, []
    for generation in range(config.generations):
        points = search.ask(seeds.child("ask", generation))
        markets = [market_at(config.market, point, deviation) for point in points]
        losses = np.array(
            [mean_distance(m, target, seeds.child("course"), config.paths) for m in markets]
        )
        search.tell(points, losses)
        place = int(losses.argmin())
        if losses[place] < best_distance:
            best, best_distance = markets[place], float(losses[place])
        history.append(best_distance)
        if progress is not None:
            progress(generation + 1, best_distance)
    crowdless = best.model_copy(update={"crowd": None})
    fresh, paths = seeds.child("fresh"), max(2, config.paths)
    return FitResult(
        market=best,
        distance=best_distance,
        fresh_distance=mean_distance(best, target, fresh, paths),
        start_distance=mean_distance(config.market, target, fresh, paths),
        crowdless_distance=mean_distance(crowdless, target, fresh, paths),
        misses=target.misses(simulate(best, fresh.child(0)).settled),
        target=target,
        config=config,
        history=history,
    )
