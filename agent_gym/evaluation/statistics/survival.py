"""How long until it happens, where some have not seen it happen yet: survival with censoring.

A run that ends before it reaches a threshold does not say that it never would: it says "later than
this". Leaving it out, or counting its last step, makes slow learners look fast. Kaplan and Meier's
curve, Greenwood's error of it and the log-rank test use such runs for just what they say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, ndtri

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import inside, row_of

MOST_EXACT = 20_000  # ways to deal the runs to two sides that are all counted; beyond, some drawn
# Sums in another order differ by rounding; a dealing as extreme as the one seen must count.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class MedianTime:
    """By when half have seen it; ``None`` is "not reached", which is an answer and not a gap."""

    estimate: float | None
    low: float | None
    high: float | None
    level: float

    def as_dict(self) -> dict[str, float | None]:
        """Return the fields by name."""
        return {
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "level": self.level,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """The share that has not seen it yet, after each time at which somebody did.

    Attributes:
        times: When it happened, each time once.
        at_risk: How many were still under way just before.
        events: To how many it happened then.
        share: Share without it after that time; 1 before the first.
        low: Lower end of the share's interval. The share 0 has none: NaN, and so has its upper end.
        high: Upper end.
        n: How many there are.
        censored: To how many it had not happened when they were last seen.
        level: Probability of the interval, for each time by itself.
    """

    times: FloatArray
    at_risk: NDArray[np.int64]
    events: NDArray[np.int64]
    share: FloatArray
    low: FloatArray
    high: FloatArray
    n: int
    censored: int
    level: float

    def at(self, time: float) -> float:
        """Return the share without it after a time."""
        before = int(np.searchsorted(self.times, time, side="right"))
        return 1.0 if before == 0 else float(self.share[before - 1])

    def median(self) -> MedianTime:
        """Return by when half have seen it, with Brookmeyer and Crowley's interval.

        The ends are the first times at which the ends of the share's interval are at most a half.

        Example:
            >>> kaplan_meier([1.0, 2.0, 3.0, 9.0], [True, True, False, False]).median().estimate
            2.0
            >>> print(kaplan_meier([5.0, 9.0, 9.0], [True, False, False]).median().estimate)
            None
        """
        # Where nobody is left the interval has no ends by the formula; the share itself is known.
        gone = self.share == 0.0
        low, high = np.where(gone, 0.0, self.low), np.where(gone, np.inf, self.high)
        ends = (self.share, low, high)
        estimate, first, last = (_first(self.times[end <= 0.5 + ROUNDING]) for end in ends)
        return MedianTime(estimate, first, last, self.level)

    def restricted_mean(self, until: float) -> float:
        """Return the mean time to it, or to ``until`` for those who have not seen it by then.

        Example:
            >>> kaplan_meier([1.0, 2.0, 4.0], [True, False, False]).restricted_mean(4.0)
            3.0
        """
        if until < 0.0:
            raise DataError("a time is at least 0", found=until)
        before = self.times < until
        edges = np.concatenate(([0.0], self.times[before], [until]))
        heights = np.concatenate(([1.0], self.share[before]))
        return float(np.diff(edges) @ heights)


@dataclass(frozen=True, slots=True)
class LogRank:
    """Whether two curves differ.

    Attributes:
        statistic: Squared difference over its variance; chi-squared with one degree of freedom.
        p_value: By that law, which is rough for few runs.
        permutation_p: By dealing the runs to the two sides in all ways (or in many, if there are
            too many), which holds for few runs too. Both sides must be watched equally long.
        observed: To how many of the first side it happened.
        expected: To how many it would have, were there no difference.
    """

    statistic: float
    p_value: float
    permutation_p: float
    observed: int
    expected: float


def kaplan_meier(times: ArrayLike, reached: ArrayLike, *, level: float = 0.95) -> Survival:
    """Return the curve of Kaplan and Meier with Greenwood's error on the log-log scale.

    Args:
        times: When it happened, or when that one was last seen without it.
        reached: Whether it happened.
        level: Probability that the interval is meant to hold the truth with, at each time.

    Example:
        >>> curve = kaplan_meier([6, 6, 6, 6, 7, 9, 10], [1, 1, 1, 0, 1, 0, 1])
        >>> curve.times.tolist(), curve.share.round(3).tolist()
        ([6.0, 7.0, 10.0], [0.571, 0.381, 0.0])
    """
    inside("a level", level, 0.0, 1.0)
    when, seen = watched(times, reached)
    moments = np.unique(when[seen])
    at_risk = np.array([np.sum(when >= moment) for moment in moments], dtype=np.int64)
    events = np.array([np.sum(seen & (when == moment)) for moment in moments], dtype=np.int64)
    share: FloatArray = np.cumprod(1.0 - events / at_risk, dtype=np.float64)
    low, high = _greenwood(share, at_risk, events, level)
    return Survival(
        times=moments,
        at_risk=at_risk,
        events=events,
        share=share,
        low=low,
        high=high,
        n=int(when.size),
        censored=int(np.sum(~seen)),
        level=level,
    )


def log_rank(
    times_a: ArrayLike,
    reached_a: ArrayLike,
    times_b: ArrayLike,
    reached_b: ArrayLike,
    *,
    seeds: Seeds | None = None,
) -> LogRank | None:
    """Return the test that two sides do not differ; None if it never happened to anybody.

    Args:
        times_a: Times of the first side.
        reached_a: Whether it happened there.
        times_b: Times of the second side.
        reached_b: Whether it happened there.
        seeds: Where dealings come from if there are too many to count; by default one fixed node.
    """
    first, second = watched(times_a, reached_a), watched(times_b, reached_b)
    when, seen = (np.concatenate(both) for both in zip(first, second, strict=True))
    if not seen.any():
        return None
    n, m = first[0].size, second[0].size
    scores, variance = _scores(when, seen, n)
    gap = float(scores[:n].sum())
    statistic = gap**2 / variance if variance > 0.0 else 0.0
    return LogRank(
        statistic=statistic,
        p_value=float(gammaincc(0.5, 0.5 * statistic)),
        permutation_p=_dealt(scores, n, m, abs(gap), seeds or Seeds(0)),
        observed=int(first[1].sum()),
        expected=float(first[1].sum()) - gap,
    )


def watched(times: ArrayLike, reached: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return times and whether it happened then, checked."""
    when, seen = row_of(times), np.asarray(reached, dtype=np.bool_)
    if seen.shape != when.shape:
        raise DataError("each time says whether it happened", found=(when.shape, seen.shape))
    if (when < 0.0).any():
        raise DataError("a time is at least 0", found=float(when.min()))
    return when, seen


def _greenwood(
    share: FloatArray, at_risk: NDArray[np.int64], events: NDArray[np.int64], level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval; between 0 and 1, as they are taken of log(-log(share))."""
    low, high = np.full_like(share, np.nan), np.full_like(share, np.nan)
    left = at_risk - events
    inner = left > 0  # where nobody is left there is no error to divide by
    terms = events[inner] / (at_risk[inner] * left[inner])
    logs = np.log(share[inner])
    reach = float(ndtri(0.5 * (1.0 + level))) * np.sqrt(np.cumsum(terms)) / logs
    low[inner], high[inner] = (share[inner] ** np.exp(sign * reach) for sign in (-1.0, 1.0))
    return low, high


def _scores(when: FloatArray, seen: NDArray[np.bool_], n: int) -> tuple[FloatArray, float]:
    """Return how much more often than expected it happened to each, and the variance of the sum.

    The sum of the scores of a side is its observed minus expected count; who is dealt to which side
    changes no score, so a permutation of them is a sum.
    """
    scores, variance = seen.astype(np.float64), 0.0
    for moment in np.unique(when[seen]):
        there = when >= moment
        risk, events = int(there.sum()), int(np.sum(seen & (when == moment)))
        ours = int(there[:n].sum())
        scores[there] -= events / risk
        if risk > 1:
            share = ours / risk
            variance += events * share * (1.0 - share) * (risk - events) / (risk - 1)
    return scores, variance


def _dealt(scores: FloatArray, n: int, m: int, seen: float, seeds: Seeds) -> float:
    least = seen - ROUNDING * (1.0 + seen)
    if math.comb(n + m, n) <= MOST_EXACT:
        picks = np.array(list(combinations(range(n + m), n)), dtype=np.int64)
        return float(np.mean(np.abs(scores[picks].sum(axis=1)) >= least))
    rng = seeds.child("log-rank dealings").rng()
    dealt = rng.permuted(np.tile(scores, (MOST_EXACT, 1)), axis=1)[:, :n].sum(axis=1)
    return (int(np.sum(np.abs(dealt) >= least)) + 1) / (MOST_EXACT + 1)


def _first(times: FloatArray) -> float | None:
    return float(times[0]) if times.size else None
