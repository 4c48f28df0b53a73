"""Runs of the nightly, as the list and the comparison show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_gym.apps.api.service import Service
from agent_gym.apps.dashboard.figures.home import history_of
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.pipeline.nightly.compared import ComparedMetric
from agent_gym.pipeline.nightly.history import MetricHistory, RunFilter, RunRow, Sort
from agent_gym.reporting.nightly.verdict import VERDICTS as VERDICTS

MOST_COMPARED = 8


@dataclass(frozen=True, slots=True)
class RunsFigures:
    """One page of the list."""

    rows: tuple[RunRow, ...]
    total: int
    suites: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedFigures:
    """Several runs side by side."""

    runs: tuple[RunRow, ...]
    metrics: tuple[ComparedMetric, ...]
    total: int


@dataclass(frozen=True, slots=True)
class ScenarioFigures:
    """What can be chosen, and the history of what was."""

    suites: tuple[str, ...]
    suite: str
    names: tuple[str, ...]
    history: MetricHistory | None
    direction: str | None


def runs_figures(
    service: Service, chosen: RunFilter, *, sort: Sort, descending: bool, page: int, size: int
) -> RunsFigures:
    """Return one page of the runs; a page behind the last is the last."""
    history = history_of(service)
    total = history.count(chosen)
    number = min(page, max(1, -(-total // size)))
    rows = history.page(
        chosen, sort=sort, descending=descending, first=(number - 1) * size, limit=size
    )
    return RunsFigures(rows, total, history.suites())


def compared_figures(
    service: Service,
    run_ids: Sequence[str],
    *,
    reference: str,
    changed_only: bool,
    by_regression: bool,
) -> ComparedFigures:
    """Return runs side by side: the reference, by default the oldest, and then by time."""
    if not 2 <= len(run_ids) <= MOST_COMPARED:
        raise ConfigError(
            "a comparison needs several runs",
            found=len(run_ids),
            expected=f"2 to {MOST_COMPARED}",
            remedy="Mark some in the list of runs, then press Compare",
        )
    history = history_of(service)
    found = history.get(run_ids)
    runs = tuple(sorted(found, key=lambda run: (run.run_id != reference, run.created_at)))
    metrics = history.compare(runs)
    shown = [each for each in metrics if each.changed or not changed_only]
    if by_regression:
        shown.sort(key=lambda each: (each.worst is None, -(each.worst or 0.0), each.name))
    return ComparedFigures(runs, tuple(shown), len(metrics))


def scenario_figures(service: Service, suite: str, metric: str, nights: int) -> ScenarioFigures:
    """Return the metrics of a suite, and one of them over its last nights."""
    history = history_of(service)
    suites = history.suites()
    chosen = suite or (suites[0] if suites else "")
    last = history.last(suite=chosen) if chosen else None
    names = tuple(sorted(last.values)) if last is not None else ()
    name = metric or (names[0] if names else "")
    if not name:
        return ScenarioFigures(suites, chosen, names, None, None)
    found = history.metric(chosen, name, GatePolicy(), nights=nights)
    return ScenarioFigures(suites, chosen, names, found, history.directions().get(name))
