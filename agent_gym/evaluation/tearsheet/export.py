"""A sheet as files: the page, every number as JSON, tables as CSV, the picture as PNG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from agent_gym.core.errors import ConfigError
from agent_gym.core.files import atomic_path, write_json, write_text
from agent_gym.evaluation.metrics import drawdowns
from agent_gym.evaluation.tearsheet.history import (
    deepest_drawdowns,
    monthly_returns,
    rolling_sharpe,
)
from agent_gym.evaluation.tearsheet.page import page_of
from agent_gym.evaluation.tearsheet.picture import png_of
from agent_gym.evaluation.tearsheet.sheet import Band, Sheet
from agent_gym.evaluation.tearsheet.tables import Trip, costs_of, figure_rows, trips_of

SCHEMA_VERSION = 1
FORMATS = (".html", ".json", ".csv", ".png")
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def write_sheet(path: Path, sheet: Sheet) -> None:
    """Write a sheet in the format that the name ends with; equal sheets give equal bytes.

    ``.csv`` writes the curves, and beside them NAME.figures.csv, NAME.round_trips.csv,
    NAME.monthly.csv and NAME.drawdowns.csv.
    """
    kind = format_of(path)
    if kind == ".html":
        write_text(path, page_of(sheet))
    elif kind == ".json":
        write_json(path, payload_of(sheet))
    elif kind == ".png":
        with atomic_path(path) as temporary:
            temporary.write_bytes(png_of(sheet))
    else:
        for name, table in tables_of(sheet).items():
            target = path if name == "curves" else path.with_suffix(f".{name}.csv")
            with atomic_path(target) as temporary:
                table.write_csv(temporary)


def format_of(path: Path) -> str:
    """Return the format that a name asks for, or raise ConfigError.

    Example:
        >>> format_of(Path("run.HTML"))
        '.html'
    """
    kind = path.suffix.lower()
    if kind not in FORMATS:
        raise ConfigError(
            "a report is written in the format that its name ends with",
            where=str(path),
            found=repr(path.suffix),
            expected=", ".join(FORMATS),
            remedy="Give it a name such as report.html",
        )
    return kind


def payload_of(sheet: Sheet) -> dict[str, Any]:
    """Return every number of the page as plain values; curves by bar are in the CSV."""
    rolled = rolling_sharpe(sheet.ts, sheet.period_ns, sheet.curve)
    costs = costs_of(sheet)
    return {
        "schema_version": SCHEMA_VERSION,
        "title": sheet.title,
        "subject": sheet.subject,
        "verdict": None
        if sheet.verdict is None
        else {"word": sheet.verdict[0], "why": sheet.verdict[1]},
        "notes": list(sheet.notes),
        "first_ns": int(sheet.ts[0]),
        "last_ns": int(sheet.ts[-1]),
        "figures": {arm: dict(known) for arm, known in sheet.figures.items()},
        "intervals": {name: _band(band) for name, band in sheet.intervals.items()},
        "versus": [
            {"baseline": each.baseline, "unit": each.unit, "p_value": each.p_value}
            | _band(each.interval)
            for each in sheet.versus
        ],
        "monthly": [
            {"year": year.year, "total": year.total}
            | {"months": {str(month): value for month, value in year.months.items()}}
            for year in monthly_returns(sheet.ts, sheet.curve)
        ],
        "rolling_sharpe": None
        if rolled is None
        else {"window": rolled.window, "ts": rolled.ts.tolist(), "sharpe": list(rolled.sharpe)},
        "drawdowns": [
            asdict(fall) for fall in deepest_drawdowns(sheet.ts, sheet.period_ns, sheet.curve)
        ],
        "round_trips": [trip._asdict() for trip in trips_of(sheet)],
        "costs": None if costs is None else asdict(costs),
        "regimes": None if sheet.regimes is None else [asdict(span) for span in sheet.regimes],
        "caps": dict(sheet.caps),
        "provenance": dict(sheet.provenance),
        "command": sheet.command,
        "manifest": dict(sheet.manifest),
    }


def tables_of(sheet: Sheet) -> dict[str, pl.DataFrame]:
    """Return the tables by name: curves, figures, round_trips, monthly, drawdowns."""
    curves: dict[str, Any] = {"time_ns": sheet.ts}
    curves |= {f"equity {arm}": curve for arm, curve in sheet.equity.items()}
    curves["drawdown"] = drawdowns(sheet.curve)
    if sheet.position is not None:
        curves["position"] = sheet.position
    figures = [
        {"figure": name} | {_text(arm): value for arm, value in values.items()}
        for name, values in figure_rows(sheet)
    ]
    months = [
        {"year": year.year, "month": month, "return": value}
        for year in monthly_returns(sheet.ts, sheet.curve)
        for month, value in year.months.items()
    ]
    falls = [asdict(fall) for fall in deepest_drawdowns(sheet.ts, sheet.period_ns, sheet.curve)]
    return {
        "curves": pl.DataFrame({name: np.ascontiguousarray(c) for name, c in curves.items()}),
        "figures": _frame(figures, ["figure", *map(_text, sheet.figures)]),
        "round_trips": _frame((trip._asdict() for trip in trips_of(sheet)), list(Trip._fields)),
        "monthly": _frame(months, ["year", "month", "return"]),
        "drawdowns": _frame(falls, ["depth", "days", "peak_ns", "trough_ns", "end_ns"]),
    }


def _frame(rows: Iterable[Mapping[str, Any]], names: list[str]) -> pl.DataFrame:
    listed = list(rows)
    return pl.DataFrame(
        {name: pl.Series([row[name] for row in listed], strict=False) for name in names}
    )


def _band(band: Band) -> dict[str, float]:
    return {
        "estimate": band.estimate,
        "low": band.low,
        "high": band.high,
        "level": band.level,
    }


def _text(cell: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    return f"'{cell}" if cell.startswith(FORMULA_SIGNS) else cell
