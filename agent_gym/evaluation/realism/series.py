"""The columns that facts are computed from, made once for a series of bars."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars

Indices = NDArray[np.int64]

_TICKS = tuple(float(f"{digit}e{power}") for power in range(3, -9, -1) for digit in (5, 2, 1))
_ON_GRID = 0.999  # a few prices off the grid (data errors) do not make it finer


class Series:
    """Returns, ranges and flow of one series; the first bar only gives the first return."""

    def __init__(self, bars: Bars) -> None:
        if len(bars) < 3:
            raise DataError("too few bars to measure", found=len(bars), expected="at least 3")
        self.bars = bars
        self.period_ns = bars.period_ns

    def _column(self, values: FloatArray) -> FloatArray:
        return values[1:]

    @cached_property
    def returns(self) -> FloatArray:
        """Return log close-to-close returns."""
        return np.diff(np.log(self.bars.close))

    @cached_property
    def absolute(self) -> FloatArray:
        """Return absolute returns."""
        return np.abs(self.returns)

    @cached_property
    def squared(self) -> FloatArray:
        """Return squared returns."""
        return self.returns**2

    @cached_property
    def tick(self) -> float:
        """Return the price step of the instrument, or the one its closes lie on."""
        return self.bars.instrument.tick or infer_tick(self.bars.close)

    @cached_property
    def span(self) -> FloatArray:
        """Return high less low, at least one tick, in quote units."""
        return self._column(np.maximum(self.bars.high - self.bars.low, self.tick))

    @cached_property
    def range(self) -> FloatArray:
        """Return the log of high over low."""
        return self._column(np.log(self.bars.high / self.bars.low))

    @cached_property
    def log_range(self) -> FloatArray:
        """Return the log of the span over the open."""
        return np.log(self.span / self._column(self.bars.open))

    @cached_property
    def body(self) -> FloatArray:
        """Return the share of the span between open and close."""
        return self._column(np.abs(self.bars.close - self.bars.open)) / self.span

    @cached_property
    def no_upper_wick(self) -> FloatArray:
        """Return 1 where the high is the open or the close."""
        bars = self.bars
        return self._column((bars.high <= np.maximum(bars.open, bars.close)).astype(np.float64))

    @cached_property
    def volume(self) -> FloatArray:
        """Return the base volume."""
        return self._column(self.bars.volume)

    @cached_property
    def log_volume(self) -> FloatArray:
        """Return log volume; a bar without trades counts as a thousandth of a unit."""
        return np.log(np.maximum(self.volume, 1e-3))

    @cached_property
    def log_trades(self) -> FloatArray | None:
        """Return the log of the number of trades, if the series has it."""
        trades = self.bars.extra.get("trades")
        return None if trades is None else np.log(np.maximum(self._column(trades), 1.0))

    @cached_property
    def imbalance(self) -> FloatArray | None:
        """Return taker buys less taker sells over volume, if the series has it."""
        bought = self.bars.extra.get("taker_buy")
        if bought is None:
            return None
        traded = np.maximum(self.volume, 1e-9)
        return np.where(self.volume > 0.0, 2.0 * self._column(bought) / traded - 1.0, 0.0)

    @cached_property
    def hour(self) -> Indices:
        """Return the hour of day, UTC."""
        return self.bars.ts[1:] // HOUR_NS % 24

    @cached_property
    def day_starts(self) -> Indices:
        """Return the index of the first return of each UTC day."""
        days = self.bars.ts[1:] // DAY_NS
        return np.flatnonzero(np.diff(days, prepend=days[0] - 1)).astype(np.int64)

    def by_day(self, *terms: FloatArray) -> FloatArray:
        """Return the sums of each term over each day: one row a day, one column a term."""
        return np.column_stack([np.add.reduceat(term, self.day_starts) for term in terms])

    def day_of(self, index: Indices) -> Indices:
        """Return the day number of each return index."""
        return np.searchsorted(self.day_starts, index, side="right").astype(np.int64) - 1


def infer_tick(prices: FloatArray) -> float:
    """Return the coarsest step of 1, 2 or 5 times a power of ten that the prices lie on.

    Example:
        >>> infer_tick(np.array([100.1, 100.3, 99.9]))
        0.2
    """
    moved = np.abs(np.diff(prices))
    usual = np.median(moved[moved > 0.0]) if moved.any() else 0.0
    for tick in _TICKS:
        steps = (prices - prices[0]) / tick
        if tick <= usual * 1.001 and np.mean(np.abs(steps - np.round(steps)) < 1e-3) >= _ON_GRID:
            return tick
    return _TICKS[-1]
