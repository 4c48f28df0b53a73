"""Repairs that were asked for, one explicit choice per kind of fault, each one counted.

The order is fixed: bad rows, unfinished bars, bars off the grid, repeated times, order, gaps. What
the policy does not repair stays as it is, and ``admit`` refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import PRICE_COLUMNS, Bars
from agent_gym.markets.faults import (
    BAD_ROWS,
    Indices,
    Mask,
    bad_rows,
    common_spacing,
    holes,
    is_increasing,
    off_grid,
    out_of_order,
    repeated,
)
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import Expected, QualityReport, check_bars


class RepairPolicy(Config):
    """What may be done to a series; by default nothing, so every fault is refused."""

    gaps: Literal["refuse", "keep", "fill"] = Field(
        default="refuse", description="missing bars; fill = flat bars at the last close, volume 0"
    )
    duplicates: Literal["refuse", "first", "last"] = Field(
        default="refuse", description="rows with the same time; the first or the last one stays"
    )
    order: Literal["refuse", "sort"] = Field(
        default="refuse", description="rows that are not in the order of time"
    )
    bad_rows: Literal["refuse", "drop"] = Field(
        default="refuse", description="NaN, infinite, negative or impossible prices and volumes"
    )
    off_grid: Literal["refuse", "drop"] = Field(
        default="refuse", description="bars that do not open on the grid of the period"
    )
    unfinished: Literal["refuse", "drop"] = Field(
        default="refuse", description="bars that had not closed at the as-of time"
    )
    coverage: Literal["refuse", "keep"] = Field(
        default="refuse", description="more than 0.5 % of the bars of the asked span are absent"
    )
    max_filled_bars: int = Field(
        default=50_000, ge=0, description="most bars that filling gaps may add in all"
    )


_CURE = dict.fromkeys(BAD_ROWS, "bad_rows") | {
    "duplicate_time": "duplicates",
    "out_of_order": "order",
    "off_grid": "off_grid",
    "gap": "gaps",
    "unfinished": "unfinished",
    "too_few_bars": "coverage",
}
# What a bar that nobody traded in holds; a column that is not named here is missing (NaN).
_QUIET = {"volume": 0.0, "trades": 0.0, "taker_buy": 0.0, "ofi": 0.0}


def repair_bars(
    bars: Bars, policy: RepairPolicy, *, as_of_ns: int | None = None
) -> tuple[Bars, dict[str, int]]:
    """Apply the policy; return the series and the rows touched by each repair.

    A series that needs no repair is handed back as it is. The counts are also added to the
    provenance of the repaired series.
    """
    draft = _repair(_Draft(bars, np.arange(1, len(bars) + 1)), policy, as_of_ns)
    return draft.bars, draft.counts


def admit(
    bars: Bars,
    policy: RepairPolicy,
    *,
    source_name: str,
    rows: Indices | None = None,
    expected: Expected | None = None,
) -> Bars:
    """Repair what the policy repairs and refuse what is left with a DataError.

    Arguments are those of ``check_bars``. What comes back passes the check, apart from gaps and
    short spans that the policy keeps.
    """
    asked = expected or Expected()
    start = np.arange(1, len(bars) + 1) if rows is None else rows
    draft = _repair(_Draft(bars, start), policy, asked.as_of_ns)
    if len(draft.bars) == 0:
        raise DataError(
            "no bars are left",
            where=source_name,
            found=f"{len(bars)} before repair",
            expected="at least one sound bar",
            remedy="Look at the faults with `agent-gym data check`, and drop less",
        )
    report = check_bars(draft.bars, source_name=source_name, rows=draft.rows, expected=asked)
    problem = refusal(report, policy)
    if problem is not None:
        raise problem
    return draft.bars


def refusal(report: QualityReport, policy: RepairPolicy) -> DataError | None:
    """Return the error for the first fault that the policy does not keep, if there is one."""
    kept = {kind for kind, cure in _CURE.items() if getattr(policy, cure) == "keep"}
    left = {kind: count for kind, count in report.counts.items() if kind not in kept}
    if not left:
        return None
    issue = next(issue for issue in report.issues if issue.kind in left)
    others = ", ".join(f"{count} {kind}" for kind, count in left.items() if kind != issue.kind)
    count = f"{left[issue.kind]} of this kind in all"
    return DataError(
        f"{issue.kind.replace('_', ' ')}: {issue.reason}",
        where=issue.where,
        found=f"{issue.value}; {count}" + (f"; also {others}" if others else ""),
        remedy=remedy(issue.kind, found_period=issue.value),
    )


def remedy(kind: str, *, found_period: str = "") -> str:
    """Return what a user can do about a kind of fault, naming the exact option."""
    if kind not in _CURE:
        return f"Ask for period={found_period!r} (--period {found_period}) and resample the bars"
    cure = _CURE[kind]
    choices = [str(choice) for choice in _choices(cure) if choice != "refuse"]
    python = " or ".join(f"RepairPolicy({cure}={choice!r})" for choice in choices)
    command = " or ".join(f"--{cure.replace('_', '-')} {choice}" for choice in choices)
    return f"Correct the source, or choose {python} (on the command line {command})"


def _choices(field: str) -> tuple[object, ...]:
    annotation = RepairPolicy.model_fields[field].annotation
    return tuple(getattr(annotation, "__args__", ()))


@dataclass(frozen=True, slots=True)
class _Draft:
    """A series under repair: the bars, the source row of each, and what was done so far."""

    bars: Bars
    rows: Indices
    done: tuple[tuple[str, int], ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.done)

    def note(self, repair: str, touched: int) -> _Draft:
        return replace(self, done=(*self.done, (repair, touched))) if touched else self

    def take(self, places: Indices) -> _Draft:
        columns = {name: column[places] for name, column in self.bars.columns().items()}
        return replace(
            self, bars=_with(self.bars, self.bars.ts[places], columns), rows=self.rows[places]
        )

    def drop(self, mask: Mask, repair: str) -> _Draft:
        if not mask.any():
            return self
        return self.take(np.flatnonzero(~mask)).note(repair, int(mask.sum()))


def _repair(draft: _Draft, policy: RepairPolicy, as_of_ns: int | None) -> _Draft:
    period_ns = draft.bars.period_ns
    if policy.bad_rows == "drop":
        bad = np.zeros(len(draft.bars), dtype=np.bool_)
        for mask in bad_rows(draft.bars).values():
            bad |= mask
        draft = draft.drop(bad, "bad_rows_dropped")
    if policy.unfinished == "drop" and as_of_ns is not None:
        draft = draft.drop(draft.bars.ts + period_ns > as_of_ns, "unfinished_dropped")
    if policy.off_grid == "drop":
        draft = draft.drop(off_grid(draft.bars.ts, period_ns), "off_grid_dropped")
    if policy.duplicates != "refuse":
        draft = _drop_repeated(draft, keep=policy.duplicates)
    if policy.order == "sort":
        moved = int(out_of_order(draft.bars.ts).sum())
        if moved:
            draft = draft.take(np.argsort(draft.bars.ts, kind="stable"))
            draft = draft.note("rows_sorted", moved)
    if policy.gaps != "refuse":
        draft = _treat_gaps(draft, policy)
    return _recorded(draft)


def _drop_repeated(draft: _Draft, *, keep: Literal["first", "last"]) -> _Draft:
    """Keep one row for each time; the place of the first stays, the values are the chosen one's."""
    ts = draft.bars.ts
    extra = repeated(ts)
    if not extra.any():
        return draft
    chosen = np.flatnonzero(~extra)
    if keep == "last":
        unique, first_from_end = np.unique(ts[::-1], return_index=True)
        last = ts.size - 1 - first_from_end
        chosen = last[np.searchsorted(unique, ts[chosen])]
    return draft.take(chosen).note("duplicates_dropped", int(extra.sum()))


def _treat_gaps(draft: _Draft, policy: RepairPolicy) -> _Draft:
    bars = draft.bars
    regular = common_spacing(bars.ts)[0] in (0, bars.period_ns) and is_increasing(bars.ts)
    if not regular or off_grid(bars.ts, bars.period_ns).any():
        return draft  # a gap has no meaning here; the check refuses the series
    before, lacking = holes(bars.ts, bars.period_ns)
    missing = int(lacking.sum())
    if policy.gaps == "keep" or not missing:
        return draft.note("gaps_kept", missing)
    if missing > policy.max_filled_bars:
        raise DataError(
            "too many bars are missing to fill the gaps",
            where=f"{bars.provenance.origin or bars.instrument.symbol}",
            found=f"{missing} missing bars of {format_period(bars.period_ns)}",
            expected=f"at most {policy.max_filled_bars}",
            remedy="Choose a shorter span, gaps='keep', or a larger max_filled_bars",
        )
    return _fill(draft, before, lacking).note("gaps_filled", missing)


def _fill(draft: _Draft, before: Indices, lacking: Indices) -> _Draft:
    bars = draft.bars
    copies = np.ones(len(bars), dtype=np.int64)
    copies[before] += lacking
    source = np.repeat(np.arange(len(bars)), copies)
    step = np.arange(source.size) - np.repeat(np.cumsum(copies) - copies, copies)
    made = step > 0
    columns: dict[str, FloatArray] = {}
    for name, column in bars.columns().items():
        value = bars.close[source] if name in PRICE_COLUMNS[:4] else _QUIET.get(name, np.nan)
        columns[name] = np.where(made, value, column[source])
    ts = bars.ts[source] + step * bars.period_ns
    rows = np.where(made, 0, draft.rows[source])
    return replace(draft, bars=_with(bars, ts, columns), rows=rows)


def _with(bars: Bars, ts: Indices, columns: dict[str, FloatArray]) -> Bars:
    prices: dict[str, Any] = {name: columns[name] for name in PRICE_COLUMNS}
    extra = {name: columns[name] for name in bars.extra}
    return replace(bars, ts=ts, extra=extra, **prices)


def _recorded(draft: _Draft) -> _Draft:
    """Write the counts into the provenance; they add up, but kept gaps are counted as of now."""
    if not draft.done:
        return draft
    known = draft.bars.provenance
    repairs = dict(known.repairs)
    if {"gaps_kept", "gaps_filled"} & set(draft.counts):
        repairs.pop("gaps_kept", None)
    for name, touched in draft.done:
        repairs[name] = repairs.get(name, 0) + touched
    provenance = known.model_copy(update={"repairs": repairs})
    return replace(draft, bars=replace(draft.bars, provenance=provenance))
