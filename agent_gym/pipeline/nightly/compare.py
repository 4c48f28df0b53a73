"""Two runs side by side, on the seeds that both have; nothing is played."""

from __future__ import annotations

from agent_gym.evaluation.gate import Diff, GatePolicy, judge
from agent_gym.evaluation.gate.samples import SuiteSamples
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


def contradicted(base: SuiteSamples, cand: SuiteSamples) -> tuple[str, ...]:
    """Return scenarios that can be repeated tonight and went differently in the baseline."""
    known = {
        each.name: {sample.seed: sample.trajectory_hash for sample in each.samples}
        for each in base.scenarios
    }
    identities = {each.name: each.identity for each in base.scenarios}
    found = []
    for scenario in cand.scenarios:
        now = {each.seed: each.trajectory_hash for each in scenario.samples if each.status == "ok"}
        steady = all(now.get(seed) == again for seed, again in scenario.repeated.items())
        if steady and identities.get(scenario.name) == scenario.identity:
            then = known[scenario.name]
            if any(then.get(seed, digest) != digest for seed, digest in now.items()):
                found.append(scenario.name)
    return tuple(found)


def fewer_seeds(base: SuiteSamples, cand: SuiteSamples) -> str:
    """Say that tonight was asked for fewer seeds than the baseline has; nothing if it was not."""
    asked = {each.name: len(each.samples) for each in cand.scenarios}
    for scenario in base.scenarios:
        if asked.get(scenario.name, len(scenario.samples)) < len(scenario.samples):
            return (
                f"fewer seeds than the baseline has: {asked[scenario.name]} of "
                f"{len(scenario.samples)} in {scenario.name}. Leave out --seeds (or raise n_seeds) "
                f"to compare, or approve a baseline of fewer seeds (--update-baseline --uncompared)"
            )
    return ""
