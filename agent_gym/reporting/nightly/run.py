"""What a night hands on to every output: the run, what it was compared with, and the past."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from agent_gym.evaluation.gate.diff import Diff
from agent_gym.evaluation.gate.samples import SuiteSamples


class Code(Struct, frozen=True, kw_only=True):
    """Which sources ran; ``commit`` is None outside a repository."""

    commit: str | None = None
    dirty: bool = False
    code_hash: str = ""


class SeedLists(Struct, frozen=True, kw_only=True):
    """The seeds of each scenario, by its name; ``fresh`` ones were played to confirm."""

    fixed: Mapping[str, tuple[int, ...]] = {}
    fresh: Mapping[str, tuple[int, ...]] = {}


class NightlyRun(Struct, frozen=True, kw_only=True):
    """One run of a suite, compared with nothing yet.

    Times are ISO 8601 in UTC (``2026-11-16T01:30:00Z``). ``samples`` are the fixed seeds.
    ``expected`` names every scenario of the suite in its order: one that is not in ``samples`` is
    shown as missing. ``durations`` and ``perf`` are wall-clock figures and never gate. ``types``
    and ``params`` tell what each scenario was asked for.
    """

    run_id: str
    suite_id: str
    suite_version: int
    created_at: str
    finished_at: str
    status: Literal["complete", "partial"]
    command: str
    samples: SuiteSamples
    code: Code = Code()
    manifest: Mapping[str, Any] = {}
    machine: Mapping[str, Any] = {}
    subject: Mapping[str, Any] = {}
    seeds: SeedLists = SeedLists()
    expected: tuple[str, ...] = ()
    params: Mapping[str, Mapping[str, Any]] = {}
    durations: Mapping[str, float] = {}
    perf: Mapping[str, Mapping[str, float]] = {}
    notes: tuple[str, ...] = ()


class BaselineRecord(Struct, frozen=True, kw_only=True):
    """The approved run that others are compared with; the content of its ``manifest.json``.

    ``content_hash`` covers report and samples. ``accepted`` names the regressions
    (``scenario/metric``) that were let in on purpose, ``previous`` the baseline before this one.
    ``uncompared`` says why the run could not be compared with that one, if it was approved so.
    """

    id: str
    run_id: str
    suite_id: str
    suite_version: int
    created_at: str
    reason: str
    approved_by: str
    content_hash: str
    code: Code = Code()
    accepted: tuple[str, ...] = ()
    previous: str | None = None
    uncompared: str | None = None


class PastNight(Struct, frozen=True, kw_only=True):
    """One earlier night: the mean of each metric, named ``scenario/metric``, on the fixed seeds."""

    run_id: str
    created_at: str
    verdict: str
    values: Mapping[str, float]
    commit: str | None = None
    baseline_id: str | None = None


class Past(Struct, frozen=True, kw_only=True):
    """The nights before this one, oldest first, and where the gate saw a level change.

    ``change_points`` gives for a metric id the run ids with which a new level begins.
    """

    nights: tuple[PastNight, ...] = ()
    change_points: Mapping[str, tuple[str, ...]] = {}


class NightlyResult(Struct, frozen=True, kw_only=True):
    """Everything that the pages, tables and metric files of one night are made from.

    ``diff`` is None when there was nothing to compare with; ``problem`` then says why.
    ``fresh`` are baseline and candidate on the seeds of the confirmation, in this order.
    ``last_success_at`` is the end of the last good night before this one. ``contradicted`` names
    scenarios of which a seed went differently under the same code: such a night is never a pass.
    """

    run: NightlyRun
    diff: Diff | None = None
    problem: str = ""
    baseline: BaselineRecord | None = None
    baseline_samples: SuiteSamples | None = None
    fresh: tuple[SuiteSamples, SuiteSamples] | None = None
    past: Past = Past()
    last_success_at: str | None = None
    contradicted: tuple[str, ...] = ()
