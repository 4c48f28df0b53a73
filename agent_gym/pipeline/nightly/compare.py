"""Two runs side by side, on the seeds that both have; nothing is played."""

from __future__ import annotations

from agent_gym.evaluation.gate import Diff, GatePolicy, judge
from agent_gym.pipeline.nightly.exits import FAILED, INCOMPARABLE, OK, REGRESSED
from agent_gym.pipeline.nightly.kept import samples_of
from agent_gym.pipeline.nightly.workspace import Workspace


def compare_runs(workspace: Workspace, first: str, second: str, policy: GatePolicy) -> Diff:
    """Return how the second differs from the first.

    Each is a run id, ``latest``, a baseline id, ``baseline``, ``anchor``, or the file of a report.
    Without fresh seeds there is one look, corrected for all metrics: it sees less than a night.
    """
    return judge(samples_of(workspace, first), samples_of(workspace, second), None, policy)


def comparison_code(diff: Diff, *, fail_on_regression: bool) -> int:
    """Return the exit code of a comparison."""
    if diff.verdict == "error":
        return FAILED
    if diff.verdict == "incomparable":
        return INCOMPARABLE
    if diff.verdict == "regressed" and fail_on_regression:
        return REGRESSED
    return FAILED if diff.of("nondeterministic") and fail_on_regression else OK
