"""Longer bars from shorter ones, on the UTC grid, without a look at what is not there yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.faults import Indices, holes, is_increasing
from agent_gym.markets.periods import format_period, parse_period
from agent_gym.markets.quality import format_time

_WEEK_NS = 7 * DAY_NS
_MONDAY_NS = 4 * DAY_NS  # 1970-01-05, because weeks open on Monday
_SUMMED = ("volume", "trades", "taker_buy", "ofi", "funding")


def resample(bars: Bars, period: str | int) -> Bars:
    """Return bars of a longer period (``"4h"`` or nanoseconds), a multiple of the present one.

    Open is the first, high the highest, low the lowest, close the last; volume, trades, taker_buy
    and ofi are sums; spread is the mean of the bars that know it; obi is the last. ``funding`` is
    the sum of the rates that fall due in the bar, since each is paid on the position held then. A
    sum over a missing value (NaN) is missing.

    A first bucket whose first bar is not in the series and a last bucket whose last bar is not are
    dropped and counted in the provenance, so a longer series never changes a bar that a shorter
    one has given. A bucket with bars missing inside is made of those it has, and counted.
    """
    period_ns = parse_period(period) if isinstance(period, str) else period
    if period_ns == bars.period_ns:
        return bars
    _check(bars, period_ns)
    buckets = _bucket_open(bars.ts, period_ns)
    first, last = _whole(bars, buckets, period_ns)
    if first >= last:
        raise DataError(
            "the series is too short for one whole bar of the longer period",
            found=f"{len(bars)} bars of {format_period(bars.period_ns)}",
            expected=f"at least {period_ns // bars.period_ns} from an even time",
        )
    kept, opens = bars.rows(first, last), buckets[first:last]
    starts = np.flatnonzero(np.r_[True, opens[1:] != opens[:-1]])
    sizes = np.diff(np.r_[starts, opens.size])
    columns: dict[str, Any] = {
        name: _aggregate(name, column, starts, sizes) for name, column in kept.columns().items()
    }
    extra = {name: columns.pop(name) for name in bars.extra}
    ts = opens[starts]
    counts = {
        "from": format_period(bars.period_ns),
        "to": format_period(period_ns),
        "first_bars_dropped": first,
        "last_bars_dropped": len(bars) - last,
        "partial_bars": int((sizes < period_ns // bars.period_ns).sum()),
    }
    return replace(
        bars,
        period_ns=period_ns,
        ts=ts,
        extra=extra,
        provenance=_provenance(bars.provenance, counts, int(holes(ts, period_ns)[1].sum())),
        **columns,
    )


def _check(bars: Bars, period_ns: int) -> None:
    if period_ns < bars.period_ns or period_ns % bars.period_ns:
        raise ConfigError(
            "the longer period is not a multiple of the period of the bars",
            found=format_period(period_ns),
            expected=f"a multiple of {format_period(bars.period_ns)}",
        )
    if not is_increasing(bars.ts):
        raise DataError("the bars are not in the order of time", remedy="Repair them first")
    astray = _bucket_open(bars.ts, bars.period_ns) != bars.ts
    if astray.any():
        raise DataError(
            f"a bar does not open on the UTC grid of {format_period(bars.period_ns)} bars",
            where=format_time(int(bars.ts[np.argmax(astray)])),
            found=f"{int(astray.sum())} such bars",
        )


def _bucket_open(ts: Indices, period_ns: int) -> Indices:
    origin = _MONDAY_NS if period_ns % _WEEK_NS == 0 else 0
    opens: Indices = ts - (ts - origin) % period_ns
    return opens


def _whole(bars: Bars, buckets: Indices, period_ns: int) -> tuple[int, int]:
    """Return the rows between an incomplete first and an incomplete last bucket."""
    if len(bars) == 0:
        return 0, 0
    first = 0
    if bars.ts[0] != buckets[0]:
        first = int(np.searchsorted(buckets, buckets[0], side="right"))
    last = len(bars)
    if bars.ts[-1] + bars.period_ns != buckets[-1] + period_ns:
        last = int(np.searchsorted(buckets, buckets[-1], side="left"))
    return first, last


def _aggregate(name: str, column: FloatArray, starts: Indices, sizes: Indices) -> FloatArray:
    if name == "open":
        return column[starts]
    if name == "high":
        return np.asarray(np.maximum.reduceat(column, starts))
    if name == "low":
        return np.asarray(np.minimum.reduceat(column, starts))
    if name in _SUMMED:
        return np.asarray(np.add.reduceat(column, starts))
    if name == "spread":
        known = ~np.isnan(column)
        count = np.add.reduceat(known.astype(np.float64), starts)
        total = np.add.reduceat(np.where(known, column, 0.0), starts)
        mean = np.full(count.size, np.nan)
        np.divide(total, count, out=mean, where=count > 0)
        return mean
    latest: FloatArray = column[starts + sizes - 1]
    return latest


def _provenance(known: Provenance, counts: dict[str, Any], missing: int) -> Provenance:
    repairs = {name: count for name, count in known.repairs.items() if name != "gaps_kept"}
    if missing:
        repairs["gaps_kept"] = missing
    details = known.details | {"resample": [*known.details.get("resample", []), counts]}
    return known.model_copy(update={"repairs": repairs, "details": details})
