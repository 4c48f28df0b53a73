"""Intervals for one figure: of a series in time, of a few runs, of a share.

A series in time is resampled in blocks, as its values depend on each other; runs with different
seeds do not, and are resampled one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtrit

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics.resampling import (
    block_length,
    checked_block,
    fill_path,
    path_means,
    path_rng,
)
from agent_gym.evaluation.statistics.samples import (
    Interval,
    check_bootstrap,
    inside,
    percentile_interval,
    row_of,
)

Statistic: TypeAlias = Callable[..., float | None]
CHUNK = 1_000_000  # values that are resampled at a time


def bootstrap_interval(
    statistic: Statistic,
    arrays: Sequence[ArrayLike],
    seeds: Seeds,
    *,
    reps: int = 2000,
    block: float | None = None,
    level: float = 0.95,
) -> Interval:
    """Return a percentile interval of any statistic by the stationary bootstrap.

    Args:
        statistic: Takes the arrays and returns a number.
        arrays: Series of one length; one path of indices is used for all of them, so what happened
            at the same time stays together.
        seeds: Where the paths come from.
        reps: Resamples.
        block: Mean length of a block; by default the longest that any of the series asks for.
        level: Probability that the interval is meant to hold the truth with.
    """
    rows = [row_of(values, least=2) for values in arrays]
    lengths = {row.size for row in rows}
    if len(lengths) != 1:
        raise DataError("series that are resampled together are of one length", found=lengths)
    check_bootstrap(reps, level)
    n = lengths.pop()
    block = max(map(block_length, rows)) if block is None else checked_block(block, n)
    rng, path = path_rng(seeds), np.empty(n, dtype=np.int64)
    drawn = np.empty(reps)
    for rep in range(reps):
        fill_path(rng, block, path)
        drawn[rep] = _number(statistic(*(row[path] for row in rows)))
    estimate = _number(statistic(*rows))
    wrong = int(np.sum(~np.isfinite(drawn)))
    if wrong or not math.isfinite(estimate):
        raise DataError(
            "the statistic is not defined on every resample",
            found=f"{wrong} of {reps} undefined, estimate {estimate}",
            remedy="A series that hardly moves has no interval; take one that is defined for it.",
        )
    return percentile_interval(estimate, drawn, level)


def mean_interval(
    values: ArrayLike,
    seeds: Seeds,
    *,
    reps: int = 2000,
    block: float | None = None,
    level: float = 0.95,
) -> Interval:
    """Return an interval of the mean of a series, from the same paths as ``bootstrap_interval``."""
    row = row_of(values, least=2)
    check_bootstrap(reps, level)
    block = block_length(row) if block is None else checked_block(block, row.size)
    drawn = path_means(row[:, None], block, reps, path_rng(seeds))[:, 0]
    return percentile_interval(float(row.mean()), drawn, level)


def paired_interval(
    a: ArrayLike,
    b: ArrayLike,
    seeds: Seeds,
    *,
    reps: int = 2000,
    block: float | None = None,
    level: float = 0.95,
) -> Interval:
    """Return an interval of the mean of a - b, two series over the same periods."""
    first, second = row_of(a, least=2), row_of(b, least=2)
    if first.size != second.size:
        raise DataError("pairs need both sides", found=(first.size, second.size))
    return mean_interval(first - second, seeds, reps=reps, block=block, level=level)


def seeds_interval(
    values: ArrayLike, seeds: Seeds, *, reps: int = 10_000, level: float = 0.95
) -> Interval:
    """Return an interval of the mean over runs that do not depend on each other.

    The percentiles are moved outwards (Hesterberg 2015) as far as Student's t and the divisor
    n - 1 ask for: plain ones are too narrow for the few runs that one can afford.
    """
    row = row_of(values, least=2)
    check_bootstrap(reps, level)
    rng, n = seeds.child("runs bootstrap").rng(), row.size
    size = max(1, CHUNK // n)
    means = [
        row[rng.integers(n, size=(min(size, reps - done), n))].mean(axis=1)
        for done in range(0, reps, size)
    ]
    reach = float(stdtrit(n - 1, 0.5 * (1.0 + level))) * math.sqrt(n / (n - 1))
    tail = float(ndtr(-reach))
    return percentile_interval(float(row.mean()), np.concatenate(means), level, tail)


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Return Wilson's interval of a share; it stays within 0 and 1 and is never empty.

    Example:
        >>> found = wilson(3, 20)
        >>> round(found.low, 3), round(found.high, 3)
        (0.052, 0.36)
    """
    inside("a level", level, 0.0, 1.0)
    if n < 1 or not 0 <= successes <= n:
        raise DataError("a share counts successes among tries", found=f"{successes} of {n}")
    share, z2 = successes / n, float(ndtri(0.5 * (1.0 + level))) ** 2
    centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n)
    reach = math.sqrt(z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n))) / (1.0 + z2 / n)
    # Rounding must not push an end past the share itself where all or none succeed.
    low = 0.0 if successes == 0 else centre - reach
    high = 1.0 if successes == n else centre + reach
    return Interval(share, low, high, level)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
