"""Backtests on disk: written whole, listed, and read back for whoever shows them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.evaluation.baselines import Comparison
from agent_gym.evaluation.regimes import by_state, market_states
from agent_gym.evaluation.results import EQUITY, FILLS, RESULTS, staged
from agent_gym.evaluation.session import too_short, without_ratios
from agent_gym.evaluation.tearsheet import Sheet, write_sheet
from agent_gym.evaluation.tearsheet.axes import regime_colours
from agent_gym.evaluation.tearsheet.linked import linked_option
from agent_gym.evaluation.tearsheet.options import versus_option

FOLDER, CHARTS, REGIMES = "backtests", "charts.json", "regimes.json"
MOST_FILLS = 500
DEEPEST = 4
ELSEWHERE = frozenset(
    ("cache", "experiments", "jobs", "models", "reports", "snapshots", "trajectories")
)
"""Rooms of the folder of results that hold other things, and many of them."""


@dataclass(frozen=True, slots=True)
class SavedBacktest:
    """A backtest as it lies in its folder.

    Attributes:
        name: Of its folder: the way to it, in ``backtests`` from there.
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
        write_comparison(comparison, sheet, stage)
        for page in pages:
            write_sheet(stage / page, sheet)


def write_comparison(comparison: Comparison, sheet: Sheet, stage: Path) -> None:
    """Write figures, tables and charts of a comparison into a folder that is there."""
    comparison.main.write(stage)
    write_json(stage / RESULTS, comparison.payload())
    charts, regimes = charts_of(sheet)
    write_json(stage / CHARTS, charts)
    write_json(stage / REGIMES, {"states": regimes})


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


def saved_backtests(home: Path) -> tuple[SavedBacktest, ...]:
    """Return what was kept below a folder of results by name, without the charts.

    Backtests, the demo and sandbox sessions are kept alike, wherever ``--out`` has put them.
    """
    return tuple(
        SavedBacktest(name, _results(path), {}) for name, path in sorted(_known(home).items())
    )


def read_backtest(home: Path, name: str) -> SavedBacktest:
    """Return one backtest; a name that is no folder here is refused."""
    path = _place(home, name)
    charts = _object(path / CHARTS) if (path / CHARTS).is_file() else {}
    told = _object(path / REGIMES) if (path / REGIMES).is_file() else {"states": []}
    return SavedBacktest(name, _results(path), charts, tuple(told["states"]))


def last_fills(home: Path, name: str, most: int = MOST_FILLS) -> pl.DataFrame:
    """Return the last fills of a backtest, newest first."""
    return _table(_place(home, name) / FILLS).tail(most).reverse()


def last_positions(home: Path, name: str, most: int = 1) -> pl.DataFrame:
    """Return equity, position and cash at the last closes, newest first."""
    return _table(_place(home, name) / EQUITY).tail(most).reverse()


def _place(home: Path, name: str) -> Path:
    known = _known(home)
    if name not in known:
        raise ConfigError(
            "there is no such backtest",
            found=name[:200],
            expected=", ".join(sorted(known)[:5]) or None,
            remedy="`agent-gym backtest --agent NAME --market NAME --plot` makes one",
        )
    return known[name]


def _known(home: Path) -> dict[str, Path]:
    """Return the folders of backtests by name; in ``backtests`` it is short if it can be."""
    ways = {path.relative_to(home).as_posix(): path for path in _folders(home)}
    short = {way: way.removeprefix(f"{FOLDER}/") for way in ways}
    return {way if short[way] in ways else short[way]: path for way, path in ways.items()}


def _folders(home: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(home):
        if {RESULTS, EQUITY} <= set(names):
            yield Path(root)
        depth = len(Path(root).relative_to(home).parts)
        away = ELSEWHERE if depth == 0 else frozenset[str]()
        folders[:] = [
            name
            for name in folders
            if depth < DEEPEST and name not in away and not name.startswith(".")
        ]


def _results(path: Path) -> dict[str, Any]:
    """Return the figures of a folder; a short session has no ratios, as in its report."""
    found = _object(path / RESULTS)
    session = "sandbox" in found.get("manifest", {}).get("config", {})
    if not session or too_short(found["metrics"]) is None:
        return found
    beside = {
        label: arm | {"metrics": without_ratios(arm["metrics"])}
        for label, arm in found.get("baselines", {}).items()
    }
    return found | {"metrics": without_ratios(found["metrics"]), "baselines": beside}


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
