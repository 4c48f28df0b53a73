"""From a file to bars: load, understand, select, repair as asked, and refuse what is left."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance, extra_names
from agent_gym.markets.faults import Indices, common_spacing, holes
from agent_gym.markets.parquet import is_native, read_native
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import Expected, QualityReport, check_bars, format_time
from agent_gym.markets.readers.layout import BARS
from agent_gym.markets.readers.opening import require_file
from agent_gym.markets.readers.request import UNKNOWN_INSTRUMENT, ReadRequest, period_nanos
from agent_gym.markets.readers.tables import load_table, numbers
from agent_gym.markets.readers.times import to_nanos
from agent_gym.markets.repair import RepairPolicy, admit


@dataclass(frozen=True, slots=True)
class RawBars:
    """The asked rows of a file before any repair, in the order of the file."""

    bars: Bars
    rows: Indices
    source: str
    expected: Expected
    policy: RepairPolicy

    def check(self, *, examples: int = 5) -> QualityReport:
        """Report every fault, whatever the policy says of it."""
        return check_bars(
            self.bars,
            source_name=self.source,
            rows=self.rows,
            expected=self.expected,
            examples=examples,
        )

    def admitted(self) -> Bars:
        """Return the repaired bars, or raise the DataError that names the first fault."""
        return admit(
            self.bars,
            self.policy,
            source_name=self.source,
            rows=self.rows,
            expected=self.expected,
        )


def read_bars(path: Path, *, request: ReadRequest | None = None) -> Bars:
    """Read bars from our own Parquet, or from a CSV, Parquet or Feather file of others.

    The format is found by content. Without a request everything doubtful is refused: gaps,
    repeated or unordered times, impossible prices. The error names row, reason and remedy.
    """
    return read_raw(path, request=request).admitted()


def read_raw(path: Path, *, request: ReadRequest | None = None) -> RawBars:
    """Read the asked rows of a file without judging them."""
    asked = request or ReadRequest()
    expected = asked.expected()
    require_file(path)
    native = is_native(path)
    bars = _native(path, asked) if native else _foreign(path, asked)
    rows = np.arange(1, len(bars) + 1)
    if len(bars) == 0:
        raise DataError(
            "the file has no bars",
            where=str(path),
            found="0 data rows",
            expected="at least one row",
            remedy="Make it again from its source",
        )
    chosen = _chosen(bars.ts, expected)
    if not chosen.all():
        rows = rows[chosen]
        bars = _selected(path, bars, rows - 1)
    policy = _recorded_choice(bars, asked.repair) if native else asked.repair
    return RawBars(bars, rows, str(path), expected, policy)


def _foreign(path: Path, asked: ReadRequest) -> Bars:
    table = load_table(path, BARS)
    ts, how = to_nanos(table, time_unit=asked.time_unit, naive=asked.naive)
    divisor = asked.price_divisor or table.price_divisor
    details: dict[str, Any] = {
        "format": table.format,
        "rows_in_file": table.frame.height,
        "columns": {name: column.name for name, column in table.columns.items()},
        "time": how,
        "period": "asked for" if asked.period is not None else "inferred from the spacing",
    }
    if divisor is not None:
        details["price_divisor"] = divisor
    prices: dict[str, Any] = {
        name: numbers(table, name, divisor=divisor if name != "volume" else None)
        for name in PRICE_COLUMNS
    }
    return Bars(
        instrument=asked.instrument or UNKNOWN_INSTRUMENT,
        period_ns=_period(path, ts) if asked.period is None else period_nanos(asked.period),
        ts=ts,
        extra={name: numbers(table, name) for name in extra_names(table.columns)},
        provenance=Provenance(source="file", origin=path.name, details=details),
        **prices,
    )


def _native(path: Path, asked: ReadRequest) -> Bars:
    bars = read_native(path)
    if asked.price_divisor is not None:
        raise ConfigError(
            "a file of agent-gym has no price divisor",
            where=str(path),
            found=f"--price-divisor {asked.price_divisor:g}",
            remedy="Leave it out: the prices are stored as they are",
        )
    if asked.instrument is not None and asked.instrument != bars.instrument:
        raise DataError(
            "the file holds another instrument than the one asked for",
            where=str(path),
            found=bars.instrument,
            expected=asked.instrument,
            remedy="Leave out --symbol, --exchange and --kind to take what the file says",
        )
    if asked.period is None:
        return bars
    return replace(bars, period_ns=period_nanos(asked.period))


def _period(path: Path, ts: Indices) -> int:
    """Return the most common spacing, if it is the spacing of at least half the rows."""
    spacing_ns, share = common_spacing(ts)
    if share >= 0.5:
        return spacing_ns
    raise DataError(
        "the period of the bars cannot be told from their times",
        where=str(path),
        found=f"{ts.size} rows; {share:.0%} of the distances are {format_period(spacing_ns)}"
        if spacing_ns
        else f"{ts.size} rows at one time",
        remedy="Say the period, for example period='1h' (--period 1h)",
    )


def _chosen(ts: Indices, expected: Expected) -> Any:
    chosen = np.ones(ts.size, dtype=np.bool_)
    if expected.start_ns is not None:
        chosen &= ts >= expected.start_ns
    if expected.end_ns is not None:
        chosen &= ts <= expected.end_ns
    return chosen


def _selected(path: Path, bars: Bars, places: Indices) -> Bars:
    if places.size == 0:
        first, last = format_time(int(bars.ts.min())), format_time(int(bars.ts.max()))
        raise ConfigError(
            "no bar of the file lies in the asked span",
            where=str(path),
            found=f"bars from {first} to {last}",
            expected="a start and an end within the file",
            remedy="Change --start and --end (start and end of the request)",
        )
    prices: dict[str, Any] = {name: getattr(bars, name)[places] for name in PRICE_COLUMNS}
    extra = {name: column[places] for name, column in bars.extra.items()}
    return replace(bars, ts=bars.ts[places], extra=extra, **prices)


def _recorded_choice(bars: Bars, policy: RepairPolicy) -> RepairPolicy:
    """Keep the gaps that were kept on purpose when our own file was made, and no more."""
    recorded = bars.provenance.repairs.get("gaps_kept", 0)
    missing = int(holes(bars.ts, bars.period_ns)[1].sum())
    if policy.gaps == "refuse" and 0 < missing <= recorded:
        return policy.model_copy(update={"gaps": "keep"})
    return policy
