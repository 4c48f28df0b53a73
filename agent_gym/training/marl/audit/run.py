"""All checks of a team's training, by name, with the defects that each of them guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from agent_gym.core.registry import unknown
from agent_gym.evaluation.audit import AuditReport, CheckReport, Finding, unchecked
from agent_gym.evaluation.audit.run import guarded
from agent_gym.training.marl.audit.bonus import bonus_moves, information
from agent_gym.training.marl.audit.endings import endings
from agent_gym.training.marl.audit.judging import all_steps, replays, verdicts
from agent_gym.training.marl.audit.keeping import greedy, save_load
from agent_gym.training.marl.audit.learning import (
    corrected,
    credit,
    living_alone,
    scales,
    updates,
)
from agent_gym.training.marl.audit.model import world_model
from agent_gym.training.marl.audit.search import fitness
from agent_gym.training.marl.audit.streams import auxiliary_rows, model_apart
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.audit.team import agent_id, auxiliary_teams, whole_team
from agent_gym.training.threads import torch_threads

NO_AMAL = "This training has no model of the world, no bonus and no auxiliary teams."


@dataclass(frozen=True, slots=True)
class TeamCheck:
    """Looks for one kind of defect.

    Attributes:
        name: What it is called at the command line.
        looks_for: What it looks for, in words.
        defects: Numbers of the defects that it guards, as the page of defects counts them.
        run: Looks at a subject.
        of_amal: Whether it asks about what only AMAL has.
    """

    name: str
    looks_for: str
    defects: tuple[int, ...]
    run: Callable[[TeamSubject], Iterator[Finding]]
    of_amal: bool = False

    def report(self, subject: TeamSubject) -> CheckReport:
        """Return what it finds; what a subject raises is a finding too."""
        if self.of_amal and subject.config.amal is None:
            found: tuple[Finding, ...] = (unchecked(NO_AMAL),)
        else:
            found = guarded(lambda: self.run(subject))
        return CheckReport(self.name, self.looks_for, found)


CHECKS = (
    TeamCheck("credit", "shapes that mix the credit of actions", (1,), credit),
    TeamCheck("whole-team", "agents that are not taught, or played by others", (2,), whole_team),
    TeamCheck("bonus", "a bonus without effect or with the wrong sign", (3, 5), bonus_moves, True),
    TeamCheck("correction", "rows of others learned from as one's own", (4,), corrected),
    TeamCheck("information", "a bonus that is no information", (6,), information, True),
    TeamCheck("fitness", "a search by something else than episodes", (7,), fitness, True),
    TeamCheck("auxiliary-teams", "auxiliary teams that never play", (8,), auxiliary_teams, True),
    TeamCheck(
        "auxiliary-rows", "auxiliary rows that get lost or mixed", (9,), auxiliary_rows, True
    ),
    TeamCheck(
        "model-apart", "a model fed by others, or blind to the team", (10,), model_apart, True
    ),
    TeamCheck("endings", "ends that are none, and time that runs out", (11,), endings),
    TeamCheck("living", "dead agents that count", (12,), living_alone),
    TeamCheck("scales", "a critic whose errors move the actor", (13,), scales),
    TeamCheck("agent-id", "agents that do not know which one they are", (13,), agent_id),
    TeamCheck("updates", "too little learned from what was played", (14,), updates),
    TeamCheck("world-model", "a model that foretells nothing", (15,), world_model, True),
    TeamCheck("save-load", "what is not kept", (16,), save_load),
    TeamCheck("greedy", "judged teams that draw their actions", (17,), greedy),
    TeamCheck("verdicts", "wins declared from luck", (18, 21), verdicts),
    TeamCheck("all-steps", "steps that are not counted", (19,), all_steps),
    TeamCheck("replays", "replays that are lost or cut", (20,), replays),
)


def audit_team(subject: TeamSubject, names: Sequence[str] = ()) -> AuditReport:
    """Run the named checks, or all, on a training of a team.

    Args:
        subject: The training and the code that it is made of.
        names: Which checks; none: all.
    """
    chosen = [check_named(name) for name in names] or list(CHECKS)
    with torch_threads(1), threadpool_limits(limits=1):
        reports = tuple(check.report(subject) for check in chosen)
    place = {
        "map": subject.small.world.map,
        "algorithm": subject.config.algorithm,
        "n_envs": subject.small.n_envs,
        "n_steps": subject.small.n_steps,
    }
    return AuditReport(subject.name, place, subject.small.seed, reports)


def check_named(name: str) -> TeamCheck:
    """Return a check by name."""
    for check in CHECKS:
        if check.name == name:
            return check
    raise unknown("check of a team", name, tuple(each.name for each in CHECKS))
