"""Causal estimates of risk from a close series: EWMA volatility and one-day VaR and ES.

Value i of every result uses closes 0..i alone, so a longer series never changes an earlier value.

The tails come from filtered historical simulation. Every sampled one-day log return is divided by
the one-day EWMA volatility that was known when that day began; the worst of these standardised days
are multiplied by today's volatility. A sample is taken every ``bars_per_day / samples_per_day``
bars, counted from the start of the series, so that on minute bars the window stays at
``window_days * samples_per_day`` values. A sorted window is kept up to date by insertion: time is
O(samples * window + bars * window * (1 - level)) and memory O(bars + window). While there are fewer
than ``prior_days`` of samples, their tail is blended with that of a Student t, in proportion.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray
from agent_gym.exchange.risk.view import TailRisk

PRIOR_DEGREES = 4.0
MIN_SIGMA = 1e-8
MAX_LOG_LOSS = 20.0  # keeps the loss of a short finite after an absurd jump


class TailConfig(Config):
    """How one-day VaR and ES are estimated."""

    level: float = Field(default=0.99, gt=0.5, lt=1.0, description="confidence of VaR and ES")
    window_days: int = Field(default=500, ge=1, description="days of history that are looked at")
    samples_per_day: int = Field(default=24, ge=1, description="overlapping days taken each day")
    half_life_days: float = Field(default=11.2, gt=0.0, description="memory of the EWMA volatility")
    prior_days: int = Field(default=60, ge=0, description="history that replaces the prior whole")


@dataclass(frozen=True, slots=True, eq=False)
class TailSeries:
    """One-day VaR and ES per unit of exposure, one value a bar; NaN before the first full day."""

    var_long: FloatArray
    var_short: FloatArray
    es_long: FloatArray
    es_short: FloatArray

    def at(self, i: int) -> TailRisk | None:
        """Return the tails known at the close of bar ``i``; None while nothing is known."""
        if np.isnan(self.var_long[i]):
            return None
        return TailRisk(
            float(self.var_long[i]),
            float(self.var_short[i]),
            float(self.es_long[i]),
            float(self.es_short[i]),
        )


def bars_per_day(period_ns: int) -> int:
    """Return how many bars make a day; a period that does not divide a day is an error.

    Example:
        >>> bars_per_day(3_600 * 10**9)
        24
    """
    if period_ns <= 0 or DAY_NS % period_ns:
        raise ConfigError(
            "one-day risk needs bars that divide a day", found=f"{period_ns} ns", expected="1d / n"
        )
    return DAY_NS // period_ns


def ewma_sigma(close: FloatArray, half_life_bars: float) -> FloatArray:
    """Return the EWMA volatility of log returns a bar; NaN at the first close, never below 1e-8.

    The mean is taken as 0 and the weights sum to 1 from the first return on, so no start value is
    needed.

    Example:
        >>> ewma_sigma(np.array([1.0, np.e, np.e**2]), 10.0).round(6).tolist()
        [nan, 1.0, 1.0]
    """
    if not half_life_bars > 0.0:
        raise ConfigError("a half-life is above 0 bars", found=half_life_bars)
    return _ewma_sigma(_log_prices(close), 0.5 ** (1.0 / half_life_bars), MIN_SIGMA)


def tail_risk(close: FloatArray, day_bars: int, config: TailConfig) -> TailSeries:
    """Return one-day VaR and ES of a long and of a short unit, known at each close."""
    if day_bars < 1:
        raise ConfigError("a day holds at least one bar", found=day_bars)
    logs = _log_prices(close)
    decay = 0.5 ** (1.0 / (config.half_life_days * day_bars))
    sigma = _ewma_sigma(logs, decay, MIN_SIGMA) * np.sqrt(day_bars)
    stride = max(1, day_bars // config.samples_per_day)
    window = max(1, config.window_days * day_bars // stride)
    prior = (config.prior_days * day_bars / stride, *_student_tail(config.level))
    rows = _filtered_tails(logs, sigma, (day_bars, stride, window), config.level, prior)
    return TailSeries(rows[0], rows[1], rows[2], rows[3])


def _log_prices(close: FloatArray) -> FloatArray:
    closes = np.array(close, dtype=np.float64, order="C")  # a copy: columns are read-only
    wrong = np.flatnonzero(~(np.isfinite(closes) & (closes > 0.0)))
    if wrong.size:
        row = int(wrong[0])
        raise DataError(
            "a close is not a price", where=f"row {row}", found=closes[row], expected="above 0"
        )
    return _logarithms(closes)


def _student_tail(level: float) -> tuple[float, float]:
    """Return VaR and ES of a Student t with 4 degrees of freedom and unit variance."""
    degrees = PRIOR_DEGREES
    unit = math.sqrt((degrees - 2.0) / degrees)
    quantile = float(special.stdtrit(degrees, level))
    log_norm = math.lgamma(0.5 * (degrees + 1.0)) - math.lgamma(0.5 * degrees)
    spread = 1.0 + quantile**2 / degrees
    density = math.exp(log_norm) / math.sqrt(degrees * math.pi) * spread ** (-0.5 * (degrees + 1.0))
    shortfall = density / (1.0 - level) * (degrees + quantile**2) / (degrees - 1.0)
    return quantile * unit, shortfall * unit


@inlined
def _loss(sign: float, log_return: float) -> float:
    return max(0.0, -sign * math.expm1(min(log_return, MAX_LOG_LOSS)))


@door("float64[::1](float64[::1])")
def _logarithms(values: FloatArray) -> FloatArray:
    # One scalar call a value: numpy's own loop may round differently at the end of an array.
    result = np.empty(values.size)
    for i in range(values.size):
        result[i] = math.log(values[i])
    return result


@door("float64[::1](float64[::1], float64, float64)")
def _ewma_sigma(logs: FloatArray, decay: float, floor: float) -> FloatArray:
    sigma = np.full(logs.size, np.nan)
    total = 0.0
    weight = 0.0
    for i in range(1, logs.size):
        move = logs[i] - logs[i - 1]
        total = decay * total + move * move
        weight = decay * weight + 1.0
        sigma[i] = max(np.sqrt(total / weight), floor)
    return sigma


@door(
    "float64[:, ::1](float64[::1], float64[::1], UniTuple(int64, 3), float64, UniTuple(float64, 3))"
)
def _filtered_tails(
    logs: FloatArray,
    sigma: FloatArray,
    spans: tuple[int, int, int],
    level: float,
    prior: tuple[float, float, float],
) -> NDArray[np.float64]:
    day, stride, window = spans
    prior_samples, prior_var, prior_es = prior
    rows = np.full((4, logs.size), np.nan)
    ring = np.empty(window)
    ranked = np.empty(window)
    count = 0
    taken = 0
    for i in range(day, logs.size):
        # The volatility at the start of a sampled day must itself rest on one day of bars.
        if i >= 2 * day and i % stride == 0:
            sample = (logs[i] - logs[i - day]) / sigma[i - day]
            if count == window:
                j = np.searchsorted(ranked[:count], ring[taken % window])
                count -= 1
                while j < count:
                    ranked[j] = ranked[j + 1]
                    j += 1
            j = count
            while j > 0 and ranked[j - 1] > sample:
                ranked[j] = ranked[j - 1]
                j -= 1
            ranked[j] = sample
            ring[taken % window] = sample
            count += 1
            taken += 1
        if count == 0 and prior_samples == 0.0:
            continue
        trust = min(1.0, count / prior_samples) if prior_samples > 0.0 else 1.0
        # The k-th worst of m is exceeded by a new draw with probability k / (m + 1).
        tail = min(count, max(1, int((1.0 - level) * (count + 1) + 1e-9)))
        for side in range(2):
            sign = 1.0 - 2.0 * side
            loss = 0.0
            total = 0.0
            for k in range(tail):
                loss = _loss(sign, ranked[k if side == 0 else count - 1 - k] * sigma[i])
                total += loss
            old_var = _loss(sign, -sign * prior_var * sigma[i])
            old_es = _loss(sign, -sign * prior_es * sigma[i])
            rows[side, i] = (1.0 - trust) * old_var + trust * loss
            rows[2 + side, i] = (1.0 - trust) * old_es + trust * total / max(tail, 1)
    return rows
