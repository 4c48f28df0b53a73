"""Bars laid out for the kernels: one 64-byte row a bar."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray
from agent_gym.exchange.costs import BPS, Costs
from agent_gym.exchange.kernel import layout
from agent_gym.markets.bars import Bars
from agent_gym.markets.quality import format_time

SIGMA_HALF_LIFE_BARS = 48.0
READ_ONLY = "Array(float64, 1, 'C', readonly=True)"


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """A series that the venue can play: the bars and their rows for the kernels."""

    bars: Bars
    rows: FloatArray
    costs: Costs

    @classmethod
    def of(cls, bars: Bars, costs: Costs) -> Tape:
        """Lay out bars under the given costs; the bars must hold prices that can be traded."""
        _check(bars)
        columns = {
            layout.BAR_OPEN: bars.open,
            layout.BAR_HIGH: bars.high,
            layout.BAR_LOW: bars.low,
            layout.BAR_CLOSE: bars.close,
            layout.BAR_VOLUME: bars.volume,
            layout.BAR_SIGMA: known_sigma(bars.high, bars.low, bars.close),
            layout.BAR_HALF_SPREAD: _half_spread(bars, costs),
        }
        if bars.instrument.kind == "perpetual":
            columns[layout.BAR_FUNDING] = _funding(bars, costs)
        return cls(bars, layout.bar_rows(columns, len(bars)), costs)

    def check_fits(self, costs: Costs) -> None:
        """Refuse costs that would have laid out other rows than these."""
        for name in ("half_spread_bps", "spread_from_data", "missing_funding"):
            if getattr(costs, name) != getattr(self.costs, name):
                raise ConfigError(
                    "the tape was laid out under other costs",
                    where=name,
                    found=getattr(costs, name),
                    expected=getattr(self.costs, name),
                    remedy="Lay it out anew with Tape.of(bars, costs)",
                )

    def __len__(self) -> int:
        return len(self.bars)


def _half_spread(bars: Bars, costs: Costs) -> FloatArray:
    fixed = np.full(len(bars), costs.half_spread_bps * BPS)
    if not costs.spread_from_data or "spread" not in bars.extra:
        return fixed
    quoted = 0.5 * bars.extra["spread"] / bars.open
    return np.where(np.isfinite(quoted) & (quoted >= 0.0), quoted, fixed)


def funding_rates(bars: Bars) -> FloatArray:
    """Return the funding rate of each bar, NaN where it is not known: everywhere, if no column."""
    rates = bars.extra.get("funding")
    return np.full(len(bars), np.nan) if rates is None else rates


def _funding(bars: Bars, costs: Costs) -> FloatArray:
    rates = funding_rates(bars)
    unknown = ~np.isfinite(rates)
    if unknown.any() and costs.missing_funding == "refuse":
        row, count = int(np.argmax(unknown)), int(unknown.sum())
        has_column = "funding" in bars.extra
        raise DataError(
            "the funding of a perpetual is not known for every bar",
            where=f"{bars.instrument.symbol}, row {row + 1}, {format_time(int(bars.ts[row]))}",
            found=f"{count:,} of {len(bars):,} bars without a rate"
            if has_column
            else "no funding column",
            expected="a rate for each bar, 0 where none falls due",
            remedy="Lay the rates beside the bars (attach_funding, or --funding FILE), or say "
            "missing_funding=zero (--missing-funding zero) to trade without",
        )
    return np.where(unknown, 0.0, rates)


def _check(bars: Bars) -> None:
    if len(bars) < 2:
        raise DataError("a series of fewer than two bars cannot be traded", found=len(bars))
    prices = np.stack([bars.open, bars.high, bars.low, bars.close])
    bad = ~np.isfinite(prices).all(axis=0) | (prices <= 0.0).any(axis=0)
    bad |= ~(np.isfinite(bars.volume) & (bars.volume >= 0.0))
    bad |= (bars.high < prices.max(axis=0)) | (bars.low > prices.min(axis=0))
    if bad.any():
        row = int(np.argmax(bad))
        raise DataError(
            "a bar cannot be traded: not a number, not positive, or outside its own range",
            where=f"row {row + 1}",
            found=f"{prices[:, row].tolist()} volume {bars.volume[row]}",
            remedy="Check the series with `agent-gym data check` and import it with a repair",
        )
    if not (bars.volume > 0.0).any():
        raise DataError(
            "every bar has a volume of 0, so no order could ever fill",
            remedy="Give the series a volume column",
        )


@door(f"float64[::1]({READ_ONLY}, {READ_ONLY}, {READ_ONLY})")
def known_sigma(high: FloatArray, low: FloatArray, close: FloatArray) -> FloatArray:
    """Return each bar's volatility as known before it opens: an EWMA of past log returns.

    The first two bars, which have no past return, use the range of the first bar.
    """
    n = close.size
    sigma = np.empty(n)
    decay = 0.5 ** (1.0 / SIGMA_HALF_LIFE_BARS)
    spread = math.log(high[0] / low[0])
    variance = spread * spread / (4.0 * math.log(2.0))
    for i in range(n):
        sigma[i] = math.sqrt(variance)
        if i > 0:
            r = math.log(close[i] / close[i - 1])
            variance = decay * variance + (1.0 - decay) * r * r
    return sigma
