"""How many times longer one side takes than the other, where some have not got there yet.

A pair of which one side has not got there says only "more than" or "less than". Every pair is
therefore a stretch on the logarithmic scale, a point where both have got there. The figure is the
mean of the middle half of all pairs: up to a quarter of them may be open at one end before the
answer is. Nothing is filled in for what was not seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import check_bootstrap
from agent_gym.evaluation.statistics.scores import middle_means
from agent_gym.evaluation.statistics.survival import watched

CHUNK = 1_000_000
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TimeRatio:
    """Times of the first side over those of the second; ``None`` is "no end in sight".

    Attributes:
        estimate: The ratio; None where pairs that are open leave it open.
        least: What it is at least.
        most: What it is at most.
        low: Lower end of the interval.
        high: Upper end of the interval.
        level: Probability of the interval.
        pairs: How many pairs there are.
        open_above: Pairs whose first side has not got there: any ratio above may be true.
        open_below: Pairs whose second side has not.
    """

    estimate: float | None
    least: float
    most: float | None
    low: float
    high: float | None
    level: float
    pairs: int
    open_above: int
    open_below: int

    def below(self, bound: float) -> bool:
        """Say whether the whole interval lies below a bound."""
        return self.high is not None and self.high < bound

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def time_ratio(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    seeds: Seeds,
    *,
    reps: int = 10_000,
    level: float = 0.95,
) -> TimeRatio:
    """Return the ratio of paired times with an interval from resampled pairs.

    The percentiles are moved outwards as those of ``seeds_interval`` are, since pairs are few.

    Args:
        first: Times of the first side, and whether each got there or was only watched so long.
        second: The same of the second side, pair by pair.
        seeds: Where the resamples come from.
        reps: Resamples.
        level: Probability that the interval is meant to hold the truth with.

    Example:
        >>> both = [True] * 4
        >>> found = time_ratio(([2, 4, 6, 8], both), ([1, 2, 3, 4], both), Seeds(0))
        >>> round(found.estimate, 6), round(found.low, 6), round(found.high, 6)
        (2.0, 2.0, 2.0)
    """
    check_bootstrap(reps, level)
    lows, highs, ours, theirs = _stretches(first, second)
    n = lows.size
    rng = seeds.child("time ratio").rng()
    size = max(1, CHUNK // n)
    drawn: list[tuple[FloatArray, FloatArray]] = []
    for done in range(0, reps, size):
        picks = rng.integers(n, size=(min(size, reps - done), n))
        drawn.append((middle_means(lows[picks]), middle_means(highs[picks])))
    reach = float(stdtrit(n - 1, 0.5 * (1.0 + level))) * math.sqrt(n / (n - 1))
    tail = float(ndtr(-reach))
    # No interpolation: between a number and infinity there is none.
    low = np.quantile(np.concatenate([pair[0] for pair in drawn]), tail, method="lower")
    high = np.quantile(np.concatenate([pair[1] for pair in drawn]), 1.0 - tail, method="higher")
    least, most = float(middle_means(lows[None])[0]), float(middle_means(highs[None])[0])
    return TimeRatio(
        estimate=math.exp(least) if least == most else None,
        least=math.exp(least),
        most=_finite(most),
        low=math.exp(low),
        high=_finite(float(high)),
        level=level,
        pairs=n,
        open_above=int(np.sum(~ours)),
        open_below=int(np.sum(~theirs)),
    )


def _stretches(
    first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike]
) -> tuple[FloatArray, FloatArray, Bools, Bools]:
    """Return between what the logarithm of each ratio lies, and who got there."""
    (a, ours), (b, theirs) = watched(*first), watched(*second)
    if a.size != b.size or a.size < 2:
        raise DataError(
            "pairs need both sides, and two of them", found=(a.size, b.size), expected="2 or more"
        )
    if (a <= 0.0).any() or (b <= 0.0).any():
        raise DataError("a ratio takes times above 0", found=float(min(a.min(), b.min())))
    gap = np.log(a) - np.log(b)
    lows: FloatArray = np.where(theirs, gap, -np.inf)
    highs: FloatArray = np.where(ours, gap, np.inf)
    return lows, highs, ours, theirs


def _finite(log: float) -> float | None:
    return math.exp(log) if math.isfinite(log) else None
