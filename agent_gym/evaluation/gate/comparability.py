"""Whether two sides may be compared at all: the same suite, situation, data and definitions."""

from __future__ import annotations

from collections.abc import Sequence

from agent_gym.core.errors import DataError
from agent_gym.evaluation.gate.samples import ScenarioSamples, SuiteSamples
from agent_gym.evaluation.scenarios.metric import Metric


def by_name(side: SuiteSamples) -> dict[str, ScenarioSamples]:
    """Return the scenarios of one side by name; a name that stands for two is an error."""
    found = {scenario.name: scenario for scenario in side.scenarios}
    if len(found) != len(side.scenarios):
        raise DataError(
            "two scenarios of one run have the same name",
            where=side.run_id,
            found=_twice([scenario.name for scenario in side.scenarios]),
        )
    return found


def metrics_of(scenario: ScenarioSamples) -> dict[str, Metric]:
    """Return the metrics that gate, by name."""
    names = [metric.name for metric in scenario.metrics]
    if len(set(names)) != len(names):
        raise DataError(
            "two metrics of one scenario have the same name",
            where=scenario.name,
            found=_twice(names),
        )
    return {metric.name: metric for metric in scenario.metrics if metric.gates}


def suite_difference(baseline: SuiteSamples, candidate: SuiteSamples) -> str:
    """Return why two runs are not of one suite, or nothing."""
    old = (baseline.suite_id, baseline.suite_version)
    new = (candidate.suite_id, candidate.suite_version)
    if old == new:
        return ""
    return f"suite {new[0]} version {new[1]}, in the baseline {old[0]} version {old[1]}"


def scenario_difference(old: ScenarioSamples, new: ScenarioSamples) -> str:
    """Return what makes two scenarios of one name different situations, or nothing."""
    keys = sorted({*old.identity, *new.identity})
    changed = [key for key in keys if old.identity.get(key) != new.identity.get(key)]
    return f"changed since the baseline: {', '.join(changed)}" if changed else ""


def metric_difference(old: Metric, new: Metric) -> str:
    """Return what makes two metrics of one name different figures, or nothing.

    Tolerances are not part of a definition: the stricter of both judge.
    """
    fields = ("unit", "direction", "must_be_zero")
    changed = [name for name in fields if getattr(old, name) != getattr(new, name)]
    return f"its definition has changed: {', '.join(changed)}" if changed else ""


def _twice(names: Sequence[str]) -> str:
    return ", ".join(sorted({name for name in names if names.count(name) > 1}))
