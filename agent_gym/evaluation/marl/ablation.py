"""What each part is worth: arms without it against the whole, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.marl.figures import AGREED, arm_figures
from agent_gym.evaluation.marl.runs import TeamRun, by_task, horizon
from agent_gym.evaluation.statistics import Interval, holm, seeds_interval, sign_flip

SEEDS = Seeds(0).child("ablation of a team")
SCHEMA_VERSION = 1
LEVEL = 0.05
FEWEST_SEEDS = 10
AREA, FINAL, STEPS = "area", "final", "log_steps"
METRICS = {
    AREA: "mean win rate over all steps",
    FINAL: "share of fresh starts won after the last step",
    STEPS: f"logarithm of the steps to {AGREED[0]:.0%}; who did not get there counts as if at the "
    "last step, so a difference is rather too small than too large",
}


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """An arm less the whole, in one figure on one task.

    Attributes:
        task: Where.
        arm: Which.
        metric: Of what.
        differences: One a seed, paired.
        interval: Of their mean.
        p: That nothing is going on, by flipping signs; two-sided.
        p_holm: The same, holding for all differences of this figure together.
    """

    task: str
    arm: str
    metric: str
    differences: FloatArray
    interval: Interval
    p: float
    p_holm: float

    @property
    def nothing(self) -> bool:
        """Say whether the interval holds 0."""
        return self.interval.holds(0.0)

    @property
    def shown(self) -> bool:
        """Say whether there is a difference, whatever else was asked."""
        return not self.nothing and self.p_holm < LEVEL

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "task": self.task,
            "arm": self.arm,
            "metric": self.metric,
            **self.interval.as_dict(),
            "p": self.p,
            "p_holm": self.p_holm,
            "shown": self.shown,
            "seeds": int(self.differences.size),
            "differences": self.differences.tolist(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Ablation:
    """All arms against the whole on all tasks."""

    reference: str
    runs: tuple[TeamRun, ...]
    compared: tuple[Difference, ...]

    def idle(self) -> list[str]:
        """Return arms whose interval holds 0 in every figure on every task: they change nothing.

        Below 10 seeds none is named: an interval that wide holds 0 nearly always.
        """
        few = self.unsure()
        return [
            name
            for name, own in self._by_arm().items()
            if name not in few and all(one.nothing for one in own)
        ]

    def unsure(self) -> list[str]:
        """Return arms that have too few seeds to be called idle."""
        return [
            name
            for name, own in self._by_arm().items()
            if min(one.differences.size for one in own) < FEWEST_SEEDS
        ]

    def _by_arm(self) -> dict[str, list[Difference]]:
        found: dict[str, list[Difference]] = {}
        for one in self.compared:
            found.setdefault(one.arm, []).append(one)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; equal runs have equal bytes."""
        return {
            "kind": "ablation of a team",
            "schema_version": SCHEMA_VERSION,
            "reference": self.reference,
            "metrics": METRICS,
            "figures": self._figures(),
            "comparisons": [one.as_dict() for one in self.compared],
            "idle": self.idle(),
            "too_few_seeds": self.unsure(),
            "fewest_seeds": FEWEST_SEEDS,
            "runs": [run.as_dict() for run in self.runs],
        }

    def _figures(self) -> dict[str, Any]:
        """Return what each arm reached, without its curve."""
        found: dict[str, Any] = {}
        for task, arms in by_task(self.runs).items():
            until = horizon([run for own in arms.values() for run in own.values()])
            for arm, own in arms.items():
                figures = arm_figures(list(own.values()), until, SEEDS.child(task, arm)).as_dict()
                figures.pop("curve")
                found.setdefault(task, {})[arm] = figures | {"until": until}
        return found


def compare_arms(runs: Sequence[TeamRun], reference: str) -> Ablation:
    """Return every difference to the whole.

    Args:
        runs: All seeds of all arms on all tasks; an arm may have fewer seeds than the whole.
        reference: The arm that has all parts.
    """
    raw = [
        one for task, arms in by_task(runs).items() for one in _differences(task, arms, reference)
    ]
    compared = tuple(
        Difference(*one, p_holm=held) for one, held in zip(raw, _holm(raw), strict=True)
    )
    return Ablation(reference, tuple(runs), compared)


_Raw = tuple[str, str, str, FloatArray, Interval, float]


def _differences(
    task: str, arms: Mapping[str, Mapping[int, TeamRun]], reference: str
) -> list[_Raw]:
    if reference not in arms:
        raise DataError("nothing to compare with", where=task, found=list(arms), expected=reference)
    until = horizon([run for own in arms.values() for run in own.values()])
    whole, found = arms[reference], []
    for arm, own in arms.items():
        both = sorted(set(own) & set(whole))
        if arm == reference:
            continue
        if len(both) < 2:
            raise DataError("pairs take two seeds", where=f"{task}, {arm}", found=len(both))
        for metric, figure in _figures(until).items():
            gap = np.array([figure(own[seed]) - figure(whole[seed]) for seed in both])
            seeds = SEEDS.child(task, arm, metric)
            p = sign_flip(gap, seeds=seeds) if gap.any() else 1.0
            found.append((task, arm, metric, gap, seeds_interval(gap, seeds), p))
    return found


def _figures(until: int) -> dict[str, Callable[[TeamRun], float]]:
    return {
        AREA: lambda run: run.area(until),
        FINAL: lambda run: run.final,
        STEPS: lambda run: _log_steps(run, until),
    }


def _log_steps(run: TeamRun, until: int) -> float:
    steps, seen = run.reached(AGREED[0], until)
    return math.log(steps if seen else until)


def _holm(tests: Sequence[_Raw]) -> list[float]:
    """Return the p-values that hold for all tests of the same figure together."""
    adjusted = [1.0] * len(tests)
    for name in METRICS:
        places = [at for at, test in enumerate(tests) if test[2] == name]
        for at, value in zip(places, holm([tests[at][5] for at in places]), strict=True):
            adjusted[at] = float(value)
    return adjusted
