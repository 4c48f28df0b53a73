"""Tables of what was made of it: batches, models, deployments; and of the service's agents."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from agent_gym.rollouts.database.base import NANOS, ROW_ID, Base

BatchStatus: TypeAlias = Literal[
    "pending", "preparing", "scoring", "training", "uploading", "completed", "failed"
]
MemberOutcome: TypeAlias = Literal["claimed", "trained", "dropped", "released"]
ModelStatus: TypeAlias = Literal["training", "ready", "deployed", "archived"]
Stage: TypeAlias = Literal["shadow", "canary", "full"]
DeploymentStatus: TypeAlias = Literal["active", "replaced", "rolled_back"]
Health: TypeAlias = Literal["healthy", "degraded", "unhealthy"]
AgentStatus: TypeAlias = Literal["active", "paused"]
MarketKind: TypeAlias = Literal["perpetual", "prediction"]


class TrainingBatch(Base):
    """A set of trajectories that was claimed to be trained on; see its members."""

    __tablename__ = "training_batches"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    batch_id: Mapped[str] = mapped_column(unique=True)
    scenario_id: Mapped[str | None]
    base_model: Mapped[str | None]
    model_version: Mapped[str | None]
    status: Mapped[str]
    error: Mapped[str | None]
    n_trajectories: Mapped[int]
    n_groups: Mapped[int]
    data_hash: Mapped[str]
    training_loss: Mapped[float | None]
    policy_improvement: Mapped[float | None]
    details: Mapped[dict[str, Any]]
    created_ns: Mapped[int] = mapped_column(NANOS)
    started_ns: Mapped[int | None] = mapped_column(NANOS)
    completed_ns: Mapped[int | None] = mapped_column(NANOS)

    __table_args__ = (Index("ix_training_batches_status_id", "status", "id"),)


class TrainingBatchMember(Base):
    """One trajectory of a batch, and what became of it."""

    __tablename__ = "training_batch_members"

    batch_id: Mapped[str] = mapped_column(ForeignKey("training_batches.batch_id"), primary_key=True)
    trajectory_id: Mapped[str] = mapped_column(
        ForeignKey("trajectories.trajectory_id"), primary_key=True
    )
    position: Mapped[int]
    group_key: Mapped[str]
    outcome: Mapped[str]

    __table_args__ = (Index("ix_training_batch_members_trajectory_id", "trajectory_id", "outcome"),)


class TrainedModel(Base):
    """A model that came out of training; its id is the hash of its files."""

    __tablename__ = "trained_models"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    model_id: Mapped[str] = mapped_column(unique=True)
    version: Mapped[str]
    base_model: Mapped[str | None]
    batch_id: Mapped[str | None] = mapped_column(ForeignKey("training_batches.batch_id"))
    status: Mapped[str]
    storage_path: Mapped[str | None]
    benchmark_score: Mapped[float | None]
    accuracy: Mapped[float | None]
    avg_reward: Mapped[float | None]
    eval_metrics: Mapped[dict[str, Any]]
    wandb_run_id: Mapped[str | None]
    created_ns: Mapped[int] = mapped_column(NANOS)
    deployed_ns: Mapped[int | None] = mapped_column(NANOS)
    archived_ns: Mapped[int | None] = mapped_column(NANOS)

    __table_args__ = (Index("ix_trained_models_status_id", "status", "id"),)


class ModelDeployment(Base):
    """A time during which a model answered for some share of the agents."""

    __tablename__ = "model_deployments"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    deployment_id: Mapped[str] = mapped_column(unique=True)
    model_id: Mapped[str] = mapped_column(ForeignKey("trained_models.model_id"))
    stage: Mapped[str]
    traffic_share: Mapped[float]
    status: Mapped[str]
    health: Mapped[str]
    reason: Mapped[str | None]
    deployed_ns: Mapped[int] = mapped_column(NANOS)
    undeployed_ns: Mapped[int | None] = mapped_column(NANOS)

    __table_args__ = (
        CheckConstraint("traffic_share >= 0 and traffic_share <= 1", name="share_in_range"),
        Index("ix_model_deployments_model_id_id", "model_id", "id"),
        Index("ix_model_deployments_status_id", "status", "id"),
    )


class MarketOutcome(Base):
    """What became of one market in one window; known only afterwards."""

    __tablename__ = "market_outcomes"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    window_id: Mapped[str]
    snapshot_id: Mapped[str]
    market: Mapped[str]
    kind: Mapped[str]
    start_price: Mapped[float | None]
    end_price: Mapped[float | None]
    change_percent: Mapped[float | None]
    sentiment: Mapped[float | None]
    news_events: Mapped[list[Any]]
    question: Mapped[str | None]
    outcome: Mapped[bool | None]
    final_probability: Mapped[float | None]

    __table_args__ = (UniqueConstraint("window_id", "snapshot_id", "market"),)


class ServiceAgent(Base):
    """An agent that the service keeps alive: its budget of points and the tick it has reached."""

    __tablename__ = "service_agents"

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    status: Mapped[str]
    points: Mapped[int] = mapped_column(NANOS)
    tick: Mapped[int]
    snapshot_id: Mapped[str | None]
    policy_version: Mapped[str | None]
    state: Mapped[dict[str, Any]]
    created_ns: Mapped[int] = mapped_column(NANOS)
    updated_ns: Mapped[int] = mapped_column(NANOS)

    __table_args__ = (
        CheckConstraint("points >= 0", name="no_debt"),
        Index("ix_service_agents_status", "status"),
    )


class Event(Base):
    """Something that happened; rows are added and never changed (the database refuses)."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    kind: Mapped[str]
    subject: Mapped[str]
    data: Mapped[dict[str, Any]]
    at_ns: Mapped[int] = mapped_column(NANOS)

    __table_args__ = (
        Index("ix_events_kind_id", "kind", "id"),
        Index("ix_events_subject_id", "subject", "id"),
    )
