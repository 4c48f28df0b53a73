"""What there is to judge: every gating metric of either side, many settled without a test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from agent_gym.evaluation.gate.comparability import (
    by_name,
    metric_difference,
    metrics_of,
    scenario_difference,
    suite_difference,
)
from agent_gym.evaluation.gate.diff import Word
from agent_gym.evaluation.gate.exactness import same_trajectories, unsteady_seeds
from agent_gym.evaluation.gate.rows import WORST_SEEDS, Row, Unreadable, events_of, read_row
from agent_gym.evaluation.gate.samples import ScenarioSamples, SuiteSamples
from agent_gym.evaluation.gate.tolerated import stricter
from agent_gym.evaluation.scenarios.metric import Metric

Settled = Literal["exact", "screen", "check"]


@dataclass(slots=True)
class Case:
    """One metric of one scenario; ``word`` is None while a test has to decide.

    ``metric`` has the tolerance that judges; ``widened`` tells where the candidate asks for a wider
    one. ``seeds`` are those to look at, where it is not simply the largest losses.
    """

    scenario: str
    metric: Metric
    word: Word | None = None
    stage: Settled = "check"
    why: str = ""
    row: Row | None = None
    critical: bool = False
    unsteady: bool = False
    seeds: tuple[int, ...] = ()
    widened: str = ""

    @property
    def id(self) -> str:
        """Return the name by which a regression is accepted."""
        return f"{self.scenario}/{self.metric.name}"


def gather(baseline: SuiteSamples, candidate: SuiteSamples) -> list[Case]:
    """Return every gating metric of either side once, ordered by scenario and metric."""
    old, new = by_name(baseline), by_name(candidate)
    other_suite = suite_difference(baseline, candidate)
    cases: list[Case] = []
    for name in sorted({*old, *new}):
        cases += _cases(name, old.get(name), new.get(name), other_suite)
    return cases


def _cases(
    name: str, old: ScenarioSamples | None, new: ScenarioSamples | None, other_suite: str
) -> Iterator[Case]:
    before = {} if old is None else metrics_of(old)
    after = {} if new is None else metrics_of(new)
    difference = other_suite
    if old is not None and new is not None:
        difference = other_suite or scenario_difference(old, new)
    for metric_name in sorted({*before, *after}):
        then, now = before.get(metric_name), after.get(metric_name)
        metric = now or then
        assert metric is not None  # one of the two has the name
        case = Case(name, metric)
        if new is None or now is None:
            case.word, case.why = "missing_in_new", "the candidate does not have it"
        elif old is None or then is None:
            case.word, case.why = "missing_in_baseline", "the baseline does not have it"
            _events_alone(case, new)
        else:
            _compare(case, old, new, then, difference or metric_difference(then, now))
        yield case


def _compare(
    case: Case, old: ScenarioSamples, new: ScenarioSamples, then: Metric, difference: str
) -> None:
    if difference:
        case.word, case.why = "incomparable", difference
        case.critical = case.metric.must_be_zero and bool(events_of(new, case.metric)[0])
        return
    unsteady = sorted({*unsteady_seeds(old), *unsteady_seeds(new)})
    row = read_row(old, new, case.metric, sorted({sample.seed for sample in old.samples}))
    if isinstance(row, Unreadable):
        moved = bool(unsteady) or not same_trajectories(old, new)
        _unread(case, row, moved=moved)
        return
    size = abs(float(np.nanmean(row.base)))
    case.metric, case.widened = stricter(then, case.metric, size)
    case.row = row = replace(row, metric=case.metric)
    if row.left_out:
        case.why = f"{row.left_out} seeds could not be measured"
    if case.metric.must_be_zero:
        _must_be_zero(case, old, new)
    elif unsteady:
        case.unsteady, case.seeds = True, tuple(unsteady[:WORST_SEEDS])
        case.why = f"seed {unsteady[0]} played again gave another trajectory"
    elif same_trajectories(old, new):
        _exact(case, row)


def _unread(case: Case, row: Unreadable, *, moved: bool) -> None:
    """A figure that could hardly be measured is an error, unless nothing at all has changed.

    What must be zero and cannot be measured is always one: nobody can say that it is zero.
    """
    if row.measured is None or moved or case.metric.must_be_zero:
        case.word, case.why, case.seeds = "error", row.why, row.seeds
        case.critical = case.metric.must_be_zero
        return
    case.word, case.stage = "unchanged", "exact"
    often = f"measured on {row.measured} seed" if row.measured else "never measured"
    case.why = f"{often} on either side; every trajectory is the same"


def _exact(case: Case, row: Row) -> None:
    equal = (row.base == row.cand) | ((row.base != row.base) & (row.cand != row.cand))
    if equal.all():
        case.word, case.stage, case.why = "unchanged", "exact", "every trajectory is the same"
    else:
        case.word = "incomparable"
        case.why = "the trajectories are the same and the figure is not: its definition has changed"


def _must_be_zero(case: Case, old: ScenarioSamples, new: ScenarioSamples) -> None:
    """A single event of the candidate fails, whatever the baseline did; it is not a comparison."""
    before, now = events_of(old, case.metric), events_of(new, case.metric)
    had = f"the baseline had it on {len(before[0])}" if before[0] else "the baseline had none"
    if now[0]:
        case.word, case.critical = "regression", True
        case.why = f"must be zero, was up to {now[1]:.6g} on {len(now[0])} seeds; {had}"
        case.seeds = now[0][:WORST_SEEDS]
    elif before[0]:
        case.word, case.why = "improvement", f"no event any more; {had}"
    else:
        case.word, case.why = "unchanged", "no event on either side"


def _events_alone(case: Case, new: ScenarioSamples) -> None:
    """What must be zero needs no baseline; and what failed is not merely new."""
    failed = [sample for sample in new.samples if sample.status != "ok"]
    if failed or not new.samples:
        case.word, case.critical = "error", case.metric.must_be_zero
        case.seeds = (failed[0].seed,) if failed else ()
        case.why = (
            f"{failed[0].status} on seed {failed[0].seed}" if failed else "no seed was played"
        )
    elif case.metric.must_be_zero and events_of(new, case.metric)[0]:
        seeds, size = events_of(new, case.metric)
        case.word, case.critical, case.seeds = "regression", True, seeds[:WORST_SEEDS]
        case.why = f"must be zero, was up to {size:.6g} on {len(seeds)} seeds; it has no baseline"
