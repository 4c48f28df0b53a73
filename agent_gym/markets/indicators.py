"""Technical indicators in their textbook form, computed by TA-Lib.

They are for people, rules and plots; learners take ``markets.features``. Everything is causal, and
what is not yet defined (warm-up, a flat market) is NaN, never 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
import talib

from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import bars_per_year

BOOK_COLUMNS = ("spread", "obi", "ofi")


class Macd(NamedTuple):
    """Moving-average convergence: the line, its signal and their difference, in quote units."""

    line: FloatArray
    signal: FloatArray
    histogram: FloatArray


class Bands(NamedTuple):
    """Bollinger bands, in quote units."""

    upper: FloatArray
    middle: FloatArray
    lower: FloatArray


def sma(values: FloatArray, window: int) -> FloatArray:
    """Return the plain mean of the last ``window`` values.

    Example:
        >>> sma(np.array([1.0, 2.0, 6.0]), 2).tolist()
        [nan, 1.5, 4.0]
    """
    return _array(talib.SMA(_array(values), _at_least(window, 1)))


def ema(values: FloatArray, window: int) -> FloatArray:
    """Return the exponential mean with weight 2 / (window + 1), begun at the first plain mean."""
    return _array(talib.EMA(_array(values), _at_least(window, 1)))


def macd(close: FloatArray, fast: int = 12, slow: int = 26, signal: int = 9) -> Macd:
    """Return EMA(fast) - EMA(slow), its EMA(signal) and their difference.

    All three begin together, when the signal does.
    """
    if fast >= slow:  # TA-Lib would swap them without a word
        raise ConfigError("the fast window is shorter than the slow one", found=(fast, slow))
    found = talib.MACD(_array(close), _at_least(fast, 2), slow, _at_least(signal, 1))
    return Macd(*map(_array, found))


def rsi(close: FloatArray, window: int = 14) -> FloatArray:
    """Return Wilder's relative strength index, 0 to 100; NaN while no price has moved yet."""
    prices = _array(close)
    index = _array(talib.RSI(prices, _at_least(window, 2)))
    # Without a gain or a loss TA-Lib says 0, which would read as a crash. Mirroring the prices
    # swaps gains and losses, so only there do both indices say 0.
    mirrored = _array(talib.RSI(-prices, window))
    return np.where((index == 0.0) & (mirrored == 0.0), np.nan, index)


def bollinger(close: FloatArray, window: int = 20, deviations: float = 2.0) -> Bands:
    """Return the mean price and the bands some population deviations of the *price* around it."""
    found = talib.BBANDS(_array(close), _at_least(window, 2), deviations, deviations)
    return Bands(*map(_array, found))


def atr(high: FloatArray, low: FloatArray, close: FloatArray, window: int = 14) -> FloatArray:
    """Return Wilder's average true range, in quote units."""
    return _array(talib.ATR(_array(high), _array(low), _array(close), _at_least(window, 1)))


def realised_volatility(close: FloatArray, period_ns: int, window: int = 20) -> FloatArray:
    """Return the root mean square of the last log returns, a year.

    The mean return is taken to be 0, as usual at short horizons, so a steady trend counts as
    movement. A year has as many bars as ``period_ns`` says; crypto trades on all 365 days.
    """
    prices = _array(close)
    if prices.size < 2:
        return np.full(prices.size, np.nan)
    returns = np.diff(np.log(prices))
    # Mean and deviation apart: a rolling sum of squares keeps the rounding of a crash for ever.
    deviation = talib.STDDEV(returns, _at_least(window, 2))
    root_mean_square = np.hypot(deviation, talib.SMA(returns, window))
    return np.concatenate([[np.nan], root_mean_square * np.sqrt(bars_per_year(period_ns))])


def volume_z(volume: FloatArray, window: int = 20) -> FloatArray:
    """Return how many deviations the volume stands from its mean; NaN while it does not vary."""
    sizes = _array(volume)
    deviation = _array(talib.STDDEV(sizes, _at_least(window, 2)))
    scale = np.where(deviation > 0.0, deviation, np.nan)
    return _array((sizes - talib.SMA(sizes, window)) / scale)


def indicator_table(bars: Bars) -> pl.DataFrame:
    """Return the usual set as one table, a row a bar: open time, indicators, book columns if any.

    What is not defined yet is NaN, not null.
    """
    trend, bands = macd(bars.close), bollinger(bars.close)
    columns = {
        "ts": bars.ts,
        "sma_20": sma(bars.close, 20),
        "sma_50": sma(bars.close, 50),
        "ema_12": ema(bars.close, 12),
        "ema_26": ema(bars.close, 26),
        "macd": trend.line,
        "macd_signal": trend.signal,
        "macd_histogram": trend.histogram,
        "rsi_14": rsi(bars.close, 14),
        "bollinger_upper": bands.upper,
        "bollinger_middle": bands.middle,
        "bollinger_lower": bands.lower,
        "atr_14": atr(bars.high, bars.low, bars.close, 14),
        "volatility_20": realised_volatility(bars.close, bars.period_ns, 20),
        "volume": bars.volume,
        "volume_z_20": volume_z(bars.volume, 20),
    }
    book = {name: bars.extra[name] for name in BOOK_COLUMNS if name in bars.extra}
    return pl.DataFrame(columns | book)


def _array(values: object) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)


def _at_least(window: int, least: int) -> int:
    if not least <= window <= 100_000:
        raise ConfigError("a window counts bars", found=window, expected=f"{least} to 100000")
    return window
