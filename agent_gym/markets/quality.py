"""Is this series what it claims to be? Every fault is named with file, row, time and reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_gym.markets.bars import Bars
from agent_gym.markets.faults import (
    BAD_ROWS,
    Indices,
    bad_rows,
    common_spacing,
    culprits,
    distinct,
    grid_offset_ns,
    holes,
    off_grid,
    out_of_order,
    repeated,
)
from agent_gym.markets.periods import format_period

KINDS = (
    "wrong_period",
    *BAD_ROWS,
    "duplicate_time",
    "out_of_order",
    "off_grid",
    "gap",
    "unfinished",
    "too_few_bars",
)
COVERAGE_TOLERANCE = 0.005


@dataclass(frozen=True, slots=True)
class Expected:
    """What was asked for: bars that open in [start, end] and have closed by ``as_of``."""

    start_ns: int | None = None
    end_ns: int | None = None
    as_of_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault; ``row`` is the data row of the file, counted from 1, where there is one."""

    source: str
    row: int | None
    ts_ns: int | None
    kind: str
    value: str
    reason: str

    @property
    def where(self) -> str:
        """Return the place in words, for an error message."""
        row = "" if self.row is None else f" row {self.row}"
        time = "" if self.ts_ns is None else f" ({format_time(self.ts_ns)})"
        return f"{self.source}{row}{time}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        time = None if self.ts_ns is None else format_time(self.ts_ns)
        return {
            "source": self.source,
            "row": self.row,
            "time": time,
            "kind": self.kind,
            "value": self.value,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class QualityReport:
    """The faults of a series: how many of each kind, and the first examples of each."""

    source: str
    rows: int
    period_ns: int
    first_ns: int | None
    last_ns: int | None
    counts: dict[str, int] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()
    missing_bars: int = 0
    longest_gap_bars: int = 0
    repairs: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return whether nothing at all was found."""
        return not self.counts

    def as_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can say."""
        return {
            "source": self.source,
            "ok": self.ok,
            "rows": self.rows,
            "period": format_period(self.period_ns),
            "first": None if self.first_ns is None else format_time(self.first_ns),
            "last": None if self.last_ns is None else format_time(self.last_ns),
            "counts": dict(self.counts),
            "missing_bars": self.missing_bars,
            "longest_gap_bars": self.longest_gap_bars,
            "repairs": dict(self.repairs),
            "issues": [issue.as_dict() for issue in self.issues],
        }


def check_bars(
    bars: Bars,
    *,
    source_name: str,
    rows: Indices | None = None,
    expected: Expected | None = None,
    examples: int = 5,
) -> QualityReport:
    """Find every fault of a series; ``bars.period_ns`` is the period that was asked for.

    Args:
        bars: The series as it came, in the order of its source.
        source_name: File or exchange, for the messages.
        rows: The row of the source each bar came from; by default they count from 1. A row of 0
            marks a bar that a repair has made and that no source holds.
        expected: The span that was asked for, if any.
        examples: How many examples of each kind the report keeps.
    """
    search = _Search(
        bars=bars,
        source=source_name,
        rows=np.arange(1, len(bars) + 1) if rows is None else rows,
        expected=expected or Expected(),
        examples=examples,
    )
    counts: dict[str, int] = {}
    issues: list[Issue] = []
    for kind, count, found in (*search.bad_rows(), *search.times(), *search.span()):
        if count:
            counts[kind] = count
            issues.extend(found)
    lacking = search.lacking()
    return QualityReport(
        source=source_name,
        rows=len(bars),
        period_ns=bars.period_ns,
        first_ns=int(bars.ts.min()) if len(bars) else None,
        last_ns=int(bars.ts.max()) if len(bars) else None,
        counts={kind: counts[kind] for kind in KINDS if kind in counts},
        issues=tuple(sorted(issues, key=lambda issue: KINDS.index(issue.kind))),
        missing_bars=int(lacking.sum()),
        longest_gap_bars=int(lacking.max(initial=0)),
        repairs=dict(bars.provenance.repairs),
    )


Finding = tuple[str, int, list[Issue]]


@dataclass(frozen=True, slots=True)
class _Search:
    """One pass over one series."""

    bars: Bars
    source: str
    rows: Indices
    expected: Expected
    examples: int

    def bad_rows(self) -> Iterator[Finding]:
        for kind, mask in bad_rows(self.bars).items():
            places = np.flatnonzero(mask)
            yield (
                kind,
                places.size,
                [
                    self.issue(kind, int(at), *self.cell(kind, int(at)))
                    for at in places[: self.examples]
                ],
            )

    def times(self) -> Iterator[Finding]:
        ts, period_ns = self.bars.ts, self.bars.period_ns
        spacing_ns, _ = common_spacing(ts)
        masks = {"duplicate_time": repeated(ts), "out_of_order": out_of_order(ts)}
        if spacing_ns not in (0, period_ns):
            asked, found = format_period(period_ns), format_period(spacing_ns)
            reason = f"bars of {asked} were asked for, these are mostly {found} apart"
            yield "wrong_period", 1, [self.issue("wrong_period", 0, found, reason)]
        else:
            masks["off_grid"] = off_grid(ts, period_ns)
            yield self.gaps()
        reasons = {
            "duplicate_time": "an earlier row has the same time",
            "out_of_order": "a row above it has a later time",
            "off_grid": f"it does not open on the grid of {format_period(period_ns)} bars",
        }
        for kind, mask in masks.items():
            places = np.flatnonzero(mask)
            examples = [
                self.issue(kind, int(at), format_time(int(ts[at])), reasons[kind])
                for at in places[: self.examples]
            ]
            yield kind, places.size, examples

    def gaps(self) -> Finding:
        order = self.regular()
        ts = self.bars.ts[order]
        before, lacking = holes(ts, self.bars.period_ns)
        examples = []
        for at, missing in zip(before[: self.examples], lacking, strict=False):
            first = int(ts[at]) + self.bars.period_ns
            last = int(ts[at]) + int(missing) * self.bars.period_ns
            reason = f"no bars from {format_time(first)} to {format_time(last)}"
            examples.append(self.issue("gap", int(order[at + 1]), f"{missing} missing", reason))
        return "gap", int(before.size), examples

    def span(self) -> Iterator[Finding]:
        """Compare with what was asked for: no bar still open, not too few bars."""
        bars, expected = self.bars, self.expected
        if expected.as_of_ns is not None:
            late = np.flatnonzero(bars.ts + bars.period_ns > expected.as_of_ns)
            reason = f"the bar had not closed by {format_time(expected.as_of_ns)}"
            value = "still open"
            yield (
                "unfinished",
                late.size,
                [self.issue("unfinished", int(at), value, reason) for at in late[: self.examples]],
            )
        sides = (expected.start_ns is not None) + (expected.end_ns is not None)
        if sides == 2 or (sides == 1 and len(bars)):
            yield self.coverage()

    def coverage(self) -> Finding:
        bars, expected = self.bars, self.expected
        start = int(bars.ts.min()) if expected.start_ns is None else expected.start_ns
        end = int(bars.ts.max()) if expected.end_ns is None else expected.end_ns
        offset = grid_offset_ns(bars.ts, bars.period_ns) if len(bars) else 0
        wanted = (end - offset) // bars.period_ns - (start - offset - 1) // bars.period_ns
        loaded = distinct(bars.ts[self.rows > 0]).size
        short = abs(loaded - wanted) > COVERAGE_TOLERANCE * wanted
        reason = f"{format_time(start)} to {format_time(end)} has {wanted} bars, {loaded} are there"
        issue = Issue(self.source, None, None, "too_few_bars", f"{loaded} of {wanted}", reason)
        return "too_few_bars", int(short), [issue]

    def lacking(self) -> Indices:
        spacing_ns, _ = common_spacing(self.bars.ts)
        if spacing_ns != self.bars.period_ns:
            return np.zeros(0, dtype=np.int64)
        return holes(self.bars.ts[self.regular()], self.bars.period_ns)[1]

    def regular(self) -> Indices:
        """Return the rows on the grid in the order of time, each time once."""
        ts = self.bars.ts
        _, first = np.unique(ts, return_index=True)
        return first[~off_grid(ts, self.bars.period_ns)[first]]

    def cell(self, kind: str, at: int) -> tuple[str, str]:
        """Return the offending value and the reason, for a bad row."""
        bars, reason = self.bars, BAD_ROWS[kind]
        if kind.startswith(("high_", "low_")):
            names = ("open", "high", "low", "close")
            return " ".join(f"{name}={float(getattr(bars, name)[at])!r}" for name in names), reason
        named = culprits(bars, kind)
        column = next(name for name, mask in named.items() if mask[at])
        return repr(float(bars.columns()[column][at])), f"{column}: {reason}"

    def issue(self, kind: str, at: int, value: str, reason: str) -> Issue:
        row = int(self.rows[at])
        return Issue(self.source, row or None, int(self.bars.ts[at]), kind, value, reason)


def format_time(ts_ns: int) -> str:
    """Return UTC nanoseconds as ISO text, without a fraction where there is none.

    Example:
        >>> format_time(1_704_067_200_000_000_000)
        '2024-01-01T00:00:00Z'
    """
    text = str(np.datetime64(ts_ns, "ns"))
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"
