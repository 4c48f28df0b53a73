"""Models that came out of training, where they serve, and what became of markets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select, update

from agent_gym.core.clock import Clock
from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.model_tables import (
    DeploymentStatus,
    Health,
    MarketOutcome,
    ModelDeployment,
    ModelStatus,
    TrainedModel,
)
from agent_gym.rollouts.database.outbox import insert_new
from agent_gym.rollouts.database.records import DeploymentRecord, ModelRecord, OutcomeRecord


class Models:
    """The models of a store and their deployments."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    def add(self, model: ModelRecord) -> TrainedModel:
        """Keep a model; the same one again changes nothing."""
        row = model.model_dump() | {"created_ns": self._clock.now_ns()}
        with self._database.writing() as connection:
            insert_new(connection, TrainedModel, [row], "model_id")
        return self.get(model.model_id)

    def get(self, model_id: str) -> TrainedModel:
        """Return a model."""
        with self._database.reading() as session:
            found = session.scalar(select(TrainedModel).where(TrainedModel.model_id == model_id))
        if found is None:
            raise ConfigError("there is no such model", found=model_id)
        return found

    def newest(
        self, status: ModelStatus | None = None, *, limit: int = 50
    ) -> tuple[TrainedModel, ...]:
        """Return the models that were added last, newest first."""
        chosen = select(TrainedModel).order_by(TrainedModel.id.desc()).limit(limit)
        if status is not None:
            chosen = chosen.where(TrainedModel.status == status)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen))

    def set_status(self, model_id: str, status: ModelStatus) -> None:
        """Say what became of a model."""
        values: dict[str, Any] = {"status": status}
        if status in ("deployed", "archived"):
            values[f"{status}_ns"] = self._clock.now_ns()
        chosen = update(TrainedModel).where(TrainedModel.model_id == model_id)
        with self._database.writing() as connection:
            if not connection.execute(chosen.values(values)).rowcount:
                raise ConfigError("there is no such model", found=model_id)

    def deploy(self, deployment: DeploymentRecord) -> ModelDeployment:
        """Keep that a model goes into service; the same deployment again changes nothing."""
        now = self._clock.now_ns()
        row = deployment.model_dump() | {"status": "active", "deployed_ns": now}
        with self._database.writing() as connection:
            insert_new(connection, ModelDeployment, [row], "deployment_id")
        return self._deployment(deployment.deployment_id)

    def set_health(self, deployment_id: str, health: Health) -> None:
        """Say how a deployment does."""
        self._change(deployment_id, {"health": health})

    def end_deployment(
        self, deployment_id: str, status: DeploymentStatus, reason: str | None = None
    ) -> None:
        """Keep that a model went out of service; one that has ended stays as it ended."""
        found = self._deployment(deployment_id)
        if found.undeployed_ns is not None:
            if found.status == status:
                return
            raise StoreError(
                "the deployment has ended already", where=deployment_id, found=found.status
            )
        now = self._clock.now_ns()
        self._change(deployment_id, {"status": status, "reason": reason, "undeployed_ns": now})

    def deployments(
        self, status: DeploymentStatus | None = None, *, limit: int = 50
    ) -> tuple[ModelDeployment, ...]:
        """Return the newest deployments, newest first."""
        chosen = select(ModelDeployment).order_by(ModelDeployment.id.desc()).limit(limit)
        if status is not None:
            chosen = chosen.where(ModelDeployment.status == status)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen))

    def _deployment(self, deployment_id: str) -> ModelDeployment:
        chosen = select(ModelDeployment).where(ModelDeployment.deployment_id == deployment_id)
        with self._database.reading() as session:
            found = session.scalar(chosen)
        if found is None:
            raise ConfigError("there is no such deployment", found=deployment_id)
        return found

    def _change(self, deployment_id: str, values: dict[str, Any]) -> None:
        chosen = update(ModelDeployment).where(ModelDeployment.deployment_id == deployment_id)
        with self._database.writing() as connection:
            if not connection.execute(chosen.values(values)).rowcount:
                raise ConfigError("there is no such deployment", found=deployment_id)


class Outcomes:
    """What became of markets, window by window."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, outcomes: Iterable[OutcomeRecord]) -> None:
        """Keep outcomes; a market of a window has one, the first that was said."""
        rows = [one.model_dump() for one in outcomes]
        with self._database.writing() as connection:
            insert_new(connection, MarketOutcome, rows, "window_id", "snapshot_id", "market")

    def of(self, window_id: str) -> tuple[MarketOutcome, ...]:
        """Return the outcomes of a window, by market."""
        chosen = select(MarketOutcome).where(MarketOutcome.window_id == window_id)
        order = (MarketOutcome.snapshot_id, MarketOutcome.market)
        with self._database.reading() as session:
            return tuple(session.scalars(chosen.order_by(*order)))
