"""What can be wrong with bars, as masks over the rows: the check and the repair share one truth.

A bad row has exactly one kind (the first that applies, in the order of BAD_ROWS), so that the
counts of a report add up to the rows that a repair would drop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.markets.bars import PRICE_COLUMNS, Bars

BAD_ROWS = {
    "nan": "not a number",
    "inf": "not finite",
    "non_positive_price": "a price must be above 0",
    "negative_volume": "a traded amount cannot be below 0",
    "high_below_low": "the high is below the low",
    "high_below_body": "the high is below the open or the close",
    "low_above_body": "the low is above the open or the close",
}
AMOUNTS = ("volume", "trades", "taker_buy")

Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]


def bad_rows(bars: Bars) -> dict[str, Mask]:
    """Return for each kind of bad row the rows that have it; kinds do not overlap."""
    free = np.ones(len(bars), dtype=np.bool_)
    found = {}
    for kind in BAD_ROWS:
        mask = _has(bars, kind) & free
        free &= ~mask
        found[kind] = mask
    return found


def culprits(bars: Bars, kind: str) -> dict[str, Mask]:
    """Return the columns that can have a fault of one cell, with the rows in which they do."""
    columns = bars.columns()
    if kind == "nan":  # in an extra column NaN means missing and is allowed
        return {name: np.isnan(columns[name]) for name in PRICE_COLUMNS}
    if kind == "inf":
        return {name: np.isinf(column) for name, column in columns.items()}
    if kind == "non_positive_price":
        return {name: columns[name] <= 0.0 for name in PRICE_COLUMNS[:4]}
    return {name: columns[name] < 0.0 for name in AMOUNTS if name in columns}


def _has(bars: Bars, kind: str) -> Mask:
    if kind == "high_below_low":
        return bars.high < bars.low
    if kind == "high_below_body":
        return bars.high < np.maximum(bars.open, bars.close)
    if kind == "low_above_body":
        return bars.low > np.minimum(bars.open, bars.close)
    anywhere = np.zeros(len(bars), dtype=np.bool_)
    for mask in culprits(bars, kind).values():
        anywhere |= mask
    return anywhere


def is_increasing(ts: Indices) -> bool:
    """Return whether every time is later than the one before."""
    return bool(np.all(ts[1:] > ts[:-1]))


def distinct(ts: Indices) -> Indices:
    """Return each time once, in order."""
    if is_increasing(ts):
        return ts
    ordered = np.sort(ts)
    return ordered[np.r_[True, ordered[1:] > ordered[:-1]]]


def repeated(ts: Indices) -> Mask:
    """Return the rows whose time an earlier row already has."""
    mask = np.zeros(ts.size, dtype=np.bool_)
    if not is_increasing(ts):
        order = np.argsort(ts, kind="stable")
        same = ts[order[1:]] == ts[order[:-1]]
        mask[order[1:][same]] = True
    return mask


def out_of_order(ts: Indices) -> Mask:
    """Return the rows that open before a row above them; repeated rows do not count."""
    mask = np.zeros(ts.size, dtype=np.bool_)
    if not is_increasing(ts):
        rows = np.flatnonzero(~repeated(ts))
        times = ts[rows]
        mask[rows[times < np.maximum.accumulate(times)]] = True
    return mask


def grid_offset_ns(ts: Indices, period_ns: int) -> int:
    """Return where in the period most bars open (0 for bars on the hour, the minute, ...)."""
    if not np.any((ts - ts[0]) % period_ns):
        return int(ts[0] % period_ns)
    offsets, counts = np.unique(ts % period_ns, return_counts=True)
    return int(offsets[np.argmax(counts)])


def off_grid(ts: Indices, period_ns: int) -> Mask:
    """Return the rows that open at another place in the period than most; repeated do not count."""
    if ts.size == 0:
        return np.zeros(0, dtype=np.bool_)
    elsewhere: Mask = ts % period_ns != grid_offset_ns(ts, period_ns)
    return elsewhere & ~repeated(ts)


def common_spacing(ts: Indices) -> tuple[int, float]:
    """Return the most common distance of neighbours in time, and its share of all distances."""
    distances, counts = np.unique(np.diff(distinct(ts)), return_counts=True)
    if distances.size == 0:
        return 0, 0.0
    top = int(np.argmax(counts))
    return int(distances[top]), float(counts[top] / counts.sum())


def holes(ts: Indices, period_ns: int) -> tuple[Indices, Indices]:
    """Return, for times in order, the positions before a hole and how many bars each lacks."""
    lacking = np.diff(ts) // period_ns - 1
    before = np.flatnonzero(lacking > 0)
    return before, lacking[before]
