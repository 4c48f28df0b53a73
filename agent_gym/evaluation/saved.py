"""Backtests on disk: written whole, listed, and read back for whoever shows them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.evaluation.baselines import Comparison
from agent_gym.evaluation.regimes import by_state, market_states
from agent_gym.evaluation.results import EQUITY, FILLS, RESULTS, staged
from agent_gym.evaluation.tearsheet import Sheet, write_sheet
from agent_gym.evaluation.tearsheet.axes import regime_colours
from agent_gym.evaluation.tearsheet.linked import linked_option
from agent_gym.evaluation.tearsheet.options import versus_option

FOLDER, CHARTS, REGIMES = "backtests", "charts.json", "regimes.json"
MOST_FILLS = 500


@dataclass(frozen=True, slots=True)
class SavedBacktest:
    """A backtest as it lies in its folder.

    Attributes:
        name: Of its folder.
        results: What ``results.json`` says.
        charts: ECharts options by name, as they were drawn when it was saved; may be empty.
        regimes: What was earned in each state of the market (``StateFigures``), with the colour
            that the charts give it; empty for a short market.
    """

    name: str
    results: dict[str, Any]
    charts: dict[str, Any]
    regimes: tuple[dict[str, Any], ...] = ()


def save_comparison(
    comparison: Comparison, sheet: Sheet, out: Path, pages: tuple[str, ...] = ()
) -> None:
    """Write everything about a comparison into a folder: all of it or nothing.

    Args:
        comparison: The run and what stands beside it.
        sheet: Its tear sheet, whose charts are kept for the dashboard.
        out: The folder.
        pages: Names of tear sheets to write there too; the ending says the format.
    """
    with staged(out) as stage:
        comparison.main.write(stage)
        write_json(stage / RESULTS, comparison.payload())
        charts, regimes = charts_of(sheet)
        write_json(stage / CHARTS, charts)
        write_json(stage / REGIMES, {"states": regimes})
        for page in pages:
            write_sheet(stage / page, sheet)


def charts_of(sheet: Sheet) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the charts of a sheet by name, and what was earned in each state of its market."""
    bars, regimes = sheet.bars, list[dict[str, Any]]()
    states = None if bars is None else market_states(bars, sheet.ts)
    if bars is not None and states is not None:
        spans = states.spans()
        sheet, colours = replace(sheet, regimes=spans), regime_colours(spans)
        regimes = [
            asdict(each) | {"colour": colours[each.name]}
            for each in by_state(states, bars.close, sheet.equity)
        ]
    charts: dict[str, Any] = {"linked": linked_option(sheet)}
    if sheet.versus:
        charts["versus"] = versus_option(sheet.versus)
    return charts, regimes


def saved_backtests(folder: Path) -> tuple[SavedBacktest, ...]:
    """Return the backtests in a folder by name, without their charts."""
    found = sorted(path.parent for path in folder.glob(f"*/{RESULTS}"))
    return tuple(SavedBacktest(path.name, _object(path / RESULTS), {}) for path in found)


def read_backtest(folder: Path, name: str) -> SavedBacktest:
    """Return one backtest; a name that is no folder here is refused."""
    known = {path.parent.name: path.parent for path in folder.glob(f"*/{RESULTS}")}
    if name not in known:
        raise ConfigError(
            "there is no such backtest",
            found=name[:200],
            expected=", ".join(sorted(known)[:5]) or None,
            remedy="`agent-gym backtest --agent NAME --market NAME --plot` makes one",
        )
    path = known[name]
    charts = _object(path / CHARTS) if (path / CHARTS).is_file() else {}
    told = _object(path / REGIMES) if (path / REGIMES).is_file() else {"states": []}
    return SavedBacktest(name, _object(path / RESULTS), charts, tuple(told["states"]))


def last_fills(folder: Path, name: str, most: int = MOST_FILLS) -> pl.DataFrame:
    """Return the last fills of a backtest, newest first."""
    return _table(folder / read_backtest(folder, name).name / FILLS).tail(most).reverse()


def last_positions(folder: Path, name: str, most: int = 1) -> pl.DataFrame:
    """Return equity, position and cash at the last closes, newest first."""
    return _table(folder / read_backtest(folder, name).name / EQUITY).tail(most).reverse()


def _table(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError("a table of a backtest cannot be read", where=str(path)) from error


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            "a backtest cannot be read",
            where=str(path),
            found=str(error),
            remedy="Run it again: its folder is then written anew",
        ) from error
    if not isinstance(found, dict):
        raise DataError("a backtest is an object", where=str(path), found=type(found).__name__)
    return found
