"""Is any of many arms better than the benchmark? Hansen's test of superior predictive ability.

The best of many looks good by chance; the test asks whether the best studentised gain is larger
than the best that resampled arms without any gain would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.resampling import (
    block_length,
    checked_block,
    path_means,
    path_rng,
)
from agent_gym.evaluation.statistics.samples import row_of, table_of

ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Spa:
    """P-values that no arm is better than the benchmark; the consistent one is the one to use.

    Attributes:
        lower: Arms that did worse than the benchmark are taken to be truly worse.
        consistent: Only arms that did clearly worse are.
        upper: No arm is (White's reality check, studentised).
        best: Column of the arm with the largest studentised gain.
        statistic: That gain in standard errors, 0 if no arm gained.
    """

    lower: float
    consistent: float
    upper: float
    best: int
    statistic: float


def spa(
    benchmark_losses: ArrayLike,
    losses: ArrayLike,
    seeds: Seeds,
    reps: int = 1000,
    *,
    block: float | None = None,
) -> Spa:
    """Return Hansen's (2005) p-values for a benchmark against arms, from losses per period.

    Args:
        benchmark_losses: One a period; give minus the returns to compare what was earned.
        losses: One row a period and one column an arm.
        seeds: Where the paths come from.
        reps: Resamples; no p-value is below 1 / (reps + 1).
        block: Mean length of a block; by default the longest that any arm asks for.
    """
    arms = table_of(losses, rows=3)
    base = row_of(benchmark_losses, least=3)
    if base.size != len(arms):
        raise DataError("benchmark and arms differ in length", found=(base.size, len(arms)))
    if reps < 1:
        raise DataError("a bootstrap takes at least one resample", found=reps)
    gains, n = base[:, None] - arms, base.size
    moving = np.ptp(gains, axis=0) > ROUNDING * np.abs(gains).max(axis=0)
    mean = gains.mean(axis=0)
    if block is None:
        block = max((block_length(gains[:, k]) for k in np.flatnonzero(moving)), default=1.0)
    error = np.zeros_like(mean)
    error[moving] = _errors(gains[:, moving], checked_block(block, n))
    scores = _studentised(mean, error)
    best = int(np.argmax(scores))
    seen = max(float(scores[best]), 0.0)
    means = path_means(gains, block, reps, path_rng(seeds))
    clearly_worse = mean < -error * math.sqrt(2.0 * math.log(math.log(n)))
    centres = (np.maximum(mean, 0.0), np.where(clearly_worse, 0.0, mean), mean)
    lower, consistent, upper = (
        (1 + int(np.sum(_best(means - centre, error) >= seen))) / (reps + 1) for centre in centres
    )
    return Spa(lower, consistent, upper, best, seen)


def _best(means: FloatArray, error: FloatArray) -> FloatArray:
    moving = error > 0.0
    scaled = means[:, moving] / error[moving]
    best: FloatArray = np.max(scaled, axis=1, initial=0.0)
    return best


def _studentised(mean: FloatArray, error: FloatArray) -> FloatArray:
    """Return gains in standard errors; a gain that never varies is certain, none at all is 0."""
    certain = np.where(mean == 0.0, 0.0, np.copysign(np.inf, mean))
    return np.divide(mean, error, out=certain, where=error > 0.0)


def _errors(gains: FloatArray, block: float) -> FloatArray:
    """Return the standard error that the mean of each column has over paths, in closed form.

    Politis and Romano 1994: autocovariances, wrapped, weighted by the chance that two values a lag
    apart stay in one block.
    """
    n, lags = len(gains), np.arange(len(gains))
    spectrum = np.fft.rfft(gains - gains.mean(axis=0), axis=0)
    wrapped = np.fft.irfft(np.abs(spectrum) ** 2, n=n, axis=0) / n
    kernel = 2.0 * (1.0 - lags / n) * (1.0 - 1.0 / block) ** lags
    kernel[0] = 1.0
    errors: FloatArray = np.sqrt(np.maximum(kernel @ wrapped, 0.0) / n)
    return errors
