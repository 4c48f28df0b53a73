"""The gate: two runs of a suite in, a word for every metric and one for the suite out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.anchor import anchor_drift
from agent_gym.evaluation.gate.cases import Case, gather
from agent_gym.evaluation.gate.diff import Diff, Notice
from agent_gym.evaluation.gate.findings import finding_of
from agent_gym.evaluation.gate.fresh import FreshSeeds, Told
from agent_gym.evaluation.gate.history import History
from agent_gym.evaluation.gate.notices import history_notices, quarantine_notices
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.quarantine import Quarantine
from agent_gym.evaluation.gate.rows import WORST_SEEDS, bounds_of, events_of, table_of
from agent_gym.evaluation.gate.samples import Rerun, SuiteSamples
from agent_gym.evaluation.gate.stages import Ruling, decide
from agent_gym.evaluation.gate.verdict import verdict_of

DEFAULT = GatePolicy()


def judge(  # noqa: PLR0913 - two sides, how to play them again, and what is known besides
    baseline: SuiteSamples,
    candidate: SuiteSamples,
    rerun: Rerun | None,
    policy: GatePolicy = DEFAULT,
    *,
    history: History | None = None,
    quarantine: Quarantine | None = None,
    anchor: SuiteSamples | None = None,
    told: Told | None = None,
) -> Diff:
    """Compare a candidate with its baseline.

    Args:
        baseline: The approved side.
        candidate: The side in question.
        rerun: Plays scenarios again on both sides with fresh seeds. None if that cannot be done:
            then the samples alone decide, with a correction for all metrics, and see less.
        policy: Seeds, error rates and the effect that must be seen.
        history: Past nights, for change points and for what noise is usual.
        quarantine: Metrics that do not gate for now.
        anchor: A frozen release, against slow drift.
        told: Hears how many fresh seeds of each scenario are wanted, before they are played.

    Returns:
        The same for the same input, whatever the order of scenarios, metrics and samples.
    """
    past = history or History()
    cases = gather(baseline, candidate)
    held = {} if quarantine is None else _held(cases, quarantine)
    rows = [case for case in cases if case.row is not None]
    tested = np.array([case.word is None and case.id not in held for case in rows], dtype=np.bool_)
    fresh = None if rerun is None else FreshSeeds(rows, candidate, rerun, told)
    read = [case.row for case in rows if case.row is not None]
    ruling = decide(
        table_of(read), bounds_of(read), fresh, policy, tested, _usual_noise(rows, past, policy)
    )
    if fresh is not None:
        _events_on_fresh_seeds(rows, fresh)
    places = {case.id: index for index, case in enumerate(rows)}
    findings = tuple(
        finding_of(case, ruling, places.get(case.id), fresh, held.get(case.id)) for case in cases
    )
    verdict, why = verdict_of(findings, policy)
    notices: list[Notice] = [
        *(Notice(kind="tolerance", id=each.id, why=each.widened) for each in cases if each.widened),
        *history_notices(candidate, findings, past, policy),
        *quarantine_notices(findings, past, quarantine, policy),
    ]
    if anchor is not None:
        notices += anchor_drift(anchor, candidate, policy)
    return Diff(
        baseline_run=baseline.run_id,
        candidate_run=candidate.run_id,
        verdict=verdict,
        why=why,
        n_tests=int(ruling.tested.sum()),
        n_flagged=int(ruling.flagged.sum()),
        alpha=policy.alpha,
        method=_method(ruling, rerun, policy),
        findings=findings,
        notices=tuple(notices),
    )


def _held(cases: Sequence[Case], quarantine: Quarantine) -> dict[str, str]:
    """Return why a metric does not gate; what must be zero always does."""
    held = {}
    for case in cases:
        entry = None if case.metric.must_be_zero else quarantine.holding(case.id)
        if entry is not None:
            held[case.id] = f"in quarantine: {entry.reason} ({entry.owner})"
    return held


def _usual_noise(cases: Sequence[Case], past: History, policy: GatePolicy) -> FloatArray:
    usual = [past.usual_noise(case.id, policy.noise_nights) for case in cases]
    return np.array([np.nan if noise is None else noise for noise in usual])


def _events_on_fresh_seeds(cases: Sequence[Case], fresh: FreshSeeds) -> None:
    """Whatever must be zero must be zero on fresh seeds too, if they were played anyway."""
    for case in cases:
        if not case.metric.must_be_zero or case.critical:
            continue
        played = fresh.played.get(case.scenario, [])
        # The last time holds the seeds of the first time too, or others.
        events = max((events_of(side, case.metric) for side in played), key=_size, default=None)
        if events is not None and events[0]:
            seeds, size = events
            case.word, case.critical, case.seeds = "regression", True, seeds[:WORST_SEEDS]
            case.why = f"must be zero, was up to {size:.6g} on {len(seeds)} fresh seeds"


def _size(events: tuple[tuple[int, ...], float]) -> tuple[int, float]:
    return len(events[0]), events[1]


def _method(ruling: Ruling, rerun: Rerun | None, policy: GatePolicy) -> str:
    null = "no loss" if policy.null == "no_loss" else "a loss within the tolerance"
    if rerun is None:
        return f"paired tests against {null}, Holm over {int(ruling.tested.sum())}, not confirmed"
    times = "twice" if policy.repeat else "once"
    return (
        f"paired screen at {policy.screen_p:g}, then confirmed {times} against {null} on"
        f" {policy.n_confirm} or more fresh seeds, Holm over the flagged"
    )
