"""Months of cached bars: what they cover, and how they are merged and joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance
from agent_gym.markets.quality import format_time

Span = tuple[int, int]
COVERED = "covered"
REMEDY = "Delete this file and fetch the month again"


def cover_of(bars: Bars) -> tuple[Span, ...]:
    """Return the spans of open times that a cached month covers."""
    found = bars.provenance.details.get(COVERED, [])
    return tuple((int(low), int(high)) for low, high in found)


def month_span(month: str) -> Span:
    """Return the first nanosecond of a month and that of the next.

    Example:
        >>> (month_span("2024-02")[1] - month_span("2024-02")[0]) // (24 * 3600 * 10**9)
        29
    """
    first = np.datetime64(month, "M")
    low, high = (int((first + step).astype("M8[ns]").astype(np.int64)) for step in (0, 1))
    return low, high


def months_of(start_ns: int, until_ns: int) -> Iterator[tuple[str, Span]]:
    """Yield each month that [start, until) touches, with its part of the span."""
    cursor = start_ns
    while cursor < until_ns:
        month = str(np.datetime64(cursor, "ns").astype("M8[M]"))
        stop = min(month_span(month)[1], until_ns)
        yield month, (cursor, stop)
        cursor = stop


def runs_of(bars: Bars) -> tuple[Span, ...]:
    """Return the spans in which bar follows bar without a hole."""
    if not len(bars):
        return ()
    breaks = np.flatnonzero(np.diff(bars.ts) != bars.period_ns)
    lows = bars.ts[np.concatenate(([0], breaks + 1))]
    highs = bars.ts[np.concatenate((breaks, [len(bars) - 1]))] + bars.period_ns
    return tuple((int(low), int(high)) for low, high in zip(lows, highs, strict=True))


def merged(old: Bars | None, new: Bars, path: Path) -> Bars:
    """Return the month with the new bars in it; a bar may come twice but not with two values."""
    if old is None:
        return new
    both = joined_bars([old, new], str(path))
    order = np.argsort(both.ts, kind="stable")
    ts = both.ts[order]
    columns = {name: column[order] for name, column in both.columns().items()}
    twice = np.flatnonzero(ts[1:] == ts[:-1])
    for name, column in columns.items():
        differs = twice[~_same(column[twice], column[twice + 1])]
        if differs.size:
            at = differs[0]
            raise DataError(
                "a bar differs from the one in the cache",
                where=f"{path} at {format_time(int(ts[at]))}",
                found=f"{name} {column[at + 1]} now, {column[at]} before",
                remedy=REMEDY,
            )
    keep = np.setdiff1d(np.arange(ts.size), twice + 1)
    prices: dict[str, Any] = {name: columns[name][keep] for name in PRICE_COLUMNS}
    extra = {name: columns[name][keep] for name in new.extra}
    merged = replace(new, ts=ts[keep], extra=extra, **prices)
    return with_cover(merged, (*cover_of(old), *cover_of(new)))


def _same(left: Any, right: Any) -> Any:
    return (left == right) | (np.isnan(left) & np.isnan(right))


def with_cover(bars: Bars, spans: tuple[Span, ...]) -> Bars:
    """Return the bars with the record that they cover these spans."""
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    details = bars.provenance.details | {COVERED: [list(span) for span in joined]}
    return replace(bars, provenance=bars.provenance.model_copy(update={"details": details}))


def joined_bars(parts: list[Bars], where: str) -> Bars:
    """Return the parts as one series; parts from different servers do not go together."""
    last = parts[-1]
    for part in parts:
        if _origin(part.provenance) != _origin(last.provenance) or set(part.extra) != set(
            last.extra
        ):
            raise DataError(
                "the cache mixes bars of different servers or columns",
                where=where,
                found=f"{_origin(part.provenance)} {sorted(part.extra)}",
                expected=f"{_origin(last.provenance)} {sorted(last.extra)}",
                remedy="Use one cache directory for each server",
            )
    columns = {
        name: np.concatenate([part.columns()[name] for part in parts]) for name in last.columns()
    }
    prices: dict[str, Any] = {name: columns[name] for name in PRICE_COLUMNS}
    return replace(
        last,
        ts=np.concatenate([part.ts for part in parts]),
        extra={name: columns[name] for name in last.extra},
        provenance=_shared([part.provenance for part in parts]),
        **prices,
    )


def _origin(provenance: Provenance) -> tuple[object, ...]:
    return (provenance.source, provenance.origin, provenance.details.get("server"))


def _shared(sources: list[Provenance]) -> Provenance:
    """Return what is true of all parts; repairs add up unless they are of one series cut up."""
    last = sources[-1]
    kept = {
        key: value
        for key, value in last.details.items()
        if key != COVERED and all(source.details.get(key) == value for source in sources)
    }
    repairs = dict(last.repairs)
    if any(source.repairs != repairs for source in sources):
        repairs = dict(sum((Counter(source.repairs) for source in sources), Counter()))
    return last.model_copy(update={"details": kept, "repairs": repairs})
