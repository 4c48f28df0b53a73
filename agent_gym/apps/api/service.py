"""The parts of a running service, opened together and closed together."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent_gym.apps.api.metrics import ServiceMetrics
from agent_gym.apps.api.settings import ServiceSettings
from agent_gym.apps.api.tracking import journal, tracker_state
from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import AgentGymError
from agent_gym.pipeline.automation.pipeline import (
    NO_CHAMPION,
    AutomationPipeline,
    TrainingStatus,
    Triggered,
)
from agent_gym.pipeline.automation.stages import Stages
from agent_gym.pipeline.automation.workflow import running
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.runtime import AgentRuntime, TickRound
from agent_gym.rollouts.database import TrajectoryFilter

HEALTHY = "healthy"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoopFigures:
    """What the loop has, in numbers."""

    trajectories: dict[str, int]
    agents: dict[str, int]
    points: int
    champion: str | None


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Attributes:
        settings: What it was told.
        folder: Where everything lies.
        stages: Store, registry and deployments.
        pipeline: Trainings.
        agents: The living agents.
        metrics: What is counted.
    """

    settings: ServiceSettings
    folder: LoopFolder
    stages: Stages
    pipeline: AutomationPipeline
    agents: AgentRuntime
    metrics: ServiceMetrics = field(default_factory=ServiceMetrics)

    def tick(self, call_id: str | None = None) -> TickRound:
        """Advance every active agent by a tick; what waits in the outbox is delivered first."""
        if self.stages.store.outbox.waiting():
            self.stages.store.deliver()
        told = self.agents.tick(call_id)
        self.metrics.count_round(told)
        return told

    def train(self, force: bool = False, job_id: str | None = None) -> Triggered:
        """Begin a training if it may begin."""
        told = self.pipeline.trigger_training(force, job_id)
        self.metrics.count_asked(told)
        return told

    def readiness(self) -> dict[str, Any]:
        """Return whether training may begin, with every condition in words."""
        found = self.pipeline.check_training_readiness()
        return {
            "ready": found.ready,
            "reason": found.reason,
            "conditions": [
                {"name": each.name, "met": each.met, "words": each.words}
                for each in found.conditions
            ],
        }

    def figures(self) -> LoopFigures:
        """Count what there is."""
        counts = self.stages.store.counts()
        agents = self.stages.store.agents.all()
        return LoopFigures(
            trajectories={
                "total": counts.total,
                "trainable": counts.trainable,
                "unused": counts.unused,
                "judged": counts.judged,
            },
            agents={
                status: sum(agent.status == status for agent in agents)
                for status in ("active", "paused")
            },
            points=sum(agent.points for agent in agents),
            champion=self.stages.deployments.state().champion,
        )

    def collected(self) -> dict[str, Any]:
        """Return how much was recorded lately."""
        store, now = self.stages.store, self.stages.clock.now_ns()
        day, week = (
            store.count(TrajectoryFilter(created_from_ns=now - days * DAY_NS)) for days in (1, 7)
        )
        return {
            "last_24h": day,
            "last_7d": week,
            "rate_per_hour": day / 24.0,
            "waiting_in_outbox": len(store.outbox.waiting()),
        }

    def health(self) -> dict[str, Any]:
        """Return whether database and folder can be used, and who is told of trainings."""
        try:
            self.stages.deployments.state()
            database = "ok"
        except AgentGymError as error:
            database = str(error)
        storage = "ok" if os.access(self.folder.path, os.W_OK) else "cannot be written"
        healthy = database == storage == "ok"
        return {
            "status": HEALTHY if healthy else "unhealthy",
            "database": database,
            "storage": storage,
            "wandb": tracker_state(),
        }


@contextmanager
def opened(settings: ServiceSettings) -> Iterator[Service]:
    """Open everything; trainings and markets that were cut off are taken up again."""
    folder = LoopFolder(settings.folder.absolute())
    metrics, told = ServiceMetrics(), journal(folder.path)

    def ended(status: TrainingStatus) -> None:
        metrics.count_ended(status)
        if told is not None:
            told.tell(status)

    with (
        folder.opened(
            settings.automation, rollout=settings.rollout, url=settings.database
        ) as stages,
        running(stages, folder.workflows(stages.store)) as runtime,
        AgentRuntime(
            stages.store, stages.deployments, folder.snapshots("train"), settings.runtime
        ) as agents,
    ):
        pipeline = AutomationPipeline(stages, runtime, ended)
        service = Service(settings, folder, stages, pipeline, agents, metrics)
        metrics.watch(service.figures)
        if stages.deployments.state().champion is None:
            log.warning("agents do not move: %s", NO_CHAMPION)
        yield service
