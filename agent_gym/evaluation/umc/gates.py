"""All gates in one run: one list of jobs, one judgement, one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import Manifest, describe
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.umc.breaks import Break
from agent_gym.evaluation.umc.canary import Alarms
from agent_gym.evaluation.umc.courses import Attainable, Nulls
from agent_gym.evaluation.umc.figure import GateFigure
from agent_gym.evaluation.umc.invariants import Invariants
from agent_gym.evaluation.umc.leaks import Leaks
from agent_gym.evaluation.umc.plan import COURSES, UMC, GatesPlan, Part
from agent_gym.rollouts.jobs import Job

SCHEMA_VERSION = 1
PARTS: tuple[Part, ...] = (Nulls(), Attainable(), Break(), Alarms(), Leaks(), Invariants())
TITLES = {
    "A": "Null, before costs: nothing is earned where nothing can be known",
    "B": "Null, after costs: luck is not taken for skill, and hardly anything is paid",
    "C": "Known markets: a large share of what can be earned",
    "D": "Break: little is lost when the edge ends",
    "E": "Canary: a planted leak sets off the alarms, and time has a direction",
    "F": "Leakage: what others made does not reach the model",
    "G": "Invariants: what must hold to the bit",
}


@dataclass(frozen=True, slots=True, eq=False)
class GatesReport:
    """Every figure with its bound, and everything behind it."""

    plan: GatesPlan
    figures: Mapping[str, GateFigure]
    details: Mapping[str, Any]
    manifest: Manifest

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the figures that miss their bounds."""
        return tuple(name for name, found in self.figures.items() if found.passed is False)

    @property
    def passed(self) -> bool:
        """Say whether every figure that has a bound holds it."""
        return not self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; they do not depend on the number of processes."""
        letters = sorted({name[0] for name in self.figures})
        return {
            "schema_version": SCHEMA_VERSION,
            "passed": self.passed,
            "failed": list(self.failed),
            "gates": {name: found.as_dict() for name, found in self.figures.items()},
            "by_letter": {
                letter: {
                    "title": TITLES[letter],
                    "passed": not any(name.startswith(f"{letter}.") for name in self.failed),
                }
                for letter in letters
            },
            "seeds": list(self.plan.numbers()),
            "plan": self.plan.model_dump(mode="json"),
            "per_seed": dict(self.details),
            "manifest": self.manifest.model_dump(mode="json"),
        }


def run_gates(plan: GatesPlan, setting: Setting) -> GatesReport:
    """Do all the work that the gates need, and judge.

    Args:
        plan: What is asked for.
        setting: Who does the work; nothing is entered into its registry.
    """
    parts = [part for part in PARTS if set(part.letters) & set(plan.only)]
    if plan.agent.use != UMC:
        if "F" in plan.only and set(plan.only) != set(GatesPlan().only):
            raise ConfigError(
                "gate F looks into UMC's own model", found=plan.agent.use, expected=UMC
            )
        parts = [part for part in parts if "F" not in part.letters]
    work = [part.jobs(plan) for part in parts]
    jobs: list[Job] = [job for own in work for job in own.values()]
    rows = setting.work(jobs, [place for own in work for place in own])
    figures: dict[str, GateFigure] = {}
    details: dict[str, Any] = {}
    for part, own in zip(parts, work, strict=True):
        judged = part.judge(plan, rows[: len(own)])
        rows = rows[len(own) :]
        figures |= judged.figures
        details |= judged.details
    asked = {name: found for name, found in figures.items() if name[0] in plan.only}
    return GatesReport(plan, asked, details, _manifest(plan, setting))


def _manifest(plan: GatesPlan, setting: Setting) -> Manifest:
    courses: Sequence[str] = sorted({course.use for course in COURSES.values()})
    return describe(
        argv=list(setting.command),
        config=plan.model_dump(mode="json"),
        data={"markets": list(courses), "real": None if plan.data is None else str(plan.data)},
        seeds=tuple(plan.numbers()),
        commit=setting.commit,
    )
