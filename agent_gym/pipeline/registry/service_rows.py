"""What the store's tables say of the models that serve; written in the registry's transactions."""

from __future__ import annotations

from sqlalchemy import insert, select, update

from agent_gym.pipeline.registry.ledger import Change
from agent_gym.pipeline.registry.rollout import Stage
from agent_gym.rollouts.database import ModelDeployment, TrainedModel
from agent_gym.rollouts.database.model_tables import DeploymentStatus


def open_deployment(change: Change, model: str, stage: Stage, share: float) -> None:
    """Write that a model goes into service from now on; ids follow the history."""
    row = {
        "deployment_id": f"{change.pointer.history_length + len(change.said) + 1}-{stage}",
        "model_id": model,
        "stage": stage,
        "traffic_share": share,
        "status": "active",
        "health": "healthy",
        "reason": None,
        "deployed_ns": change.at_ns,
        "undeployed_ns": None,
    }
    change.connection.execute(insert(ModelDeployment), [row])


def close_deployments(
    change: Change, model: str, status: DeploymentStatus, reason: str | None = None
) -> None:
    """Write that a model does not serve any more as it did."""
    values = {"status": status, "undeployed_ns": change.at_ns, "reason": reason}
    if status == "rolled_back":
        values["health"] = "unhealthy"
    change.connection.execute(
        update(ModelDeployment)
        .where(ModelDeployment.model_id == model, ModelDeployment.status == "active")
        .values(values)
    )


def first_champion(change: Change) -> str | None:
    """Return the model that was installed; None if there was none."""
    asked = select(ModelDeployment.model_id).order_by(ModelDeployment.id).limit(1)
    return change.connection.scalar(asked)


def mark_champion(change: Change, model: str) -> None:
    """Write that a model is the champion."""
    values = {"status": "deployed", "deployed_ns": change.at_ns, "archived_ns": None}
    change.connection.execute(
        update(TrainedModel).where(TrainedModel.model_id == model).values(values)
    )


def mark_archived(change: Change, model: str) -> None:
    """Write that a model is kept, but serves nobody."""
    values = {"status": "archived", "archived_ns": change.at_ns}
    change.connection.execute(
        update(TrainedModel).where(TrainedModel.model_id == model).values(values)
    )
