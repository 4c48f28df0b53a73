"""The job as a durable workflow: killed anywhere, it goes on with the stage it was in.

The workflow's own database holds JSON alone (nothing in there is ever unpickled). Its id is that of
the job, so asking twice for one job is one job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig, DBOSConfiguredInstance, DBOSPortableJSONSerializer, SetWorkflowID

from agent_gym.core.errors import StoreError
from agent_gym.pipeline.automation.job import JobOutcome, TrainingJob
from agent_gym.pipeline.automation.stages import Stages

NAME, EXECUTOR = "agent-gym", "local"
WORDS_VERSION = "1"  # of what workflows keep; a killed one is taken up by the same version alone


@DBOS.dbos_class()
class ImprovementWorkflow(DBOSConfiguredInstance):
    """One job from readiness to rollout; every step is kept before the next begins.

    The engine knows one for each process, by its name, so that a killed job finds it again.
    """

    def __init__(self) -> None:
        super().__init__("improvement")
        self.stages: Stages | None = None

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
        told = self.train(asked)
        if not told["changed"]:
            return self._ended(job, "unchanged", "training changed nothing", ready, told)
        verdict = self.decide(asked)
        if not verdict["promoted"]:
            return self._ended(job, "not promoted", verdict["sentence"], ready, told, verdict)
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
    def train(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Learn; the ids that were learned from stay in the folder of the job."""
        told = self._stages.train(TrainingJob.model_validate(asked))
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


_WORKFLOW = ImprovementWorkflow()


class Runtime:
    """Runs jobs one after another; only one lives in a process."""

    def run(self, job: TrainingJob) -> JobOutcome:
        """Do a job, or wait for it if it is under way, or return how it ended."""
        with SetWorkflowID(job.job_id):
            handle = DBOS.start_workflow(_WORKFLOW.improve, job.model_dump(mode="json"))
        return JobOutcome.model_validate(handle.get_result())

    def status(self, job_id: str) -> str | None:
        """Return how far a job is, in the words of the workflow engine; None if nobody knows it."""
        found = DBOS.list_workflows(workflow_ids=[job_id])
        return found[0].status if found else None


@contextmanager
def running(stages: Stages, database: Path) -> Iterator[Runtime]:
    """Launch the workflow engine; jobs that were cut off are taken up at once.

    Args:
        stages: The work.
        database: SQLite file of the engine's own.
    """
    if _WORKFLOW.stages is not None:
        raise StoreError("a workflow engine runs in this process already")
    database.parent.mkdir(parents=True, exist_ok=True)
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": f"sqlite:///{database.absolute()}",
        "application_version": WORDS_VERSION,
        "executor_id": EXECUTOR,
        "serializer": DBOSPortableJSONSerializer(),
        "log_level": "ERROR",
        "console_log_level": "ERROR",
    }
    _WORKFLOW.stages = stages
    try:
        DBOS(config=config)
        DBOS.launch()
        yield Runtime()
    finally:
        DBOS.destroy()
        _WORKFLOW.stages = None
