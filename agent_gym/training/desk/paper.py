"""Paper outcomes: what a signal would have earned, by three barriers and after costs.

A signal is entered at the open of the first bar that opens at or after it. It leaves at the first
of three barriers: a gain or a loss of so many deviations, or the end of the horizon. Where one bar
touches both, the loss is taken; where a bar opens beyond a barrier, it leaves at that open. Only
bars that closed by ``as_of`` are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.desk.schemas import Signal
from agent_gym.core.clock import HOUR_NS, SECOND_NS
from agent_gym.core.types import FloatArray
from agent_gym.exchange.costs import Costs
from agent_gym.markets.bars import Bars
from agent_gym.training.desk.config import PaperConfig

BPS = 1e-4
Why: TypeAlias = Literal["no_market", "no_bars", "too_young", "gap_in_bars"]
Market: TypeAlias = Bars | Mapping[str, Bars]


@dataclass(frozen=True, slots=True)
class PaperOutcome:
    """What came of a signal on paper; ``payoff`` is the net return on what was traded."""

    payoff: float
    closed_at: float
    barrier: Literal["gain", "loss", "time"]


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """Bars with the deviation of one bar's log return, known when each bar has closed."""

    bars: Bars
    deviation: FloatArray

    @classmethod
    def of(cls, bars: Bars, window: int) -> Tape:
        """Lay out bars; the deviation is NaN until three returns are known."""
        return cls(bars, rolling_deviation(bars.close, window))

    def closed(self, time_ns: int) -> int:
        """Return the index of the last bar that has closed by a time, -1 if none has."""
        return int(np.searchsorted(self.bars.ts, time_ns - self.bars.period_ns, "right")) - 1

    def hourly_deviation(self, bar: int) -> float:
        """Return the deviation of an hour's return as it was known at a bar's close."""
        return float(self.deviation[bar]) * float(np.sqrt(HOUR_NS / self.bars.period_ns))


def rolling_deviation(close: FloatArray, window: int) -> FloatArray:
    """Return the standard deviation of the last log returns at each bar, NaN for the first three.

    Example:
        >>> rolling_deviation(np.array([1.0, 1.0, 1.0, 1.0]), 3).tolist()
        [nan, nan, nan, 0.0]
    """
    steps = np.diff(np.log(close))
    out = np.full(close.size, np.nan)
    for last in range(3, min(window, close.size)):
        out[last] = steps[:last].std()
    if close.size > window:
        out[window:] = np.lib.stride_tricks.sliding_window_view(steps, window).std(axis=1)
    return out


class PaperDesk:
    """Settles signals on bars.

    Args:
        market: Bars of one market, or bars by symbol.
        config: Barriers and costs.
    """

    def __init__(self, market: Market | None, config: PaperConfig | None = None) -> None:
        self.config = config or PaperConfig()
        series = {} if market is None else by_symbol(market)
        self.tapes = {
            symbol: Tape.of(bars, self.config.volatility_bars) for symbol, bars in series.items()
        }
        costs = self.config.costs
        self._side_cost = BPS * (costs.taker_bps + costs.half_spread_bps + costs.slippage_bps)

    def settle(
        self, signal: Signal, known_at: float, horizon_ns: int, as_of: float | None = None
    ) -> PaperOutcome | Why:
        """Return the outcome of a signal that became known at a time, or why there is none."""
        tape = self.tapes.get(signal.symbol)
        if tape is None:
            return "no_market"
        at_ns, period = round(known_at * SECOND_NS), tape.bars.period_ns
        known, first = tape.closed(at_ns), int(np.searchsorted(tape.bars.ts, at_ns, "left"))
        last_seen = len(tape.bars) - 1
        if as_of is not None:
            last_seen = tape.closed(round(as_of * SECOND_NS))
        if known < 0 or not np.isfinite(tape.deviation[known]):
            return "no_bars"
        end_ns = at_ns + horizon_ns
        if last_seen < 0 or int(tape.bars.ts[last_seen]) + period < end_ns:
            return "too_young"
        cut = slice(first, int(np.searchsorted(tape.bars.ts, end_ns, "left")))
        expected = max(1, horizon_ns // period)
        if cut.stop - first < self.config.least_coverage * expected:
            return "gap_in_bars"
        deviation = float(tape.deviation[known])
        reach = self.config.barrier_sigmas * deviation * float(expected) ** 0.5
        leave_at, outcome = _walk(tape.bars, cut, reach, signal.params.side == "buy")
        impact = _impact(
            self.config.costs, deviation, signal.params.amount, tape.bars.volume[known]
        )
        cost = (self._side_cost + impact) * (2.0 + leave_at)
        funding = _funding(tape.bars, cut.start, outcome.closed_at, signal.params.side == "buy")
        return replace(outcome, payoff=outcome.payoff - cost - funding)


def _impact(costs: Costs, deviation: float, amount: float, volume: float) -> float:
    """Return how far an order moves the price, by the volume of the last closed bar."""
    return costs.impact * deviation * (amount / volume) ** 0.5 if volume > 0.0 else 0.0


def _funding(bars: Bars, first: int, closed_at: float, is_long: bool) -> float:
    """Return what a perpetual's funding took, in shares of what was traded; 0 where not known."""
    if "funding" not in bars.extra:
        return 0.0
    last = int(np.searchsorted(bars.ts, round(closed_at * SECOND_NS), "left"))
    due = float(np.nansum(bars.extra["funding"][first + 1 : last]))
    return due if is_long else -due


def _walk(bars: Bars, cut: slice, reach: float, is_long: bool) -> tuple[float, PaperOutcome]:
    """Return by how much the price had moved at the end, and the outcome before costs."""
    side = 1.0 if is_long else -1.0
    entry = float(bars.open[cut.start])
    up, down = entry * (1.0 + reach), entry * (1.0 - reach)
    over, under = bars.high[cut] >= up, bars.low[cut] <= down
    hits: NDArray[np.bool_] = over | under
    i = int(hits.argmax()) if hits.any() else hits.size - 1
    bar = cut.start + i
    opened = float(bars.open[bar])
    barrier: Literal["gain", "loss", "time"] = "time"
    leave = float(bars.close[bar])
    if hits[i]:
        lost = bool(under[i] if side > 0.0 else over[i])
        barrier = "loss" if lost else "gain"
        wall = down if lost == (side > 0.0) else up
        leave = min(opened, wall) if wall == down else max(opened, wall)
    moved = leave / entry - 1.0
    closed_at = (int(bars.ts[bar]) + bars.period_ns) / SECOND_NS
    return moved, PaperOutcome(side * moved, closed_at, barrier)


def by_symbol(market: Market) -> dict[str, Bars]:
    """Return bars by the symbol as signals write it (a perpetual's ``:USDT`` is left off)."""
    series = {market.instrument.symbol: market} if isinstance(market, Bars) else dict(market)
    return {symbol.partition(":")[0]: bars for symbol, bars in series.items()}
