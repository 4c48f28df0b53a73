"""Random positions with the same turnover: is the timing better than chance?

A draw is the agent's own series of positions, turned by a random number of bars: it trades as
often, holds each position as long and in the same order; only when it does so is left to chance.
Turns by less than ``APART`` bars either way are left out. A position that is moved back by a few
bars meets the very returns that it was decided by: trend followers would be compared with draws
that saw their gains before they came, and their p-value would not be one.

Turns that lie closer together than a position lasts are nearly the same draw, so 500 of them may be
worth only ten, and to beat all ten comes by luck once in eleven times. How far the draws of a
series go apart follows from the autocorrelation of its positions; Student's law with as many
degrees of freedom says how rare the gain is. Who is in the market when it is rough risks more than
the draws do, and is measured by what was risked. The p-value is the larger of that and the plain
share of draws that did as well, which also holds where gains are not normal.

Below ``LEAST_BARS`` there is no p-value. That hangs on the length alone: to leave it out where the
draws turned out to be worth little would keep the paths on which a rule changed its mind often, and
these are the ones that suit reversion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.exchange.series import run_sweep
from agent_gym.exchange.tape import Tape

DRAWS = 500
APART = 168  # bars that a position may look back on: a week of hours
LEAST_BARS = 4 * APART  # half of all turns can be drawn, all of them a week apart


RANGE = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class RandomDraws:
    """What random positions with the same turnover came to, as log growth.

    Attributes:
        draws: How many.
        mean: Of all draws.
        low: A twentieth of the draws grew less.
        high: A twentieth grew more.
    """

    draws: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class RandomTiming:
    """Log growth of the agent's positions and of the draws, on one tape under one set of costs.

    Attributes:
        own: Growth of the positions as they were.
        drawn: Growth of each draw.
        bars: How long the series of positions is.
        variance: Of the own growth less the mean of the draws, if there is nothing in the timing.
        freedom: How many degrees of freedom that variance was estimated with.
    """

    own: float
    drawn: FloatArray
    bars: int
    variance: float
    freedom: float

    @property
    def unknown(self) -> str | None:
        """Return why there is no p-value, None if there is one."""
        if self.bars < LEAST_BARS:
            return f"{self.bars:,} tested bars, {LEAST_BARS:,} are needed"
        return None

    @property
    def p_value(self) -> float | None:
        """Return how rare such a growth is by chance, None where that cannot be said."""
        if self.unknown is not None:
            return None
        share = float(1 + np.count_nonzero(self.drawn >= self.own)) / (1 + self.drawn.size)
        if not self.variance > 0.0:
            return share
        score = (self.own - float(self.drawn.mean())) / np.sqrt(self.variance)
        return max(share, float(t.sf(score, self.freedom)))

    @property
    def draws(self) -> RandomDraws:
        """Return what the draws came to."""
        low, high = np.quantile(self.drawn, RANGE)
        return RandomDraws(self.drawn.size, float(self.drawn.mean()), float(low), float(high))

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RandomTiming:
        """Return what another process sent."""
        return cls(**dict(row) | {"drawn": np.array(row["drawn"])})

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as another process sends them."""
        return {
            "own": self.own,
            "drawn": self.drawn.tolist(),
            "bars": self.bars,
            "variance": self.variance,
            "freedom": self.freedom,
        }


def random_timing(
    tape: Tape, targets: FloatArray, config: BacktestConfig, seeds: Seeds, draws: int = DRAWS
) -> RandomTiming:
    """Trade the targets and their turns in one compiled sweep."""
    turns = drawn_turns(targets.size, seeds.child("random timing").rng(), draws)
    totals = run_sweep(tape, _each(targets, turns), config.costs(), config.account())
    floor = config.account().ruin * config.capital
    ended = np.array([max(total["equity"], floor) for total in totals])
    growth = np.log(ended / config.capital)
    drawn = growth[1:]
    factor, freedom = _likeness(targets, turns)
    factor *= _roughness(targets, tape.bars.close)
    variance = factor * float(np.sum((drawn - drawn.mean()) ** 2))
    return RandomTiming(float(growth[0]), drawn, targets.size, variance, freedom)


def together(timings: Sequence[RandomTiming]) -> RandomTiming:
    """Return the timing over several series that have nothing to do with each other, as one.

    Growths and variances add up; the degrees of freedom are those of Welch and Satterthwaite.
    """
    variance = sum(each.variance for each in timings)
    parts = sum(each.variance**2 / each.freedom for each in timings if each.variance > 0.0)
    return RandomTiming(
        own=float(np.sum([each.own for each in timings])),
        drawn=np.sum([each.drawn for each in timings], axis=0),
        bars=min(each.bars for each in timings),
        variance=variance,
        freedom=variance**2 / parts if parts > 0.0 else 0.0,
    )


def drawn_turns(bars: int, rng: np.random.Generator, draws: int) -> NDArray[np.int64]:
    """Return by how many bars each draw is turned."""
    apart = min(APART, bars // 4)
    return rng.integers(apart, max(apart + 1, bars - apart), draws)


def _each(targets: FloatArray, turns: NDArray[np.int64]) -> Iterator[FloatArray]:
    yield targets
    for turn in turns.tolist():
        yield turned(targets, turn)


def _likeness(targets: FloatArray, turns: NDArray[np.int64]) -> tuple[float, float]:
    """Return what the squares of the draws are multiplied by, and their degrees of freedom.

    If returns cannot be foreseen, two turns of a series are correlated as the positions are over
    the bars between them. So the covariance of all draws is known up to a factor, and with it what
    their sum of squares is worth (Satterthwaite) and how far the own growth lies from their mean.
    """
    moves = targets - targets.mean()
    spectrum = np.abs(np.fft.rfft(moves)) ** 2
    covariance = np.fft.irfft(spectrum, moves.size)
    if not covariance[0] > 0.0:
        return 0.0, 0.0  # a position that never changes has no timing
    alike = covariance / covariance[0]
    between = alike[(turns[:, None] - turns[None, :]) % moves.size]
    common = float(between.mean())
    apart = between - between.mean(axis=0)[None, :] - between.mean(axis=1)[:, None] + common
    squares, fourth = float(np.trace(apart)), float(np.sum(apart**2))
    if not (squares > 0.0 and fourth > 0.0):
        return 0.0, 0.0  # a single draw
    ahead = 1.0 + common - 2.0 * float(alike[turns].mean())
    return ahead / squares, squares**2 / fourth


def _roughness(targets: FloatArray, close: FloatArray) -> float:
    """Return how much more variance the positions met than their turns do, at least 1."""
    held = (targets[:-1] - targets.mean()) ** 2
    moves = np.diff(np.log(close)) ** 2
    usual = float(held.mean() * moves.mean())
    return max(1.0, float(np.mean(held * moves)) / usual) if usual > 0.0 else 1.0


def turned(targets: FloatArray, bars: int) -> FloatArray:
    """Return the series moved on by some bars, its end put before its beginning.

    Example:
        >>> turned(np.array([0.0, 1.0, 1.0, -1.0]), 1).tolist()
        [-1.0, 0.0, 1.0, 1.0]
    """
    return np.roll(targets, bars)
