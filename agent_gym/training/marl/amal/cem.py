"""The cross-entropy method: shifts are drawn in pairs, judged by ranks, and drawn nearer the best.

Only the shape of the cloud is learned. Its size is set from outside, by how differently the teams
behave, because a step in weights means nothing by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.batch import Arrays

LEAST_SHARE = 0.1
"""No direction is given up for good: its spread stays above this share of the mean spread."""


class CrossEntropy:
    """A cloud of shifts around a mean, in as many directions as it is given.

    Args:
        dim: How many directions.
        config: How it selects.
        seeds: Where draws come from; each generation has its own.
    """

    def __init__(self, dim: int, config: AmalConfig, seeds: Seeds) -> None:
        self._config, self._seeds = config, seeds
        self.generation = 0
        self._begin(dim)

    def _begin(self, dim: int) -> None:
        self.mean: FloatArray = np.zeros(dim)
        self.spread: FloatArray = np.ones(dim)

    def ask(self) -> FloatArray:
        """Return the next generation, ``[teams, directions]``; every shift has its mirror image."""
        rng = self._seeds.child("generation", self.generation).rng()
        teams = self._config.num_auxiliary_agents
        half = rng.standard_normal((-(-teams // 2), len(self.mean)))
        drawn = np.concatenate([half, -half])[:teams]
        shifts: FloatArray = self.mean + self.spread * drawn
        return shifts

    def tell(self, shifts: FloatArray, fitness: FloatArray) -> None:
        """Move mean and spread towards the best; without selection, forget everything."""
        self.generation += 1
        if not self._config.cem_selection:
            self._begin(len(self.mean))
            return
        best = self.elites(fitness)
        weights = np.log(len(best) + 1.0) - np.log(np.arange(1, len(best) + 1))
        weights /= weights.sum()
        chosen = shifts[best]
        variance = (weights[:, None] * np.square(chosen - self.mean)).sum(axis=0)
        spread = np.sqrt(variance)
        self.spread = np.maximum(spread, LEAST_SHARE * spread.mean())
        self.mean = self._config.cem_recentre * (weights[:, None] * chosen).sum(axis=0)

    def elites(self, fitness: FloatArray) -> NDArray[np.int64]:
        """Return the numbers of the best, the very best first."""
        count = max(1, round(self._config.cem_elites * len(fitness)))
        return np.argsort(-fitness, kind="stable")[:count]

    def resize(self, factor: float) -> None:
        """Make the whole cloud larger or smaller."""
        self.mean, self.spread = factor * self.mean, factor * self.spread

    def state(self) -> Arrays:
        """Return all that decides how it goes on."""
        return {
            "mean": self.mean.copy(),
            "spread": self.spread.copy(),
            "generation": np.array([self.generation]),
        }

    def restore(self, arrays: Arrays) -> None:
        """Go on where another one stood."""
        self.mean, self.spread = arrays["mean"].copy(), arrays["spread"].copy()
        self.generation = int(arrays["generation"][0])


def by_ranks(weights: tuple[float, ...], scores: tuple[FloatArray, ...]) -> FloatArray:
    """Return a fitness from several scores: weighted ranks between 0 and 1, ties shared.

    Example:
        >>> by_ranks((1.0,), (np.array([7.0, 9.0, 7.0]),)).tolist()
        [0.25, 1.0, 0.25]
    """
    ranks = [(rankdata(each) - 1.0) / max(len(each) - 1, 1) for each in scores]
    total: FloatArray = np.sum([w * rank for w, rank in zip(weights, ranks, strict=True)], axis=0)
    return total
