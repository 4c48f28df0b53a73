"""A tape whose next row is written just before the venue plays it."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive.config import ReflexiveConfig
from agent_gym.envs.reflexive.kernel import Formed, next_variance, range_variance
from agent_gym.exchange.kernel.layout import BAR_SIGMA, BAR_VOLUME
from agent_gym.exchange.tape import SIGMA_HALF_LIFE_BARS, Tape
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance
from agent_gym.markets.features import BarRow
from agent_gym.markets.instrument import Instrument

START_NS = 1_704_067_200_000_000_000  # 2024-01-01, a Monday
DECAY = 0.5 ** (1.0 / SIGMA_HALF_LIFE_BARS)
SYMBOL = "ECHO/USDT:USDT"


class GrowingTape:
    """Bars and kernel rows of fixed length that are filled from the front.

    Rows that are not yet written hold the first price: the venue never reads past the row that it
    plays. ``tape.bars`` shows what has been written, in the same memory.
    """

    def __init__(self, config: ReflexiveConfig) -> None:
        n, self._price = config.length, config.first_price
        self._columns: dict[str, FloatArray] = {name: np.empty(n) for name in PRICE_COLUMNS}
        self._bought: FloatArray = np.zeros(n)
        self._costs = config.costs
        self._blank()
        ts = START_NS + config.period_ns * np.arange(n, dtype=np.int64)
        bars = Bars(
            Instrument(symbol=SYMBOL, exchange="reflexive", kind="perpetual"),
            config.period_ns,
            ts,
            **self._columns,
            extra={"taker_buy": self._bought, "funding": np.zeros(n)},
            provenance=Provenance(source="synthetic", origin="reflexive"),
        )
        self.tape = Tape.of(bars, config.costs)
        self._variance, self._close = 0.0, math.nan

    def _blank(self) -> None:
        for name, column in self._columns.items():
            column[:] = 1.0 if name == "volume" else self._price
        self._bought[:] = 0.0

    def clear(self) -> None:
        """Forget what was written."""
        self._blank()
        self.tape.rows[:, : BAR_VOLUME + 1] = np.column_stack(
            [self._columns[name] for name in PRICE_COLUMNS]
        )
        self.tape.rows[:, BAR_SIGMA] = 0.0
        self._variance, self._close = 0.0, math.nan

    def offer(self, t: int, bar: Formed, volume: float) -> None:
        """Write what the venue needs of bar t; it may be written again until it is kept."""
        row = self.tape.rows[t]
        row[: BAR_VOLUME + 1] = (bar.open, bar.high, bar.low, bar.close, volume)
        variance = self._variance if t > 0 else range_variance(bar.high, bar.low)
        row[BAR_SIGMA] = math.sqrt(variance)

    def keep(self, t: int, bar: Formed, volume: float, bought: float) -> BarRow:
        """Write bar t for good, and return it for the features."""
        self.offer(t, bar, volume)
        values = (bar.open, bar.high, bar.low, bar.close, volume)
        for name, value in zip(PRICE_COLUMNS, values, strict=True):
            self._columns[name][t] = value
        self._bought[t] = bought
        if t == 0:
            self._variance = range_variance(bar.high, bar.low)
        else:
            self._variance = next_variance(self._variance, bar.close, self._close, DECAY)
        self._close = bar.close
        ts = int(self.tape.bars.ts[t])
        return BarRow(ts, bar.high, bar.low, bar.close, volume, taker_buy=bought, funding=0.0)

    def bars(self, first: int, stop: int) -> Bars:
        """Return a copy of some bars that were written."""
        part, source = slice(first, stop), self.tape.bars
        return Bars(
            source.instrument,
            source.period_ns,
            source.ts[part].copy(),
            **{name: column[part].copy() for name, column in self._columns.items()},
            extra={"taker_buy": self._bought[part].copy(), "funding": np.zeros(stop - first)},
            provenance=source.provenance,
        )
