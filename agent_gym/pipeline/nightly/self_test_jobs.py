"""What the self-tests of the nightly share: where they work, a healthy side, and jobs that keep."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs
from typing_extensions import override

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import AgentGymError
from agent_gym.core.files import write_json
from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.gate import GatePolicy
from agent_gym.evaluation.scenarios.scenario import Subject
from agent_gym.evaluation.scenarios.suite import Suite
from agent_gym.pipeline.nightly.baseline import Approval, Baseline, NoBaseline, load_baseline
from agent_gym.pipeline.nightly.code_identity import code_identity, packages_of
from agent_gym.pipeline.nightly.crew import Heard, Row, Task
from agent_gym.pipeline.nightly.jobs import episode_row
from agent_gym.pipeline.nightly.nightly import run_nightly
from agent_gym.pipeline.nightly.options import NightlyOptions, RunOptions
from agent_gym.pipeline.nightly.run import SILENCE, Watch
from agent_gym.pipeline.nightly.workspace import Workspace
from agent_gym.rollouts.choice import make_executor
from agent_gym.rollouts.jobs import Job
from agent_gym.rollouts.play import Failure, Status

JOB_TIMEOUT_S = 3_600.0
# The fewest fresh seeds that a night ever takes: less power, and more luck in every mean.
POLICY = GatePolicy(max_confirm=GatePolicy().n_confirm)

Say: TypeAlias = Callable[[str], None]


class HereCrew:
    """Plays in this very process, for jobs that have a process of their own."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def play(self, tasks: Sequence[Task], heard: Heard) -> dict[str, list[Row]]:
        """Play seed by seed; each is told when it is done."""
        found: dict[str, list[Row]] = {}
        for task in tasks:
            rows = found.setdefault(task.scenario.name, [])
            for seed in task.seeds:
                rows.append(episode_row(task.scenario, self.subject, seed))
                heard(task.scenario.name, rows[-1:])
        return found


def self_test_workspace(home: Path, suite: Suite) -> Workspace:
    """Return the place of this code's self-tests; other code or another suite has another one."""
    code = code_identity(packages_of(suite, suite.subject(), ()))
    asked = {"code": code.code_hash, "suite": suite.model_dump(mode="json")}
    return Workspace(home / "self_test" / fingerprint(asked)[:16])


def approved_baseline(
    workspace: Workspace, suite: Suite, workers: int, watch: Watch = SILENCE
) -> Baseline:
    """Return the healthy side, played and approved once."""
    try:
        return load_baseline(workspace)
    except NoBaseline:
        options = RunOptions(suite, suite.subject(), workers=workers, timings=False)
        approval = Approval("the healthy side of the self-test", "self-test")
        outcome = run_nightly(options, NightlyOptions(approval=approval), workspace, watch=watch)
        if outcome.approved is None:
            raise AgentGymError(
                "the healthy side could not be played",
                where=str(workspace.root),
                found="; ".join(outcome.messages),
            ) from None
        return load_baseline(workspace)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What a self-test is asked for.

    Attributes:
        workspace: Where it works; its baseline is the healthy side.
        suite: What is played.
        date: Chooses the fresh seeds; several nights begin with it.
        workers: Processes; no figure depends on it.
        policy: How strict the gate is.
    """

    workspace: Workspace
    suite: Suite
    date: str
    workers: int = 2
    policy: GatePolicy = POLICY

    def of_a_job(self) -> dict[str, Any]:
        """Return the fields that every job has."""
        root = self.workspace.root.resolve()
        return {"root": root, "suite": self.suite, "date": self.date, "policy": self.policy}

    def document(self) -> dict[str, Any]:
        """Return what decides the figures, for the file of the results."""
        record = load_baseline(self.workspace).record
        return {
            "suite": {"id": self.suite.id, "version": self.suite.version},
            "code": structs.asdict(record.code),
            "date": self.date,
            "policy": self.policy.model_dump(mode="json"),
        }


class KeptJob(Job):
    """A piece of a self-test; its row is kept in the workspace the moment it is there."""

    root: Path
    suite: Suite
    date: str
    policy: GatePolicy = POLICY

    @abstractmethod
    def work(self) -> dict[str, Any]:
        """Do it and return the row."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Return what people call this piece."""

    @property
    def place(self) -> Path:
        """Return the file of the row."""
        asked = fingerprint(self.model_dump(mode="json", exclude={"root"}))
        return self.root / "pieces" / f"{self.name}-{asked[:16]}.json"

    @override
    def run(self) -> dict[str, Any]:
        """Do it and keep the row."""
        clock = SystemClock()
        begun_s = clock.monotonic_s()
        row = self.work()
        row |= {"status": "ok", "seconds": round(clock.monotonic_s() - begun_s, 1)}
        write_json(self.place, row)
        return row

    @override
    def writes(self) -> tuple[Path, ...]:
        """Return the workspace."""
        return (self.root,)

    @override
    def lost(self, status: Status, failure: Failure | None) -> dict[str, Any]:
        """Return the row of a piece that failed; it is not kept."""
        return {"name": self.name, "status": status, "error": failure}


def do_all(jobs: Sequence[KeptJob], workers: int, say: Say) -> list[dict[str, Any]]:
    """Do what is not done yet, and return all rows in the order of the jobs.

    Raises:
        KeyboardInterrupt: It was stopped; what was done is kept.
        AgentGymError: A piece failed, so there is no answer.
    """
    todo = [job for job in jobs if not job.place.exists()]
    if len(todo) < len(jobs):
        say(f"{len(jobs) - len(todo)} of {len(jobs)} were done before")
    executor = make_executor(workers, timeout_s=JOB_TIMEOUT_S)
    batch = executor.run(todo, lambda done, total, row: say(f"{done}/{total} {_line(row)}"))
    if batch.status == "partial":
        raise KeyboardInterrupt
    for row in batch.rows:
        if row["status"] != "ok":
            raise AgentGymError("a self-test failed", where=row["name"], found=row["error"])
    return [json.loads(job.place.read_text(encoding="utf-8")) for job in jobs]


def _line(row: dict[str, Any]) -> str:
    return f"{row['name']}: {row.get('says', row['status'])}, {row.get('seconds', 0)} s"
