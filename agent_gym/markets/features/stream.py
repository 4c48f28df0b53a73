"""Features of a whole series, a piece of it or one live bar: the same code, the same bits."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import SIGNAL_PREFIX, Bars
from agent_gym.markets.features.config import FeatureConfig
from agent_gym.markets.features.kernel import (
    COLUMNS,
    STATE_SHAPE,
    WEEK_NS,
    FlowKnobs,
    PriceKnobs,
    flow_features,
    price_features,
    time_features,
)
from agent_gym.markets.features.table import FeatureTable

DEFAULT_CONFIG = FeatureConfig()


class BarRow(NamedTuple):
    """One finished bar: open time in UTC nanoseconds, prices, and what else is known of it."""

    ts: int
    high: float
    low: float
    close: float
    volume: float
    taker_buy: float = math.nan
    obi: float = math.nan
    ofi: float = math.nan
    spread: float = math.nan
    funding: float = math.nan


class FeatureStream:
    """Turns bars into features as they close; gives the bits that the whole series would give.

    Example:
        >>> stream = FeatureStream(period_ns=3600 * 10**9)
        >>> values, mask = stream.update(BarRow(0, high=2.0, low=1.0, close=1.5, volume=3.0))
        >>> values[mask].round(2).tolist()
        [0.0, 0.26, 0.97, 0.4, -0.92]
    """

    def __init__(self, period_ns: int, config: FeatureConfig = DEFAULT_CONFIG) -> None:
        if period_ns <= 0:
            raise ConfigError("a bar period is longer than nothing", found=period_ns)
        self.period_ns = period_ns
        self.config = config
        self._price_knobs, self._flow_knobs = _knobs(config)
        self._horizons = np.array(config.momentum_horizons, dtype=np.int64)
        self._price_state = np.zeros(STATE_SHAPE)
        self._price_state[3, 0] = math.nan
        self._flow_state = np.zeros(STATE_SHAPE)
        self._flow_state[4, 0] = math.nan
        longest = config.momentum_horizons[-1]
        self._ring = np.full(1 << longest.bit_length(), math.nan)
        self._last_ts: int | None = None

    def update(self, bar: BarRow) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Take one finished bar and return its features and which of them are known."""
        ts = np.array([bar.ts], dtype=np.int64)
        values = self._run(ts, np.array([bar[1:]], dtype=np.float64))[0]
        return values, ~np.isnan(values)

    def extend(self, bars: Bars) -> FeatureTable:
        """Take the next bars of the series, any number of them, and return their features."""
        if bars.period_ns != self.period_ns:
            raise DataError("bars of another period", found=bars.period_ns, expected=self.period_ns)
        columns = bars.columns()
        rows = np.full((len(bars), len(COLUMNS)), math.nan)
        for j, name in enumerate(COLUMNS):
            if name in columns:
                rows[:, j] = columns[name]
        values = self._run(bars.ts, rows)
        return FeatureTable(self.config.names, values, ~np.isnan(values))

    def _run(self, ts: NDArray[np.int64], rows: FloatArray) -> FloatArray:
        self._check_order(ts)
        out = np.empty((rows.shape[0], len(self.config.names)))
        price_features(rows, self._price_knobs, self._horizons, self._price_state, self._ring, out)
        flow_features(rows, self._flow_knobs, self._flow_state, out)
        time_features(ts + self.period_ns, out)
        # Bars of whole days all close at the same hour (of whole weeks: on the same weekday), so
        # the clock says nothing there, and a constant column would only look like information.
        if self.period_ns % DAY_NS == 0:
            out[:, 14:16] = math.nan
        if self.period_ns % WEEK_NS == 0:
            out[:, 16:18] = math.nan
        return out

    def _check_order(self, ts: NDArray[np.int64]) -> None:
        if ts.size == 0:
            return
        first = int(ts[0])
        if self._last_ts is not None and first <= self._last_ts:
            raise DataError(
                "time goes back", where="feature stream", found=first, expected=f"> {self._last_ts}"
            )
        if ts.size > 1 and not bool((ts[1:] > ts[:-1]).all()):
            row = int(np.argmin(ts[1:] > ts[:-1])) + 1
            raise DataError("time goes back", where=f"row {row}", found=int(ts[row]))
        self._last_ts = int(ts[-1])


def compute_features(bars: Bars, config: FeatureConfig = DEFAULT_CONFIG) -> FeatureTable:
    """Return the 18 features of every bar; row t is a function of bars 0..t alone, to the bit.

    Signals that the bars carry (``signal_...``) follow as further columns, as they are.
    A bar is an index step: a hole in time is not seen here, ``markets.quality`` closes it first.
    A price that is not a positive number hides the features that need it and enters no average.
    """
    table = FeatureStream(bars.period_ns, config).extend(bars)
    signals = tuple(name for name in bars.columns() if name.startswith(SIGNAL_PREFIX))
    if not signals:
        return table
    values = np.column_stack([table.values, *(bars.extra[name] for name in signals)])
    return FeatureTable(table.names + signals, values, ~np.isnan(values))


def _knobs(config: FeatureConfig) -> tuple[FloatArray, FloatArray]:
    # The slack covers the rounding of the weight, so the count of warm-up bars is exact.
    ready = 1.0 - 0.5**config.warm_up_half_lives - 1e-9
    prices = PriceKnobs(
        ready=ready,
        decay=_decay(config.volatility_half_life),
        fast=_decay(config.fast_half_life),
        slow=_decay(config.slow_half_life),
        floor=config.volatility_floor,
        return_clip=config.return_clip,
        momentum_clip=config.momentum_clip,
    )
    flows = FlowKnobs(
        ready=ready,
        volume=_decay(config.volume_half_life),
        order_flow=_decay(config.order_flow_half_life),
        spread=_decay(config.spread_half_life),
        funding=_decay(config.funding_half_life),
    )
    return np.array(prices, dtype=np.float64), np.array(flows, dtype=np.float64)


def _decay(half_life: float) -> float:
    return float(0.5 ** (1.0 / half_life))
