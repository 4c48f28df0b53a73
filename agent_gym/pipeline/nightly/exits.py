"""The exit code of a night, and whether its run may become the baseline."""

from __future__ import annotations

from agent_gym.evaluation.gate.rows import events_of
from agent_gym.pipeline.nightly.baseline import Approval
from agent_gym.reporting.nightly import NightlyResult, NightlyRun, light, troubles, verdict
from agent_gym.reporting.nightly.verdict import counts

OK, REGRESSED, USAGE, INCOMPARABLE, FAILED, LOCKED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
MEANINGS = {
    OK: "nothing got worse, or nobody asked to fail on it",
    REGRESSED: "a regression, or (if asked) a night that is not sure",
    USAGE: "the command or a config is wrong",
    INCOMPARABLE: "no baseline, or none that can be compared",
    FAILED: "a run error, a missing scenario, a seed that cannot be repeated or a full disk",
    LOCKED: "another run holds the lock",
    INTERRUPTED: "stopped before the end",
}


def exit_code(
    result: NightlyResult,
    *,
    fail_on_regression: bool,
    fail_on_unsure: bool = False,
    approval: Approval | None,
    refused: bool,
    anchor_problem: bool,
) -> int:
    """Return the code; the gravest reason wins, and nothing that failed is ever 0."""
    word = verdict(result)
    if result.run.status != "complete":
        return INTERRUPTED
    if troubles(result.run):
        return FAILED
    if refused:  # what was asked for could not be done
        return {"regressed": REGRESSED, "incomparable": INCOMPARABLE}.get(word, FAILED)
    if approval is not None:
        return INCOMPARABLE if anchor_problem else OK
    if word == "error":
        return FAILED
    if result.diff is None or word == "incomparable":
        return INCOMPARABLE
    if word == "regressed" and (fail_on_regression or fail_on_unsure):
        return REGRESSED
    if fail_on_regression and (counts(result)["nondeterministic"] or result.contradicted):
        return FAILED  # nothing that such a metric says can be trusted
    if fail_on_unsure and light(result) == "unsure":
        return REGRESSED
    return INCOMPARABLE if anchor_problem else OK


def refusal(result: NightlyResult, approval: Approval | None) -> str | None:
    """Return why a run cannot become the baseline, None if it can (or nobody asked)."""
    if approval is None:
        return None
    if result.run.subject.get("plant") is not None:
        return "a run with a planted fault can never become a baseline"
    if result.run.status != "complete":
        return "an incomplete run cannot become a baseline"
    wrong = troubles(result.run)
    if wrong:
        return f"a run with errors cannot become a baseline: {wrong[0].scenario}: {wrong[0].why}"
    unsteady = [
        f"{scenario.name} seed {seed}"
        for scenario in result.run.samples.scenarios
        for seed, digest in scenario.repeated.items()
        if digest != {each.seed: each.trajectory_hash for each in scenario.samples}.get(seed)
    ]
    if unsteady:
        return f"a run that cannot be repeated cannot become a baseline: {unsteady[0]}"
    if result.diff is None and result.baseline is not None and not approval.uncompared:
        return (
            "a run that could not be compared with the baseline before it is approved only with "
            "--uncompared, which the new baseline remembers"
        )
    untrusted = result.diff.of("error", "nondeterministic") if result.diff else ()
    if untrusted:
        first = untrusted[0]
        return f"a run that cannot be trusted cannot become a baseline: {first.id} is {first.word}"
    found = result.diff.of("regression", "missing_in_new") if result.diff else ()
    ids = sorted({*(finding.id for finding in found), *events(result.run)})
    open_ids = [name for name in ids if name not in approval.accepted]
    if open_ids:
        words = " ".join(f"--accept-regression {name}" for name in open_ids)
        return (
            f"{len(open_ids)} regressions, or events that must not be, are not accepted; to accept "
            f"them: {words}"
        )
    return None


def events(run: NightlyRun) -> dict[str, int]:
    """Return the metrics that must be zero and are not, with the number of such seeds."""
    found: dict[str, int] = {}
    for scenario in run.samples.scenarios:
        for metric in scenario.metrics:
            seeds = events_of(scenario, metric)[0] if metric.must_be_zero else ()
            if seeds:
                found[f"{scenario.name}/{metric.name}"] = len(seeds)
    return found
