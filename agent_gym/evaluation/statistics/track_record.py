"""How much a Sharpe ratio says: its probability, what luck alone would show, how long it takes.

Every ratio here is per period (a day, if the returns are daily), never a year: ``n`` counts the
same periods. A yearly ratio beside a count of days would look far more certain than it is.

Bailey and Lopez de Prado 2012 (PSR, MinTRL) and 2014 (DSR); Lo 2002 (autocorrelation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from agent_gym.core.errors import DataError
from agent_gym.evaluation.statistics.samples import inside, row_of

# Returns that differ by rounding alone have no spread to divide by.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Moments:
    """What a Sharpe ratio and its error rest on, per period.

    Attributes:
        n: Number of returns.
        mean: Their mean.
        sd: Their standard deviation (n - 1 below).
        skew: Third standardised moment (n below).
        kurtosis: Fourth standardised moment (n below), 3 for a normal law.
    """

    n: int
    mean: float
    sd: float
    skew: float
    kurtosis: float

    @property
    def sharpe(self) -> float:
        """Return mean over standard deviation, per period."""
        return self.mean / self.sd


def moments(returns: ArrayLike) -> Moments | None:
    """Return the moments; None with fewer than two returns or where they do not vary.

    Example:
        >>> found = moments([0.01, -0.01, 0.03])
        >>> round(found.sharpe, 4), round(found.kurtosis, 4)
        (0.5, 1.5)
    """
    row = row_of(returns, least=0)
    if row.size < 2:
        return None
    mean = float(row.mean())
    gaps = row - mean
    variance = float(np.mean(gaps**2))
    if math.sqrt(variance) <= ROUNDING * float(np.abs(row).max()):
        return None
    scaled = gaps / math.sqrt(variance)
    n = int(row.size)
    sd = math.sqrt(variance * n / (n - 1))
    return Moments(n, mean, sd, float(np.mean(scaled**3)), float(np.mean(scaled**4)))


def psr(m: Moments, benchmark: float = 0.0) -> float | None:
    """Return the probability that the true Sharpe ratio is above a benchmark (per period).

    None where the error of the ratio is 0 by the moments given, which no sample of a law has.

    Example:
        >>> fund = Moments(n=24, mean=0.458, sd=1.0, skew=-2.448, kurtosis=10.164)
        >>> round(psr(fund), 3)
        0.913
    """
    spread = _error_term(m)
    if m.n < 2 or spread <= 0.0:
        return None
    return float(ndtr((m.sharpe - benchmark) * math.sqrt((m.n - 1) / spread)))


def expected_max_sharpe(n_trials: int, variance: float) -> float:
    """Return the best Sharpe ratio to expect from trials without any skill.

    Args:
        n_trials: Independent trials; one trial selects nothing, so its benchmark is 0.
        variance: Variance of the ratios over the trials, per period.

    Example:
        >>> round(expected_max_sharpe(20, 1.0), 2)
        1.9
    """
    if n_trials < 1:
        raise DataError("there is at least one trial", found=n_trials)
    if not 0.0 <= variance < math.inf:
        raise DataError("a variance is a finite number of at least 0", found=variance)
    if n_trials == 1:
        return 0.0
    highest = (1.0 - np.euler_gamma) * ndtri(1.0 - 1.0 / n_trials)
    highest += np.euler_gamma * ndtri(1.0 - 1.0 / (n_trials * math.e))
    return math.sqrt(variance) * float(highest)


def dsr(m: Moments, n_trials: int, variance: float) -> float | None:
    """Return the probability that the true ratio beats what luck shows as the best of the trials.

    Example:
        >>> picked = Moments(n=1250, mean=2.5 / 250**0.5, sd=1.0, skew=-3.0, kurtosis=10.0)
        >>> round(dsr(picked, n_trials=100, variance=0.5 / 250), 4)
        0.9004
    """
    return psr(m, expected_max_sharpe(n_trials, variance))


def min_track_record(m: Moments, benchmark: float = 0.0, confidence: float = 0.95) -> float | None:
    """Return how many periods it takes until such a ratio is above a benchmark with confidence.

    None if the ratio is not above the benchmark: no length of such a record would do.

    Example:
        >>> monthly = Moments(n=24, mean=2.0 / 12**0.5, sd=1.0, skew=0.0, kurtosis=3.0)
        >>> round(min_track_record(monthly, benchmark=1.0 / 12**0.5) / 12, 2)
        3.24
    """
    inside("a confidence", confidence, 0.5, 1.0)
    spread = _error_term(m)
    if m.sharpe <= benchmark or spread <= 0.0:
        return None
    return 1.0 + spread * (float(ndtri(confidence)) / (m.sharpe - benchmark)) ** 2


def lo_factor(returns: ArrayLike, periods: float) -> float | None:
    """Return what turns a Sharpe ratio of one period into one of many, for returns as correlated.

    It is the root of ``periods`` where returns do not depend on each other, less where gains follow
    gains, more where they are given back. Correlations count up to lag 4 (n / 100) ** (2 / 9), as
    those beyond are mostly noise. None where the returns do not vary, or give back so much that the
    estimated variance over many periods is not above 0.
    """
    row = row_of(returns, least=0)
    if moments(row) is None:
        return None
    n, gaps = row.size, row - row.mean()
    last = min(int(4.0 * (n / 100.0) ** (2.0 / 9.0)), n - 1, math.ceil(periods) - 1)
    correlations = [float(gaps[k:] @ gaps[: n - k] / (gaps @ gaps)) for k in range(1, last + 1)]
    return lo_factor_of(correlations, periods)


def lo_factor_of(correlations: Sequence[float], periods: float) -> float | None:
    """Return Lo's factor for known autocorrelations at lags 1, 2, ...; None without a variance.

    Example:
        >>> round(lo_factor_of([0.2**k for k in range(1, 12)], 12.0), 2)
        2.88
    """
    lags = enumerate(correlations, start=1)
    variance = periods + 2.0 * sum((periods - lag) * value for lag, value in lags)
    return periods / math.sqrt(variance) if variance > ROUNDING * periods else None


def _error_term(m: Moments) -> float:
    return 1.0 - m.skew * m.sharpe + (m.kurtosis - 1.0) / 4.0 * m.sharpe**2
