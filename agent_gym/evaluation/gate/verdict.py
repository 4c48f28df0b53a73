"""One word for the suite: the gravest thing that was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from agent_gym.evaluation.gate.diff import Finding, SuiteWord, Word
from agent_gym.evaluation.gate.policy import GatePolicy

COMPARED: tuple[Word, ...] = (
    "regression",
    "improvement",
    "unchanged",
    "no_difference_seen",
    "underpowered",
)


def verdict_of(findings: Sequence[Finding], policy: GatePolicy) -> tuple[SuiteWord, str]:
    """Return the word and the reason.

    The order is: error (something failed, is missing, or nothing was there), incomparable,
    regressed, degraded (not all could be trusted), underpowered, pass.
    """
    count = Counter(finding.word for finding in findings)
    failed, missing = count["error"], count["missing_in_new"]
    held, unsteady = count["quarantined"], count["nondeterministic"]
    compared = sum(count[word] for word in COMPARED)
    if not findings:
        return "error", "there is no metric to judge"
    if failed or missing:
        return "error", f"{failed} metrics could not be judged, {missing} are missing"
    if count["incomparable"]:
        return "incomparable", f"{count['incomparable']} metrics mean something else than before"
    if count["regression"]:
        critical = sum(finding.critical for finding in findings)
        return "regressed", f"{count['regression']} metrics are worse, {critical} of them critical"
    if not compared and not held and not unsteady:
        return "incomparable", "the baseline has none of these metrics"
    if unsteady or held > policy.quarantine_share * len(findings) or not compared:
        return "degraded", f"{held} metrics are in quarantine, {unsteady} cannot be repeated"
    if count["underpowered"]:
        return "underpowered", f"{count['underpowered']} metrics would miss the required effect"
    return "pass", f"{compared} metrics compared, none is worse"
