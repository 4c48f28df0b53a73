"""The anchor: a frozen release that every night is held against, besides the approved baseline.

Many small losses, each within the tolerance and each approved, add up. The baseline moves with
them; the anchor does not. Both sides are compared on the pinned seeds that the anchor has already
played, so the old code need not run again. There is no confirmation, so this warns, fails nothing.
"""

from __future__ import annotations

from agent_gym.evaluation.gate.cases import gather
from agent_gym.evaluation.gate.diff import Notice
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.rows import bounds_of, table_of
from agent_gym.evaluation.gate.samples import SuiteSamples
from agent_gym.evaluation.gate.stages import decide

NOT_HELD = ("missing_in_new", "incomparable", "error")


def anchor_drift(
    anchor: SuiteSamples, candidate: SuiteSamples, policy: GatePolicy
) -> tuple[Notice, ...]:
    """Return the metrics that lost more than is tolerated since the anchor, and the lost ones.

    A loss is told when Holm over all metrics rejects at ``alpha`` and the mean is beyond both
    tolerances; so it is told with 95 % by the time it is the tolerance plus the smallest loss seen.
    """
    cases = gather(anchor, candidate)
    rows = [(case, case.row) for case in cases if case.row is not None and case.word is None]
    notices = [
        Notice(
            kind="anchor_drift",
            id=case.id,
            why=f"cannot be held against the anchor {anchor.run_id}: {case.why}",
        )
        for case in cases
        if case.word in NOT_HELD
    ]
    if rows:
        ruling = decide(
            table_of([row for _, row in rows]), bounds_of([row for _, row in rows]), None, policy
        )
        figures = ruling.figures
        for index, (case, _) in enumerate(rows):
            if ruling.worse[index]:
                why = (
                    f"lost {figures.loss[index]:.6g} {case.metric.unit} since the anchor"
                    f" {anchor.run_id} ({figures.base[index]:.6g} -> {figures.cand[index]:.6g},"
                    f" p {ruling.p_holm[index]:.2g})"
                )
                notices.append(Notice(kind="anchor_drift", id=case.id, why=why))
    return tuple(sorted(notices, key=lambda notice: notice.id))
