"""What to look at that fails nothing: change points, growing noise, the state of the quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_gym.evaluation.gate.change_points import change_points
from agent_gym.evaluation.gate.diff import Finding, Notice
from agent_gym.evaluation.gate.history import History, identity_of, night_of
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.quarantine import Quarantine, proposals
from agent_gym.evaluation.gate.samples import SuiteSamples


def history_notices(
    candidate: SuiteSamples, findings: Sequence[Finding], past: History, policy: GatePolicy
) -> Iterator[Notice]:
    """Yield the change points of the last nights, tonight being the latest."""
    if not past.nights:
        return
    tonight = night_of(candidate, None, "")
    identities = {scenario.name: identity_of(scenario.identity) for scenario in candidate.scenarios}
    for finding in findings:
        if finding.id not in tonight.values:
            continue
        nights = past.series(finding.id, identities[finding.scenario])
        nights = [night for night in nights if night[0] != tonight.run_id]
        nights.append((tonight.run_id, tonight.values[finding.id]))
        nights = nights[-policy.change_nights :]
        points = change_points(
            [value for _, value in nights],
            alpha=policy.change_alpha,
            min_segment=policy.change_segment,
            superiority=policy.change_superiority,
        )
        for point in points:
            if point.index >= len(nights) - policy.change_recent:
                up = point.after > point.before
                side = "better" if up == (finding.direction == "up") else "worse"
                why = (
                    f"{side} since {nights[point.index][0]}: {point.before:.6g} ->"
                    f" {point.after:.6g} (p {point.p:.2g})"
                )
                yield Notice(kind="change_point", id=finding.id, why=why)


def quarantine_notices(
    findings: Sequence[Finding], past: History, quarantine: Quarantine | None, policy: GatePolicy
) -> Iterator[Notice]:
    """Yield what ought to go into quarantine, and whose time in it is over."""
    for name, reason in proposals(findings, past, policy):
        noisy = reason.startswith("its noise")
        yield Notice(
            kind="noise" if noisy else "quarantine",
            id=name,
            why=f"quarantine proposed: {reason}",
        )
    if quarantine is not None:
        known = {finding.id for finding in findings}
        for entry in quarantine.ended():
            if entry.id in known and quarantine.holding(entry.id) is None:
                yield Notice(
                    kind="quarantine",
                    id=entry.id,
                    why=f"its quarantine has ended, it gates again ({entry.reason})",
                )
        for finding in findings:
            if finding.must_be_zero and quarantine.holding(finding.id) is not None:
                yield Notice(
                    kind="quarantine",
                    id=finding.id,
                    why="it must be zero and gates in spite of its quarantine",
                )
