"""A fact is a function of sums over days, so that a resample of days costs one matrix product.

Every builder here returns a pair: the sums of each day (one row a day) and the function from the
summed row to the value. Pairs at a lag belong to the day of their first member and keep their true
partner, also across midnight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.realism.series import Indices, Series

_OFFSETS = 6  # kurtosis of block returns depends on where the blocks are cut: average over cuts
_LEAST_CORRELATION = 1e-4


@dataclass(frozen=True, slots=True)
class DaySums:
    """The sums of each day and how their total becomes the fact."""

    rows: FloatArray
    value: Callable[[FloatArray], float]

    def total(self) -> float:
        """Return the fact of the whole series."""
        return self.value(self.rows.sum(axis=0))


def mean(series: Series, column: FloatArray) -> DaySums:
    """Return the mean of a column."""
    return DaySums(series.by_day(column, np.ones_like(column)), lambda s: float(s[0] / s[1]))


def ratio(series: Series, above: FloatArray, below: FloatArray) -> DaySums:
    """Return the mean of one column over the mean of another."""
    return DaySums(series.by_day(above, below), lambda s: float(s[0] / s[1]))


def deviation(series: Series, column: FloatArray, scale: float = 1.0) -> DaySums:
    """Return the standard deviation of a column, times a scale."""
    x = column - column.mean()
    rows = series.by_day(x, x * x, np.ones_like(x))
    return DaySums(rows, lambda s: float(scale * np.sqrt(s[1] / s[2] - (s[0] / s[2]) ** 2)))


def correlation(series: Series, left: FloatArray, right: FloatArray) -> DaySums:
    """Return the correlation of two columns."""
    x, y = left - left.mean(), right - right.mean()
    return DaySums(series.by_day(x, y, x * x, y * y, x * y, np.ones_like(x)), _pearson)


def rank_correlation(series: Series, left: FloatArray, right: FloatArray) -> DaySums:
    """Return Spearman's correlation; ranks are those of the whole series."""
    return correlation(series, rankdata(left) / left.size, rankdata(right) / right.size)


def autocorrelation(series: Series, column: FloatArray, lag: int) -> DaySums:
    """Return the autocorrelation of a column at a lag."""
    return DaySums(_lagged(series, column, lag), _at_lag)


def decay(series: Series, column: FloatArray, lags: tuple[int, ...]) -> DaySums:
    """Return the exponent with which the autocorrelation falls over the lags."""
    rows = np.hstack([_lagged(series, column, lag) for lag in lags])
    logs = np.log(np.array(lags, dtype=np.float64))

    def exponent(sums: FloatArray) -> float:
        found = np.array([_at_lag(part) for part in np.split(sums, len(lags))])
        heights = np.log(np.maximum(found, _LEAST_CORRELATION))
        return float(-np.polyfit(logs, heights, 1)[0])

    return DaySums(rows, exponent)


def cross_lags(series: Series, first: FloatArray, later: FloatArray, lags: range) -> DaySums:
    """Return the mean correlation of one column with another one that comes later."""
    x, y = first - first.mean(), later - later.mean()
    product = np.zeros_like(x)
    for lag in lags:
        product[:-lag] += x[:-lag] * y[lag:] / len(lags)
    return DaySums(series.by_day(x, y, x * x, y * y, product, np.ones_like(x)), _pearson)


def tail_index(series: Series, column: FloatArray, share: float = 0.01) -> DaySums:
    """Return Hill's index of the largest values; the threshold is that of the whole series."""
    count = max(1, int(column.size * share))
    threshold = np.partition(column, column.size - count - 1)[column.size - count - 1]
    above = column > threshold
    excess = np.log(np.where(above, column, threshold) / threshold)
    rows = series.by_day(above.astype(np.float64), excess)
    return DaySums(rows, lambda s: float(s[0] / s[1]))


def block_kurtosis(series: Series, length: int) -> DaySums:
    """Return the excess kurtosis of returns over blocks, averaged over six ways to cut them."""
    parts = []
    for cut in range(_OFFSETS):
        start = cut * length // _OFFSETS
        moves, days = _blocks(series, length, start)
        moves = moves - moves.mean()
        powers = [np.ones_like(moves), moves, moves**2, moves**3, moves**4]
        n_days = series.day_starts.size
        parts += [np.bincount(days, power, minlength=n_days) for power in powers]

    def excess(sums: FloatArray) -> float:
        return float(np.mean([_kurtosis(part) for part in np.split(sums, _OFFSETS)]))

    return DaySums(np.column_stack(parts), excess)


def variance_ratio(series: Series, length: int) -> DaySums:
    """Return the variance of block returns over that of as many single returns."""
    moves, days = _blocks(series, length, 0)
    n_days = series.day_starts.size
    blocks = [np.bincount(days, p, minlength=n_days) for p in (moves, moves**2, moves * 0.0 + 1.0)]
    r = series.returns
    rows = np.hstack([np.column_stack(blocks), series.by_day(r, r * r, np.ones_like(r))])

    def compared(s: FloatArray) -> float:
        return float(_variance(s[:3]) / (length * _variance(s[3:])))

    return DaySums(rows, compared)


def hour_ratio(series: Series) -> DaySums:
    """Return mean absolute return in the busiest hour of day over that in the quietest."""
    hours = [series.hour == hour for hour in range(24)]
    moved = [np.where(chosen, series.absolute, 0.0) for chosen in hours]
    rows = series.by_day(*moved, *(chosen.astype(np.float64) for chosen in hours))

    def busiest_over_quietest(s: FloatArray) -> float:
        by_hour = s[:24] / s[24:]
        return float(by_hour.max() / by_hour.min())

    return DaySums(rows, busiest_over_quietest)


def _lagged(series: Series, column: FloatArray, lag: int) -> FloatArray:
    x = column - column.mean()
    partner = np.zeros_like(x)
    partner[:-lag] = x[lag:]
    paired = np.zeros_like(x)
    paired[:-lag] = 1.0
    return series.by_day(x, x * x, np.ones_like(x), x * partner, x * paired, partner, paired)


def _at_lag(s: FloatArray) -> float:
    centre = s[0] / s[2]
    covariance = (s[3] - centre * (s[4] + s[5])) / s[6] + centre**2
    return float(covariance / (s[1] / s[2] - centre**2))


def _pearson(s: FloatArray) -> float:
    x, y, xx, yy, xy = s[:5] / s[5]
    return float((xy - x * y) / np.sqrt((xx - x * x) * (yy - y * y)))


def _variance(s: FloatArray) -> float:
    return float(s[1] / s[2] - (s[0] / s[2]) ** 2)


def _kurtosis(s: FloatArray) -> float:
    m1, m2, m3, m4 = s[1:] / s[0]
    variance = m2 - m1 * m1
    fourth = m4 - 4.0 * m1 * m3 + 6.0 * m1**2 * m2 - 3.0 * m1**4
    return float(fourth / variance**2 - 3.0)


def _blocks(series: Series, length: int, start: int) -> tuple[FloatArray, Indices]:
    r = series.returns[start:]
    count = r.size // length
    moves = r[: count * length].reshape(count, length).sum(axis=1)
    return moves, series.day_of(start + length * np.arange(count, dtype=np.int64))
