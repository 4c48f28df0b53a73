"""AutomationPipeline: when to train, one training at a time, and what came of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal, TypeAlias

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.registry import configure
from agent_gym.pipeline.automation.export import Export, export_grouped_for_grpo
from agent_gym.pipeline.automation.job import JobOutcome, TrainingJob
from agent_gym.pipeline.automation.readiness import Readiness
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.automation.workflow import JobState, Runtime
from agent_gym.pipeline.registry import RegisteredModel
from agent_gym.rollouts.play import attempt

JobStatus: TypeAlias = Literal["skipped", "running", "ended", "failed"]
STUCK_HOURS = 4.0
NO_CHAMPION = "no model serves yet; `agent-gym harness` installs a first champion"
STAGES = ("check", "claim", "train", "decide", "roll_out")
ENDED_WELL = "SUCCESS"
UNDER_WAY = ("PENDING", "ENQUEUED", "DELAYED")
MILLISECOND_NS = 1_000_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Triggered:
    """What came of asking for a training.

    Attributes:
        job_id: The job; None if none was begun.
        started: This call has begun it.
        status: "skipped" if there is none, else how far it is.
        reason: Why it was skipped, or why an older job is returned.
    """

    job_id: str | None
    started: bool
    status: JobStatus
    reason: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TrainingStatus:
    """How far a job is.

    Attributes:
        job_id: Which one.
        status: Whether it runs, has ended, or failed.
        stage: What it does now, or did last.
        progress: Between 0 and 1.
        stuck: It runs for more than four hours.
        outcome: What it came to.
        error: Why it failed.
    """

    job_id: str
    status: JobStatus
    stage: str
    progress: float
    stuck: bool
    outcome: JobOutcome | None
    error: str | None

    @property
    def words(self) -> str:
        """Return it in a sentence."""
        if self.outcome is not None:
            return f"{self.job_id} {self.outcome.ending}: {self.outcome.reason}"
        return f"{self.job_id} {self.status}: {self.error or self.stage}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        told = {name: getattr(self, name) for name in ("job_id", "status", "stage", "progress")}
        ended = None if self.outcome is None else self.outcome.model_dump(mode="json")
        return told | {"stuck": self.stuck, "outcome": ended, "error": self.error}


Ended: TypeAlias = Callable[[TrainingStatus], None]


class AutomationPipeline:
    """Trains when there is enough to train on.

    Args:
        stages: The work, and where everything lies.
        runtime: The workflow engine that does it.
        ended: Told of every job that ends, also of one that a process before this one began.
    """

    def __init__(self, stages: Stages, runtime: Runtime, ended: Ended | None = None) -> None:
        self._stages, self._runtime, self._ended = stages, runtime, ended
        self._lock = Lock()
        self._watched: set[str] = set()
        for job_id in runtime.under_way():
            self._watch(job_id)

    def check_training_readiness(self) -> Readiness:
        """Return whether training may begin; each unmet condition in words with numbers."""
        return self._stages.readiness()

    def trigger_training(self, force: bool = False, job_id: str | None = None) -> Triggered:
        """Begin a training, unless one runs or it is not ready; do not wait for it.

        Args:
            force: Begin although it is not ready.
            job_id: Name of the job; the same one again is the same job, also after it has ended.
                If it failed it goes on with the step that failed.
        """
        with self._lock:
            found = self._known_already(job_id)
            if found is not None:
                log.info("training %s: %s", found.job_id, found.reason)
                return found
            ready = self._stages.readiness()
            missing = self._missing(ready, force)
            if missing is not None:
                log.info("training skipped: %s", missing)
                return Triggered(None, False, "skipped", missing)
            job = TrainingJob(job_id=job_id or self._new_id(), force=force)
            self._runtime.start(job)
            self._watch(job.job_id)
        reason = "it is ready" if ready.ready else f"forced although: {ready.reason}"
        log.info("training %s begins: %s", job.job_id, reason)
        return Triggered(job.job_id, True, "running", reason)

    def monitor_training(self, job_id: str) -> TrainingStatus:
        """Return how far a job is."""
        state = self._runtime.known(job_id)
        if state is None:
            raise ConfigError("there is no such training job", found=job_id)
        age_ns = self._stages.clock.now_ns() - state.created_ms * MILLISECOND_NS
        status = _status(state)
        stage = next((name for name in reversed(STAGES) if name in state.steps), STAGES[0])
        done = len(set(state.steps) & set(STAGES)) / len(STAGES)
        return TrainingStatus(
            job_id=job_id,
            status=status,
            stage=stage,
            progress=1.0 if status == "ended" else done,
            stuck=status == "running" and age_ns > STUCK_HOURS * HOUR_NS,
            outcome=state.outcome,
            error=state.error,
        )

    def training_under_way(self) -> str | None:
        """Return the job that runs; None if none does."""
        return next(iter(self._runtime.under_way()), None)

    def export_grouped_for_grpo(self, batch_id: str, folder: Path) -> Export:
        """Write exactly the members of a batch, group by group, for a trainer elsewhere."""
        return export_grouped_for_grpo(self._stages.store, batch_id, folder)

    def get_latest_rl_model(self) -> RegisteredModel | None:
        """Return the newest model that came out of training; None if none did yet."""
        trained = [model for model in self._stages.registry.models() if model.batch_id is not None]
        return trained[-1] if trained else None

    def _known_already(self, job_id: str | None) -> Triggered | None:
        """Return the job that is meant, or the one that runs; None if a new one may begin."""
        state: JobState | None = None
        if job_id is not None:
            configure(TrainingJob, {"job_id": job_id}, where="training job")
            state = self._runtime.known(job_id)
            if state is not None and _status(state) != "failed":
                return Triggered(job_id, False, _status(state), "it was asked for before")
        running = self.training_under_way()
        if running is not None:
            return Triggered(running, False, "running", "a training is under way")
        return None if state is None else self._taken_up(state.job_id)

    def _taken_up(self, job_id: str) -> Triggered:
        self._runtime.start(TrainingJob(job_id=job_id))
        self._watched.discard(job_id)
        self._watch(job_id)
        return Triggered(job_id, True, "running", "it failed before, and goes on where it failed")

    def _missing(self, ready: Readiness, force: bool) -> str | None:
        """Return why no training can begin; None if one can."""
        if self._stages.deployments.state().champion is None:
            return NO_CHAMPION
        return None if ready.ready or force else ready.reason

    def _new_id(self) -> str:
        return f"train-{self._stages.clock.now_ns() // MILLISECOND_NS}"

    def _watch(self, job_id: str) -> None:
        if job_id not in self._watched:
            self._watched.add(job_id)
            Thread(target=self._follow, args=(job_id,), name=job_id, daemon=True).start()

    def _follow(self, job_id: str) -> None:
        """Wait for the end of a job and tell of it."""
        found: list[TrainingStatus] = []
        outcomes: list[JobOutcome] = []
        attempt(
            lambda: outcomes.append(self._runtime.wait(job_id))
        )  # its status says how it failed
        attempt(lambda: found.append(self.monitor_training(job_id)))
        if not found or found[0].status == "running":
            log.info("training %s goes on when the service does", job_id)
            return
        log.info("training %s", found[0].words)
        if self._ended is not None:
            status, failure = attempt(partial(self._ended, found[0]))
            if status != "ok":
                log.error("the end of training %s could not be told: %s", job_id, failure)


def _status(state: JobState) -> JobStatus:
    if state.status == ENDED_WELL:
        return "ended"
    return "running" if state.status in UNDER_WAY else "failed"
