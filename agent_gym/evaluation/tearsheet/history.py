"""The run told by the calendar: months, rolling Sharpe, the deepest drawdowns.

Page, picture and JSON take their numbers from here, and the figures behind them from ``metrics``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.metrics import drawdowns, risk_returns, sharpe

WINDOW = 90  # returns (days, if bars are shorter) in a window of the rolling Sharpe ratio
LEAST_RETURNS = 30  # fewer make no rolling figure at all
MAX_WINDOWS = 2_000


@dataclass(frozen=True, slots=True)
class Drawdown:
    """One fall from a peak; ``end_ns`` is None if the peak was not reached again."""

    depth: float
    days: float
    peak_ns: int
    trough_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True)
class Year:
    """Returns of a calendar year and its months (1 to 12); None where the equity was gone."""

    year: int
    total: float | None
    months: dict[int, float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Rolling:
    """Sharpe ratios of windows of ``window`` returns that end at ``ts``; None if undefined."""

    window: int
    ts: NDArray[np.int64]
    sharpe: tuple[float | None, ...]


def deepest_drawdowns(
    ts: NDArray[np.int64], period_ns: int, equity: FloatArray, top: int = 10
) -> list[Drawdown]:
    """Return the deepest falls, each from its own peak, deepest first.

    Example:
        >>> hours = 3_600 * 10**9 * np.arange(1, 7)
        >>> curve = np.array([100.0, 120.0, 90.0, 130.0, 125.0, 126.1])
        >>> [round(fall.depth, 3) for fall in deepest_drawdowns(hours, 3_600 * 10**9, curve)]
        [0.25, 0.038]
    """
    falls = drawdowns(equity)
    under = falls > 0.0
    edges = np.diff(under.astype(np.int8), prepend=0, append=0)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not starts.size:
        return []
    depths = np.maximum.reduceat(falls, starts)
    found = []
    for place in np.lexsort((starts, -depths))[:top]:
        start, end = int(starts[place]), int(ends[place])
        trough = start + int(np.argmax(falls[start:end]))
        peak = int(np.argmax(equity[:start]))  # the first time that this height was reached
        last = min(end, equity.size - 1)
        found.append(
            Drawdown(
                depth=float(falls[trough]),
                days=(last - peak) * period_ns / DAY_NS,
                peak_ns=int(ts[peak]),
                trough_ns=int(ts[trough]),
                end_ns=int(ts[end]) if end < equity.size else None,
            )
        )
    return found


def monthly_returns(ts: NDArray[np.int64], equity: FloatArray) -> list[Year]:
    """Return the returns of calendar months (UTC); the months of a year compound to its total.

    A mark at midnight belongs to the day that it ends. The first and last month go as far as the
    curve does.
    """
    stamps: Any = (ts - 1).astype("datetime64[ns]")
    months = stamps.astype("datetime64[M]").astype(np.int64)
    lasts = np.flatnonzero(np.diff(months, append=months[-1] + 1))
    bases = np.concatenate([[0], lasts[:-1]])
    years: dict[int, Year] = {}
    opened: dict[int, float] = {}
    for base, last in zip(bases.tolist(), lasts.tolist(), strict=True):
        year, month = divmod(int(months[last]), 12)
        year += 1970
        opened.setdefault(year, float(equity[base]))
        known = years[year].months if year in years else {}
        known[month + 1] = _gain(float(equity[base]), float(equity[last]))
        years[year] = Year(year, _gain(opened[year], float(equity[last])), known)
    return list(years.values())


def rolling_sharpe(ts: NDArray[np.int64], period_ns: int, equity: FloatArray) -> Rolling | None:
    """Return the Sharpe ratio of the last 90 returns, or of a third of them if they are few.

    ``ts`` are close times. None with fewer than 30 returns, or if the equity was ever gone.
    """
    returns, per_year = risk_returns(ts - period_ns, period_ns, equity)
    if returns.size < LEAST_RETURNS:
        return None
    window = WINDOW if returns.size >= 2 * WINDOW else returns.size // 3
    ends = np.arange(window, returns.size + 1)
    ends = ends[:: -(-ends.size // MAX_WINDOWS)]
    values = tuple(sharpe(returns[end - window : end], per_year) for end in ends.tolist())
    return Rolling(window, _return_times(ts, period_ns)[ends - 1], values)


def _return_times(ts: NDArray[np.int64], period_ns: int) -> NDArray[np.int64]:
    """Return the times at which the returns of ``metrics.risk_returns`` end."""
    if period_ns >= DAY_NS:
        return ts[1:]
    first, last = -(-int(ts[0] - period_ns) // DAY_NS), int(ts[-1]) // DAY_NS
    return np.arange(first + 1, last + 1, dtype=np.int64) * DAY_NS


def _gain(before: float, after: float) -> float | None:
    return after / before - 1.0 if before > 0.0 else None
