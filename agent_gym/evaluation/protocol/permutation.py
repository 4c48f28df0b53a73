"""Random positions with the same turnover: is the timing better than chance?

A draw is the agent's own series of positions, turned by a random number of bars: it trades as
often, holds each position as long and in the same order; only when it does so is left to chance.
Turns by less than ``APART`` bars either way are left out. A position that is moved back by a few
bars meets the very returns that it was decided by: trend followers would be compared with draws
that saw their gains before they came, and their p-value would not be one. On a short test (less
than some twenty times that) the turns are too much alike, and p is too sharp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.exchange.series import run_sweep
from agent_gym.exchange.tape import Tape

DRAWS = 500
APART = 168  # bars that a position may look back on: a week of hours


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
    """Trade the targets and their turns in one compiled sweep."""
    wishes = _each(targets, seeds.child("random timing").rng(), draws)
    totals = run_sweep(tape, wishes, config.costs(), config.account())
    floor = config.account().ruin * config.capital
    ended = np.array([max(total["equity"], floor) for total in totals])
    growth = np.log(ended / config.capital)
    return RandomTiming(float(growth[0]), growth[1:])


def _each(targets: FloatArray, rng: np.random.Generator, draws: int) -> Iterator[FloatArray]:
    yield targets
    apart = min(APART, targets.size // 4)
    for _ in range(draws):
        yield turned(targets, int(rng.integers(apart, max(apart + 1, targets.size - apart))))


def turned(targets: FloatArray, bars: int) -> FloatArray:
    """Return the series moved on by some bars, its end put before its beginning.

    Example:
        >>> turned(np.array([0.0, 1.0, 1.0, -1.0]), 1).tolist()
        [-1.0, 0.0, 1.0, 1.0]
    """
    return np.roll(targets, bars)
