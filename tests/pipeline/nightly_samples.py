"""What tests of the nightly share: a tiny suite, a crew without processes, code that stays."""

from __future__ import annotations

from typing import ClassVar

import tiny_scenarios

from agent_gym.core.clock import SECOND_NS, ManualClock
from agent_gym.core.registry import Ref
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import ScenarioConfig, Suite
from agent_gym.pipeline.nightly import (
    Approval,
    NightlyOptions,
    RunOptions,
    Workspace,
    nightly,
    prepare,
    run_nightly,
)
from agent_gym.pipeline.nightly.code_identity import CodeIdentity
from agent_gym.pipeline.nightly.jobs import episode_jobs

MODULE = tiny_scenarios.__name__
START_S = 1_763_256_600
DAY_S = 86_400


class DirectCrew:
    """Plays in this process, so that a test need not wait for others to start."""

    played: ClassVar[list[tuple[str, int]]] = []
    unsteady: ClassVar[bool] = False

    def __init__(self, subject, workers=1, timeout_s=0.0, imports=()):
        self.subject = subject

    def play(self, tasks, heard):
        found = {}
        for task in tasks:
            rows = []
            for job in episode_jobs(task.scenario, self.subject, task.seeds, 4):
                episodes = job.run()["episodes"]
                if self.unsteady and task.scenario.name == "alpha":
                    for row in episodes:
                        row["trajectory_hash"] = f"{len(self.played)}-{row['seed']}"
                heard(task.scenario.name, episodes)
                rows.extend(episodes)
            self.played.extend((task.scenario.name, seed) for seed in task.seeds)
            found[task.scenario.name] = rows
        return found


def stand_still(packages=(), code_hash="c0de", also=(), named=False, libraries=()):
    """Return the identity of code that is not edited while tests run."""
    return CodeIdentity(
        code_hash=code_hash,
        commit="abc",
        dirty=False,
        packages=dict.fromkeys(packages, "hash") if named else {MODULE: "hash"},
        versions={"python": "3"},
    )


def without_processes(setattr_):
    """Replace what is slow: processes, the look at all sources, the proof by frozen code."""
    DirectCrew.played.clear()
    setattr_(prepare, "LocalCrew", DirectCrew)
    setattr_(nightly, "LocalCrew", DirectCrew)
    setattr_(prepare, "code_identity", stand_still)
    setattr_(nightly, "prove", lambda *_: None)


def tiny_suite(n_seeds=8, names=("alpha", "beta"), **params):
    return Suite(
        id="tiny",
        scenarios=tuple(
            ScenarioConfig(name=name, type="tiny", n_seeds=n_seeds, params=params) for name in names
        ),
        desk=Ref(use="tiny/desk"),
    )


def asked(suite=None, *, level=None, plant=None, **options):
    desk = Ref(use="tiny/desk", params={} if level is None else {"level": level})
    subject = Subject(desk=desk, plant=plant)
    return RunOptions(suite or tiny_suite(), subject, imports=(MODULE,), timings=False, **options)


def clock_at(day=0):
    return ManualClock((START_S + day * DAY_S) * SECOND_NS)


def night(home, suite=None, *, day=0, approve=None, accepted=(), uncompared=False, **options):
    """Run one night in a workspace."""
    decisions = {
        name: options.pop(name)
        for name in ("fail_on_regression", "fail_on_unsure", "set_anchor", "policy")
        if name in options
    }
    approval = None if approve is None else Approval(approve, "tester", tuple(accepted), uncompared)
    return run_nightly(
        asked(suite, **options),
        NightlyOptions(approval=approval, **decisions),
        Workspace(home),
        clock=clock_at(day),
    )


def contents(folder):
    """Return every file below a folder but those that differ by nature."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(("gym.db", "nightly.lock"))
    }
