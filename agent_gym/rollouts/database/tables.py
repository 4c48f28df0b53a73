"""Tables of what was played: trajectories, where their steps lie, and what models were asked.

The steps themselves are columns in files (see step_files.py). A row names its file by hash, and the
first of its rows there. Texts are cleaned before they come here (see records.py).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from agent_gym.rollouts.database.base import NANOS, ROW_ID, Base

TrajectoryStatus: TypeAlias = Literal[
    "completed", "empty", "error", "interrupted", "crashed", "timeout", "cancelled"
]
Purpose: TypeAlias = Literal["training", "evaluation"]
CallPurpose: TypeAlias = Literal["action", "reasoning", "evaluation", "response", "other"]
FileState: TypeAlias = Literal["whole", "damaged", "missing"]


class StepFile(Base):
    """A file of steps, named by the hash of its bytes; it may hold many trajectories."""

    __tablename__ = "step_files"

    file_hash: Mapped[str] = mapped_column(primary_key=True)
    n_rows: Mapped[int]
    n_bytes: Mapped[int] = mapped_column(NANOS)
    n_trajectories: Mapped[int]
    state: Mapped[str]
    created_ns: Mapped[int] = mapped_column(NANOS)


class Trajectory(Base):
    """One role of one episode; ``trainable`` says whether anything can be learned from it.

    That is: it was played for training, ended well, has steps that are whole, comes from one
    version of one policy, and its group is known. Being judged changes none of that.
    """

    __tablename__ = "trajectories"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    trajectory_id: Mapped[str] = mapped_column(unique=True)
    run_id: Mapped[str]
    episode_id: Mapped[str]
    role: Mapped[str]
    agent: Mapped[str]
    agent_version: Mapped[str | None]
    snapshot_id: Mapped[str | None]
    scenario_id: Mapped[str | None]
    rules_version: Mapped[str]
    group_key: Mapped[str | None]
    seed: Mapped[int | None] = mapped_column(NANOS)
    window_id: Mapped[str | None]
    window_hours: Mapped[int]
    purpose: Mapped[str]
    start_ns: Mapped[int | None] = mapped_column(NANOS)
    end_ns: Mapped[int | None] = mapped_column(NANOS)
    wall_ms: Mapped[float]
    status: Mapped[str]
    terminated: Mapped[bool]
    truncated: Mapped[bool]
    error: Mapped[dict[str, Any] | None]
    n_steps: Mapped[int]
    total_reward: Mapped[float | None]
    has_log_probs: Mapped[bool]
    n_policy_versions: Mapped[int]
    trainable: Mapped[bool]
    final_balance: Mapped[float | None]
    final_pnl: Mapped[float | None]
    trades_executed: Mapped[int | None]
    posts_created: Mapped[int | None]
    reward_components: Mapped[dict[str, Any]]
    metrics: Mapped[dict[str, Any]]
    details: Mapped[dict[str, Any]]
    judge_score: Mapped[float | None]
    judge_reasoning: Mapped[str | None]
    judged_ns: Mapped[int | None] = mapped_column(NANOS)
    used_in_training: Mapped[bool]
    trained_in_batch: Mapped[str | None] = mapped_column(ForeignKey("training_batches.batch_id"))
    step_file: Mapped[str | None] = mapped_column(ForeignKey("step_files.file_hash"))
    first_row: Mapped[int | None]
    steps_hash: Mapped[str]
    created_ns: Mapped[int] = mapped_column(NANOS)

    __table_args__ = (
        CheckConstraint("n_steps > 0 or not trainable", name="no_steps_no_training"),
        CheckConstraint(
            "used_in_training = (trained_in_batch is not null)", name="used_by_a_batch"
        ),
        Index("ix_trajectories_agent_id", "agent", "id"),
        Index("ix_trajectories_agent_version_id", "agent_version", "id"),
        Index("ix_trajectories_scenario_id_id", "scenario_id", "id"),
        Index("ix_trajectories_snapshot_id_total_reward", "snapshot_id", "total_reward", "id"),
        Index("ix_trajectories_group_key_id", "group_key", "id"),
        Index("ix_trajectories_window_id_agent_id", "window_id", "agent", "id"),
        Index("ix_trajectories_run_id_id", "run_id", "id"),
        Index("ix_trajectories_status_id", "status", "id"),
        Index("ix_trajectories_total_reward_id", "total_reward", "id"),
        Index("ix_trajectories_n_steps_id", "n_steps", "id"),
        Index("ix_trajectories_start_ns_id", "start_ns", "id"),
        Index("ix_trajectories_created_ns_id", "created_ns", "id"),
        Index("ix_trajectories_judge_score_id", "judge_score", "id"),
        Index("ix_trajectories_step_file", "step_file"),
        Index("ix_trajectories_trained_in_batch", "trained_in_batch", "id"),
        Index(
            "ix_trajectories_tally",
            *("purpose", "used_in_training", "trainable", "n_steps", "judged_ns", "id"),
        ),
        Index(
            "ix_trajectories_free",
            *("group_key", "purpose", "has_log_probs", "id"),
            sqlite_where=text("trainable and not used_in_training"),
            postgresql_where=text("trainable and not used_in_training"),
        ),
    )


class LlmCall(Base):
    """One question to a language model and what it answered."""

    __tablename__ = "llm_call_logs"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    call_id: Mapped[str] = mapped_column(unique=True)
    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.trajectory_id"))
    t: Mapped[int]
    model: Mapped[str]
    model_version: Mapped[str | None]
    purpose: Mapped[str]
    action_type: Mapped[str | None]
    system_prompt: Mapped[str]
    user_prompt: Mapped[str]
    messages: Mapped[list[Any] | None]
    response: Mapped[str]
    reasoning: Mapped[str | None]
    temperature: Mapped[float | None]
    max_tokens: Mapped[int | None]
    top_p: Mapped[float | None]
    prompt_tokens: Mapped[int | None]
    completion_tokens: Mapped[int | None]
    latency_ms: Mapped[float | None]
    log_prob: Mapped[float | None]
    tokens: Mapped[dict[str, Any] | None]
    details: Mapped[dict[str, Any]]
    at_ns: Mapped[int] = mapped_column(NANOS)

    __table_args__ = (
        Index("ix_llm_call_logs_trajectory_id_id", "trajectory_id", "id"),
        Index("ix_llm_call_logs_at_ns_id", "at_ns", "id"),
    )


class RewardJudgment(Base):
    """What a judge thought of one trajectory among the others of its group."""

    __tablename__ = "reward_judgments"

    id: Mapped[int] = mapped_column(ROW_ID, primary_key=True)
    judgment_id: Mapped[str] = mapped_column(unique=True)
    trajectory_id: Mapped[str] = mapped_column(ForeignKey("trajectories.trajectory_id"))
    group_id: Mapped[str]
    judge_model: Mapped[str]
    judge_version: Mapped[str]
    overall_score: Mapped[float]
    normalized_score: Mapped[float | None]
    rank: Mapped[int | None]
    component_scores: Mapped[dict[str, Any]]
    reasoning: Mapped[str | None]
    strengths: Mapped[list[Any]]
    weaknesses: Mapped[list[Any]]
    criteria: Mapped[dict[str, Any]]
    created_ns: Mapped[int] = mapped_column(NANOS)

    __table_args__ = (
        CheckConstraint("overall_score >= 0 and overall_score <= 1", name="score_in_range"),
        Index("ix_reward_judgments_trajectory_id_id", "trajectory_id", "id"),
        Index("ix_reward_judgments_group_id_id", "group_id", "id"),
    )
