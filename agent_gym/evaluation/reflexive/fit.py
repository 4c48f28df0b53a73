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
FIRST_LAWS = np.array([0.25, 0.25, 0.5, 0.9, 0.5, 0.5])
"""Where the search begins: news about as large as the returns, and a crowd that hardly moves them;
echoes have to earn their influence."""
LAWS = len(FIRST_LAWS)
DIMENSIONS = FAMILIES + LAWS
FINALISTS, FINAL_PATHS = 3, 3
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

    The search is by a few courses, and what is best by them was lucky with them: so the best ones
    go through other courses, which decide. ``distance`` is that of the search; ``fresh_distance``
    that of fresh courses, and the one to quote. ``start_distance`` is that of the config's own
    market on these, and what they show to be less real than the start is not returned: the start
    is, and ``moved`` is false. ``crowdless_distance`` is that of the fitted market without its
    crowd: if it is no larger, the news make the likeness and not the echoes.
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

    @property
    def moved(self) -> bool:
        """Say whether anything was found that looks more real than the start."""
        return self.market != self.config.market

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports."""
        return {
            "market": self.market.model_dump(mode="json"),
            "distance": self.distance,
            "fresh_distance": self.fresh_distance,
            "start_distance": self.start_distance,
            "crowdless_distance": self.crowdless_distance,
            "moved": self.moved,
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
    """Return the mean distance of some courses of a market, each as long as a real stretch."""
    long = market.model_copy(update={"bars": target.stretch_bars})
    courses = (simulate(long, seeds.child(path)).settled for path in range(paths))
    return float(np.mean([target.distance(bars) for bars in courses]))


def _quiet(market: ReflexiveConfig) -> ReflexiveConfig:
    """Return a market whose crowd is as small and moves it as little as a fit allows."""
    least = LinearImpact(strength=STRENGTHS[0])
    return with_echoes(market, capital_adv=CAPITALS[0]).model_copy(update={"impact": least})


def fit_crowd(bars: Bars, config: FitConfig, progress: Progress | None = None) -> FitResult:
    """Search for the market whose bars have the moments of the given ones.

    Fitted are the weights of the families, the crowd's capital, a linear impact, the pull, and how
    large the news are and how they cluster. All candidates meet the same draws, so that they differ
    by what they are and not by luck. Beside the best of them, other courses judge the config's own
    market and the best one with a crowd that hardly moves it.
    """
    target = RealismTarget.of(bars, config.market.bars)
    deviation = target.values["deviation_bp"] * 1e-4
    seeds = Seeds(config.seed).child("fit")
    base = point_of(echo_config(config.market).mixture)
    centre = np.concatenate([base, FIRST_LAWS])
    search = Search(DIMENSIONS, config.candidates, centre)

    def judged(market: ReflexiveConfig) -> tuple[float, ReflexiveConfig]:
        return mean_distance(market, target, seeds.child("course"), config.paths), market

    tried = [judged(market_at(config.market, centre, deviation))]
    history: list[float] = []
    for generation in range(config.generations):
        points = search.ask(seeds.child("ask", generation))
        markets = [market_at(config.market, point, deviation) for point in points]
        found = [judged(market) for market in markets]
        search.tell(points, np.array([loss for loss, _ in found]))
        tried += found
        history.append(min(loss for loss, _ in tried))
        if progress is not None:
            progress(generation + 1, history[-1])
    tried.sort(key=lambda pair: pair[0])
    last = [judged(config.market), judged(_quiet(tried[0][1])), *tried[:FINALISTS]]
    again = [mean_distance(m, target, seeds.child("final"), FINAL_PATHS) for _, m in last]
    best_distance, best = last[int(np.argmin(again))]
    fresh, paths = seeds.child("fresh"), max(FINAL_PATHS, config.paths)
    start = mean_distance(config.market, target, fresh, paths)
    fresh_distance = mean_distance(best, target, fresh, paths)
    if fresh_distance > start:
        best_distance, best = judged(config.market)
        fresh_distance = start
    crowdless = best.model_copy(update={"crowd": None})
    return FitResult(
        market=best,
        distance=best_distance,
        fresh_distance=fresh_distance,
        start_distance=start,
        crowdless_distance=mean_distance(crowdless, target, fresh, paths),
        misses=target.misses(simulate(best, fresh.child(0)).settled),
        target=target,
        config=config,
        history=history,
    )
