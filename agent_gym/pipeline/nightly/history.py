"""Past runs as people look for them: page by page, one metric over time, several side by side.

Only reads. Every question opens the ledger anew, so it may be asked from any thread and while a run
is writing; a workspace without a ledger has no runs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.core.registry import Config
from agent_gym.evaluation.gate import GatePolicy, History, Night, change_points
from agent_gym.evaluation.tearsheet.thinning import thin
from agent_gym.pipeline.nightly.compared import ComparedMetric, compared
from agent_gym.pipeline.nightly.ledger import BUSY_S
from agent_gym.pipeline.nightly.workspace import Workspace

LARGEST_PAGE = 500
MOST_NIGHTS = 20_000
CHANGE_NIGHTS = 500
POINTS = 1_000
Light: TypeAlias = Literal["good", "unsure", "bad"]
Sort: TypeAlias = Literal["created_at", "run_id", "verdict", "light"]
_FIELD = {
    "created_at": "created_at",
    "run_id": "run_id",
    "verdict": "json_extract(body, '$.verdict')",
    "light": "json_extract(body, '$.light')",
}


class RunFilter(Config):
    """Which runs; what is not given does not matter. ``text`` is a part of the id or the commit."""

    suite: str | None = None
    light: Light | None = None
    verdict: str | None = None
    text: str | None = None

    def where(self) -> tuple[str, list[str]]:
        """Return the condition and its values; nothing that a caller writes becomes SQL."""
        parts, values = ["1 = 1"], []
        for name, field in (("suite", "suite_id"), ("light", _FIELD["light"])):
            if getattr(self, name):
                parts.append(f"{field} = ?")
                values.append(str(getattr(self, name)))
        if self.verdict:
            parts.append(f"{_FIELD['verdict']} = ?")
            values.append(self.verdict)
        if self.text:
            parts.append(
                "(instr(lower(run_id), ?) or instr(lower(json_extract(body, '$.commit')), ?))"
            )
            values += [self.text.lower()] * 2
        return " and ".join(parts), values


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the ledger remembers it; ``values`` are the means of its metrics."""

    run_id: str
    suite: str
    created_at: str
    finished_at: str
    status: str
    verdict: str
    light: str
    exit_code: int
    commit: str | None
    baseline_id: str | None
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One run's figure.

    Attributes:
        run_id: The run.
        created_at: When it began.
        value: The mean of the metric.
        light: How the run ended.
        baseline_id: What it was compared with.
        change: Whether the gate sees a new level begin here.
        new_baseline: Whether it is the first run compared with this baseline.
        first_baseline: Whether no run before it was compared with any.
    """

    run_id: str
    created_at: str
    value: float
    light: str
    baseline_id: str | None
    change: bool = False
    new_baseline: bool = False
    first_baseline: bool = False


@dataclass(frozen=True, slots=True)
class MetricHistory:
    """A metric over time, oldest first; ``total`` counts what was there before thinning."""

    name: str
    points: tuple[MetricPoint, ...]
    total: int


class RunHistory:
    """The runs of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace, self._path = workspace, workspace.ledger

    def page(
        self,
        chosen: RunFilter | None = None,
        *,
        sort: Sort = "created_at",
        descending: bool = True,
        first: int = 0,
        limit: int = 50,
    ) -> tuple[RunRow, ...]:
        """Return some runs, the newest first if nothing else is asked for."""
        if sort not in _FIELD or not 1 <= limit <= LARGEST_PAGE or first < 0:
            raise ConfigError("there is no such page of runs", found=(sort, first, limit))
        where, values = (chosen or RunFilter()).where()
        way = "DESC" if descending else "ASC"
        columns = dict.fromkeys((_FIELD[sort], "created_at", "run_id"))
        order = ", ".join(f"{column} {way}" for column in columns)
        asked = (
            f"SELECT suite_id, body FROM nightly_runs WHERE {where} "
            f"ORDER BY {order} LIMIT ? OFFSET ?"
        )
        return tuple(_row(*found) for found in self._ask(asked, [*values, limit, first]))

    def count(self, chosen: RunFilter | None = None) -> int:
        """Return how many runs there are."""
        where, values = (chosen or RunFilter()).where()
        found = self._ask(f"SELECT count(*) FROM nightly_runs WHERE {where}", values)
        return int(found[0][0]) if found else 0

    def get(self, run_ids: Sequence[str]) -> tuple[RunRow, ...]:
        """Return runs in the order in which they are named; ConfigError if one is not there."""
        marks = ",".join("?" * len(run_ids))
        asked = f"SELECT suite_id, body FROM nightly_runs WHERE run_id IN ({marks})"
        known = {row.run_id: row for row in (_row(*each) for each in self._ask(asked, run_ids))}
        for run_id in run_ids:
            if run_id not in known:
                raise ConfigError(
                    "no run has this id", found=run_id, remedy="Choose one from the list of runs"
                )
        return tuple(known[run_id] for run_id in run_ids)

    def suites(self) -> tuple[str, ...]:
        """Return the suites that have runs."""
        asked = "SELECT DISTINCT suite_id FROM nightly_runs ORDER BY suite_id"
        return tuple(str(found[0]) for found in self._ask(asked))

    def last(self, *, light: Light | None = None, suite: str | None = None) -> RunRow | None:
        """Return the newest run, or the newest of a light; None if there is none."""
        found = self.page(RunFilter(light=light, suite=suite), limit=1)
        return found[0] if found else None

    def metric(
        self,
        suite: str,
        name: str,
        policy: GatePolicy,
        *,
        nights: int = MOST_NIGHTS,
        points: int = POINTS,
    ) -> MetricHistory:
        """Return one metric over the last runs of a suite, with new levels and baselines marked.

        Level changes are looked for in the latest ``CHANGE_NIGHTS`` complete runs. A series that is
        too long to be drawn is thinned; what is marked stays.
        """
        path = f'$.night.values."{name}"'
        if '"' in name or "\\" in name:
            raise ConfigError("this cannot be the name of a metric", found=name)
        asked = (
            "SELECT run_id, created_at, json_extract(body, ?), json_extract(body, '$.light'), "
            "json_extract(body, '$.baseline_id'), json_extract(body, '$.status') "
            "FROM nightly_runs WHERE suite_id = ? ORDER BY created_at DESC, run_id DESC LIMIT ?"
        )
        rows = [
            row
            for row in reversed(self._ask(asked, [path, suite, nights]))
            if isinstance(row[2], int | float)
        ]
        levels = self._levels(suite, name, policy)
        made, before = [], self._baseline_before(suite, rows[0][1]) if rows else None
        for run_id, created_at, value, light, baseline, _ in rows:
            fresh = baseline is not None and baseline != before
            made.append(
                MetricPoint(
                    run_id,
                    created_at,
                    float(value),
                    light,
                    baseline,
                    change=run_id in levels,
                    new_baseline=fresh,
                    first_baseline=fresh and before is None,
                )
            )
            before = baseline or before
        return MetricHistory(name, _thinned(made, points), len(made))

    def compare(self, runs: Sequence[RunRow]) -> tuple[ComparedMetric, ...]:
        """Return every metric of some runs, each compared with the first run."""
        said = self._said()
        names = sorted({name for run in runs for name in run.values})
        values = {name: [run.values.get(name) for run in runs] for name in names}
        return tuple(compared(name, said.get(name, {}), values[name]) for name in names)

    def directions(self) -> dict[str, str]:
        """Return which way is better by metric, as the last report says; empty without one."""
        return {name: str(metric["direction"]) for name, metric in self._said().items()}

    def _said(self) -> dict[str, dict[str, Any]]:
        """Return what the last report says of each metric."""
        report = self.report()
        return {
            f"{scenario['name']}/{name}": metric
            for scenario in (report or {}).get("scenarios", [])
            for name, metric in scenario["metrics"].items()
        }

    def report(self) -> dict[str, Any] | None:
        """Return the report of the last night; None if there was none."""
        return _document(self.workspace.outputs(planted=False)["report"])

    def diff(self) -> dict[str, Any] | None:
        """Return what the last night found; None if there was none."""
        return _document(self.workspace.outputs(planted=False)["diff"])

    def run_diff(self, run_id: str) -> dict[str, Any] | None:
        """Return what a run found, if its folder has been kept."""
        return _document(self.workspace.run_folder(run_id) / "diff.json")

    def _baseline_before(self, suite: str, moment: str) -> str | None:
        """Return the last baseline that a suite was compared with before a moment."""
        asked = (
            "SELECT json_extract(body, '$.baseline_id') FROM nightly_runs WHERE suite_id = ? "
            "AND created_at < ? AND json_extract(body, '$.baseline_id') IS NOT NULL "
            "ORDER BY created_at DESC LIMIT 1"
        )
        found = self._ask(asked, [suite, moment])
        return str(found[0][0]) if found else None

    def _levels(self, suite: str, name: str, policy: GatePolicy) -> set[str]:
        asked = (
            "SELECT json_extract(body, '$.night') FROM nightly_runs WHERE suite_id = ? "
            "AND json_extract(body, '$.status') = 'complete' "
            "ORDER BY created_at DESC, run_id DESC LIMIT ?"
        )
        rows = self._ask(asked, [suite, CHANGE_NIGHTS])
        nights = tuple(msgspec.json.decode(row[0], type=Night) for row in reversed(rows))
        series = History(nights).series(name)
        found = change_points(
            [value for _, value in series],
            alpha=policy.change_alpha,
            min_segment=policy.change_segment,
            superiority=policy.change_superiority,
        )
        return {series[point.index][0] for point in found}

    def _ask(self, question: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if not self._path.exists():
            return []
        with self._guarded():
            address = f"{self._path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=BUSY_S)) as database:
                known = database.execute(
                    "SELECT 1 FROM sqlite_master WHERE name = 'nightly_runs'"
                ).fetchone()
                return database.execute(question, tuple(values)).fetchall() if known else []

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                "the ledger cannot be read",
                where=str(self._path),
                found=str(error),
                remedy="Move the file away: episodes are then played again, history begins anew",
            ) from error


def _row(suite: str, body: str) -> RunRow:
    said = json.loads(body)
    return RunRow(
        run_id=said["run_id"],
        suite=suite,
        created_at=said["created_at"],
        finished_at=said["finished_at"],
        status=said["status"],
        verdict=said["verdict"],
        light=said["light"],
        exit_code=said["exit_code"],
        commit=said["commit"],
        baseline_id=said["baseline_id"],
        values=said["night"]["values"],
    )


def _thinned(points: Sequence[MetricPoint], most: int) -> tuple[MetricPoint, ...]:
    if len(points) <= most:
        return tuple(points)
    places = set(thin(np.array([point.value for point in points]), most).tolist())
    return tuple(
        point
        for at, point in enumerate(points)
        if at in places or point.change or point.new_baseline
    )


def _document(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(
            "a report cannot be read",
            where=str(path),
            found=str(error),
            remedy="Run `agent-gym nightly` again: it writes the file anew",
        ) from error
    if not isinstance(found, dict):
        raise DataError("a report is an object", where=str(path), found=type(found).__name__)
    return found
