"""The job as a durable workflow: killed anywhere, it goes on with the stage it was in.

The workflow's own database holds JSON alone (nothing in there is ever unpickled). Its id is that of
the job, so asking twice for one job is one job.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbos import (
    DBOS,
    DBOSConfig,
    DBOSConfiguredInstance,
    DBOSPortableJSONSerializer,
    PortableWorkflowError,
    SetWorkflowID,
)

from agent_gym.core.errors import AgentGymError, StoreError
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.engine_file import check_engine_file
from agent_gym.pipeline.automation.job import JobOutcome, TrainingJob
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.rollouts.database import plain_errors
from agent_gym.training.rl.folder_lock import at_work

NAME, EXECUTOR = "agent-gym", "local"
FAILED = ("ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
WORDS_VERSION = "1"  # of what workflows keep; a killed one is taken up by the same version alone
LOOK_EVERY_S = 0.1


@DBOS.dbos_class()
class ImprovementWorkflow(DBOSConfiguredInstance):
    """One job from readiness to rollout; every step is kept before the next begins.

    The engine knows one for each process, by its name, so that a killed job finds it again.
    """

    def __init__(self) -> None:
        super().__init__("improvement")
        self.stages: Stages | None = None
        self.leaving = False

    @property
    def _stages(self) -> Stages:
        if self.stages is None:
            raise StoreError("no workflow engine runs in this process")
        return self.stages

    @DBOS.workflow()
    def improve(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Do the job and return its outcome."""
        ready = self.check()
        job = TrainingJob.model_validate(asked)
        if not ready["ready"] and not job.force:
            return self._ended(job, "skipped", ready["reason"], ready)
        claimed = self.claim(asked)
        if not claimed["claimed"]:
            reason = "no group of trajectories of the champion is large enough"
            return self._ended(job, "skipped", reason, ready)
        rounds: list[dict[str, Any]] = []
        settings = job.config or self._stages.config
        for number in range(settings.rounds):
            if number:
                self.practise(asked, number)
            rounds.append(self.train(asked, number))
            if "failed" in rounds[-1]:
                return self._ended(job, "not learnable", rounds[-1]["failed"], ready)
        told = _trained(claimed["champion"], rounds)
        if not told["changed"]:
            return self._ended(job, "unchanged", "training changed nothing", ready, told)
        verdict = self.decide(asked)
        if not verdict["promoted"]:
            return self._ended(job, "not promoted", verdict["sentence"], ready, told, verdict)
        if job.shuffle_rewards:  # a control is judged, and never served
            return self._ended(job, "control passed", verdict["sentence"], ready, told, verdict)
        served = self.roll_out(asked)
        if served["champion"] != told["model_after"]:
            reason = str((served["rollout"] or {}).get("reason") or "the rollout was taken back")
            return self._ended(job, "rolled back", reason, ready, told, verdict)
        return self._ended(job, "promoted", verdict["sentence"], ready, told, verdict)

    @DBOS.step()
    def check(self) -> dict[str, Any]:
        """Ask whether training may begin."""
        found = self._stages.readiness()
        return {
            "ready": found.ready,
            "reason": found.reason,
            "champion": self._stages.champion(),
            "conditions": [
                {"name": each.name, "met": each.met, "words": each.words}
                for each in found.conditions
            ],
        }

    @DBOS.step()
    def claim(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Take a batch."""
        return self._stages.claim(TrainingJob.model_validate(asked))

    @DBOS.step()
    def practise(self, asked: dict[str, Any], number: int) -> dict[str, Any]:
        """Play with the policy so far, and take what was recorded."""
        return self._stages.practise(TrainingJob.model_validate(asked), number)

    @DBOS.step()
    def train(self, asked: dict[str, Any], number: int) -> dict[str, Any]:
        """Learn; the ids that were learned from stay in the folder of the job."""
        told = self._stages.train(TrainingJob.model_validate(asked), number)
        return {name: value for name, value in told.items() if name != "trained_ids"}

    @DBOS.step()
    def decide(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Play the sealed set and let the gate judge."""
        verdict = self._stages.decide(TrainingJob.model_validate(asked))
        return verdict.as_dict() | {"promoted": verdict.promoted, "sentence": verdict.sentence}

    @DBOS.step()
    def roll_out(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Take the model into service."""
        return self._stages.roll_out(TrainingJob.model_validate(asked))

    def _ended(
        self,
        job: TrainingJob,
        ending: Any,
        reason: str,
        ready: dict[str, Any],
        told: dict[str, Any] | None = None,
        verdict: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        return JobOutcome(
            job_id=job.job_id,
            ending=ending,
            reason=reason,
            champion=ready["champion"],
            challenger=None if told is None else told["model_after"],
            stages={"readiness": ready, "training": told, "verdict": verdict},
        ).model_dump(mode="json")


def _trained(champion: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what all rounds came to."""
    last = rounds[-1]["model_after"]
    return {
        "model_before": champion,
        "model_after": last,
        "changed": last != champion,
        "rounds": rounds,
    }


_WORKFLOW = ImprovementWorkflow()


@dataclass(frozen=True, slots=True)
class JobState:
    """How far a job is.

    Attributes:
        job_id: Which one.
        status: In the words of the workflow engine: PENDING, SUCCESS, ERROR, ...
        steps: The steps that are done, in order.
        outcome: What it came to; None while it is under way or if it failed.
        error: Why it failed.
        created_ms: When it was asked for, UTC.
    """

    job_id: str
    status: str
    steps: tuple[str, ...]
    outcome: JobOutcome | None
    error: str | None
    created_ms: int


_of_engine = plain_errors(
    "the database of training jobs", "See that its disk has room, then ask again"
)


class Runtime:
    """Runs jobs, each with the settings that it began with; only one lives in a process."""

    def __init__(self, config: AutomationConfig) -> None:
        self._config = config

    def run(self, job: TrainingJob) -> JobOutcome:
        """Do a job, or wait for it if it is under way, or return how it ended."""
        self.start(job)
        return self.wait(job.job_id)

    @_of_engine
    def start(self, job: TrainingJob) -> None:
        """Begin a job and do not wait for it.

        One that runs or has ended stays as it is; one that failed goes on with the step that
        failed, with what was asked for at first.
        """
        if self.status(job.job_id) in FAILED:
            steps = DBOS.list_workflow_steps(job.job_id)
            done = [step["function_id"] for step in steps if step["error"] is None]
            DBOS.rewind_workflow(job.job_id, start_step=max(done, default=0) + 1)
            return
        kept = job if job.config is not None else job.model_copy(update={"config": self._config})
        with SetWorkflowID(job.job_id):
            DBOS.start_workflow(_WORKFLOW.improve, kept.model_dump(mode="json"))

    @_of_engine
    def wait(self, job_id: str) -> JobOutcome:
        """Wait until a job has ended, and return how; one that failed is an error."""
        try:
            handle: Any = DBOS.retrieve_workflow(job_id)
            found: Any = handle.get_result(polling_interval_sec=LOOK_EVERY_S)
        except PortableWorkflowError as error:
            raise AgentGymError(
                "the job failed",
                where=job_id,
                found=error.message,
                remedy="Ask for the same job again; it goes on with the step that failed",
            ) from error
        return JobOutcome.model_validate(found)

    @_of_engine
    def known(self, job_id: str) -> JobState | None:
        """Return how far a job is; None if nobody knows it."""
        found = DBOS.list_workflows(workflow_ids=[job_id], load_input=False)
        if not found:
            return None
        steps = DBOS.list_workflow_steps(job_id, load_output=False)
        row = found[0]
        return JobState(
            job_id=job_id,
            status=row.status,
            steps=tuple(step["function_name"].rpartition(".")[2] for step in steps),
            outcome=None if row.output is None else JobOutcome.model_validate(row.output),
            error=None if row.error is None else str(row.error),
            created_ms=row.created_at or 0,
        )

    @_of_engine
    def under_way(self) -> tuple[str, ...]:
        """Return the jobs that have not ended, oldest first."""
        return _jobs(["PENDING", "ENQUEUED"])

    @_of_engine
    def failed(self) -> tuple[str, ...]:
        """Return the jobs that failed, oldest first; each can be asked for again."""
        return _jobs(list(FAILED))

    @_of_engine
    def status(self, job_id: str) -> str | None:
        """Return how far a job is, in the words of the workflow engine; None if nobody knows it."""
        found = DBOS.list_workflows(workflow_ids=[job_id])
        return found[0].status if found else None


def _jobs(status: list[str]) -> tuple[str, ...]:
    found = DBOS.list_workflows(
        status=status, app_version=WORDS_VERSION, load_input=False, load_output=False
    )
    return tuple(row.workflow_id for row in found)


@contextmanager
def running(stages: Stages, database: Path) -> Iterator[Runtime]:
    """Launch the workflow engine; jobs that were cut off are taken up at once.

    One process at a time works on the jobs of a folder; a second one is refused.

    Args:
        stages: The work.
        database: SQLite file of the engine's own.
    """
    if _WORKFLOW.stages is not None:
        raise StoreError("a workflow engine runs in this process already")
    database.parent.mkdir(parents=True, exist_ok=True)
    check_engine_file(database)
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": f"sqlite:///{database.absolute()}",
        "application_version": WORDS_VERSION,
        "executor_id": EXECUTOR,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "ERROR",
        "console_log_level": "ERROR",
    }
    with at_work(stages.folder):  # two would both take up a job that was cut off
        _WORKFLOW.stages, _WORKFLOW.leaving = stages, False
        logging.getLogger("dbos").addFilter(_worth_telling)
        try:
            DBOS(config=config)
            DBOS.launch()
            yield Runtime(stages.config)
        finally:
            _WORKFLOW.leaving = True
            DBOS.destroy()
            _WORKFLOW.stages = None


def _worth_telling(record: logging.LogRecord) -> bool:
    """Say whether a message of the engine is news.

    A job that is cut off while the engine goes has nobody left to tell how it failed. The engine
    writes a trace then, although the next start takes the job up where it was.
    """
    return not (_WORKFLOW.leaving and record.exc_info)
