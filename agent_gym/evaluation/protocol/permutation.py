"""Random positions with the same turnover: is the timing better than chance?

The holding times of each position are shuffled among its own holdings, then the whole is turned by
a random number of bars. So every draw trades as often, holds each position as long and in the same
order as the agent did; only when it does so is left to chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.exchange.series import run_sweep
from agent_gym.exchange.tape import Tape

DRAWS = 500


@dataclass(frozen=True, slots=True, eq=False)
class RandomTiming:
    """Log growth of the agent's positions and of the draws, on one tape under one set of costs."""

    own: float
    drawn: FloatArray

    @property
    def p_value(self) -> float:
        """Return the share of draws that did at least as well, the agent itself among them."""
        return float(1 + np.count_nonzero(self.drawn >= self.own)) / (1 + self.drawn.size)


def random_timing(
    tape: Tape, targets: FloatArray, config: BacktestConfig, seeds: Seeds, draws: int = DRAWS
) -> RandomTiming:
    """Trade the targets and their shuffles in one compiled sweep."""
    wishes = _each(targets, seeds.child("random timing").rng(), draws)
    totals = run_sweep(tape, wishes, config.costs(), config.account())
    floor = config.account().ruin * config.capital
    ended = np.array([max(total["equity"], floor) for total in totals])
    growth = np.log(ended / config.capital)
    return RandomTiming(float(growth[0]), growth[1:])


def _each(targets: FloatArray, rng: np.random.Generator, draws: int) -> Iterator[FloatArray]:
    yield targets
    holdings = Holdings.of(targets)
    for _ in range(draws):
        yield holdings.shuffled(rng)


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """A series of targets as holdings: what was held, one after the other, and for how long.

    Example:
        >>> held = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        >>> holdings = Holdings.of(held)
        >>> holdings.lengths.tolist(), int(holdings.shuffled(Seeds(1).rng()).sum())
        ([1, 2, 1, 1, 3], 3)
    """

    values: FloatArray
    lengths: NDArray[np.int64]
    order: NDArray[np.intp]

    @classmethod
    def of(cls, targets: FloatArray) -> Holdings:
        """Return the holdings of a series."""
        starts = np.flatnonzero(np.diff(targets, prepend=np.nan) != 0.0)
        values = targets[starts]
        lengths = np.diff(starts, append=targets.size).astype(np.int64)
        return cls(values, lengths, np.argsort(values, kind="stable"))

    def shuffled(self, rng: np.random.Generator) -> FloatArray:
        """Return the series with holding times shuffled within each position, turned by chance."""
        # By position, and by chance within one position: lengths meet holdings of the same value.
        chance = np.lexsort((rng.random(self.values.size), self.values))
        lengths = np.empty_like(self.lengths)
        lengths[self.order] = self.lengths[chance]
        turned: FloatArray = np.roll(
            np.repeat(self.values, lengths), int(rng.integers(lengths.sum()))
        )
        return turned
