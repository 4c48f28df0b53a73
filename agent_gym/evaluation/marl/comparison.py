"""Algorithms beside each other on the same tasks, with the same seeds and the same steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.marl.figures import AGREED, ArmFigures, arm_figures, summary
from agent_gym.evaluation.marl.runs import TeamRun, by_task, horizon
from agent_gym.evaluation.marl.verdicts import CONTROLS, Verdict, steps_ratio, verdict
from agent_gym.evaluation.statistics import TimeRatio

SEEDS = Seeds(0).child("comparison of teams")  # so that equal runs give equal intervals
SCHEMA_VERSION = 1
Ratios: TypeAlias = Mapping[str, Mapping[str, Mapping[float, TimeRatio | None]]]
"""By arm, by the arm it is held against, by win rate."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskComparison:
    """All arms on one task.

    Attributes:
        until: Steps by which all are judged.
        arms: Figures by arm.
        ratios: Steps to a win rate, over those of the arms that are held against.
        verdicts: The word for each arm that is no control itself, where MAPPO was played.
    """

    until: int
    arms: Mapping[str, ArmFigures]
    ratios: Ratios
    verdicts: Mapping[str, Verdict]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "until": self.until,
            "arms": {name: found.as_dict() for name, found in self.arms.items()},
            "ratios": [
                {"arm": arm, "against": other, "win_rate": rate}
                | ({} if found is None else found.as_dict())
                for arm, held in self.ratios.items()
                for other, rates in held.items()
                for rate, found in rates.items()
                if found is not None
            ],
            "verdicts": {name: found.as_dict() for name, found in self.verdicts.items()},
        }


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """All arms on all tasks."""

    runs: tuple[TeamRun, ...]
    tasks: Mapping[str, TaskComparison]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; equal runs have equal bytes."""
        return {
            "kind": "comparison of teams",
            "schema_version": SCHEMA_VERSION,
            "tasks": {name: found.as_dict() for name, found in self.tasks.items()},
            "overall": self.overall(),
            "runs": [run.as_dict() for run in self.runs],
        }

    def overall(self) -> dict[str, Any]:
        """Return figures over all tasks, of arms that were played with one set of seeds on all.

        Seeds are resampled within each task.
        """
        if len(self.tasks) < 2:
            return {}
        names = dict.fromkeys(name for task in self.tasks.values() for name in task.arms)
        return {name: both for name in names if (both := self._overall(name)) is not None}

    def _overall(self, arm: str) -> dict[str, Any] | None:
        own = [task.arms[arm] for task in self.tasks.values() if arm in task.arms]
        seeds = {tuple(run.seed for run in found.runs) for found in own}
        if len(own) < len(self.tasks) or len(seeds) != 1:
            return None
        finals = [[run.final for run in row] for row in _rows(own)]
        areas = [[run.area(f.until) for run, f in zip(r, own, strict=True)] for r in _rows(own)]
        return {"final": summary(finals, SEEDS), "area": summary(areas, SEEDS)}


def _rows(own: Sequence[ArmFigures]) -> list[tuple[TeamRun, ...]]:
    """Return runs x tasks."""
    return list(zip(*(found.runs for found in own), strict=True))


def compare_teams(runs: Sequence[TeamRun]) -> Comparison:
    """Compare arms by what their trainings left behind.

    Args:
        runs: All seeds of all arms on all tasks; arms are shown in the order in which they come.
    """
    if not runs:
        raise DataError("there is nothing to compare", found="no trainings")
    return Comparison(
        tuple(runs), {name: _task(name, arms) for name, arms in by_task(runs).items()}
    )


def held_against(arms: Sequence[str]) -> tuple[str, ...]:
    """Return the arms that others are held against: the controls, else the first.

    Example:
        >>> held_against(["amal", "mappo"]), held_against(["ippo", "official"])
        (('mappo',), ('ippo',))
    """
    return tuple(name for name in CONTROLS if name in arms) or tuple(arms[:1])


def _task(name: str, arms: Mapping[str, Mapping[int, TeamRun]]) -> TaskComparison:
    until = horizon([run for own in arms.values() for run in own.values()])
    figures = {
        arm: arm_figures(list(own.values()), until, SEEDS.child(name, arm))
        for arm, own in arms.items()
    }
    others = held_against(list(arms))
    ratios = {
        arm: {
            other: {
                rate: steps_ratio(own, arms[other], rate, until, SEEDS.child(name, arm, other))
                for rate in AGREED
            }
            for other in others
            if other != arm and others.index(other) <= _place(others, arm)
        }
        for arm, own in arms.items()
    }
    verdicts = {
        arm: verdict({other: rates[AGREED[0]] for other, rates in held.items()})
        for arm, held in ratios.items()
        if arm not in CONTROLS and others[0] in CONTROLS
    }
    return TaskComparison(until, figures, ratios, verdicts)


def _place(others: Sequence[str], arm: str) -> int:
    """Return where a control stands: it is held against those before it alone."""
    return others.index(arm) if arm in others else len(others)
