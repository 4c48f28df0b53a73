"""The first schema: what was played, judged, trained on and deployed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    """Make the tables."""
    _step_files_and_batches()
    _trajectories()
    _calls_and_judgments()
    _members()
    _models()


def _step_files_and_batches() -> None:
    """Make what trajectories refer to."""
    op.create_table(
        "step_files",
        sa.Column("file_hash", sa.Text(), nullable=False),
        sa.Column("n_rows", sa.Integer(), nullable=False),
        sa.Column("n_bytes", sa.BigInteger(), nullable=False),
        sa.Column("n_trajectories", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("file_hash", name=op.f("pk_step_files")),
    )
    op.create_table(
        "training_batches",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("batch_id", sa.Text(), nullable=False),
        sa.Column("scenario_id", sa.Text(), nullable=True),
        sa.Column("base_model", sa.Text(), nullable=True),
        sa.Column("model_version", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("n_trajectories", sa.Integer(), nullable=False),
        sa.Column("n_groups", sa.Integer(), nullable=False),
        sa.Column("data_hash", sa.Text(), nullable=False),
        sa.Column("training_loss", sa.Double(), nullable=True),
        sa.Column("policy_improvement", sa.Double(), nullable=True),
        sa.Column("details", JSON, nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("started_ns", sa.BigInteger(), nullable=True),
        sa.Column("completed_ns", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_batches")),
        sa.UniqueConstraint("batch_id", name=op.f("uq_training_batches_batch_id")),
    )
    op.create_index("ix_training_batches_status_id", "training_batches", ["status", "id"])


def _trajectories() -> None:
    """Make the table of trajectories."""
    op.create_table(
        "trajectories",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("episode_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=True),
        sa.Column("snapshot_id", sa.Text(), nullable=True),
        sa.Column("scenario_id", sa.Text(), nullable=True),
        sa.Column("rules_version", sa.Text(), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("window_id", sa.Text(), nullable=True),
        sa.Column("window_hours", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("start_ns", sa.BigInteger(), nullable=True),
        sa.Column("end_ns", sa.BigInteger(), nullable=True),
        sa.Column("wall_ms", sa.Double(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("terminated", sa.Boolean(), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("error", JSON, nullable=True),
        sa.Column("n_steps", sa.Integer(), nullable=False),
        sa.Column("total_reward", sa.Double(), nullable=True),
        sa.Column("has_log_probs", sa.Boolean(), nullable=False),
        sa.Column("n_policy_versions", sa.Integer(), nullable=False),
        sa.Column("trainable", sa.Boolean(), nullable=False),
        sa.Column("final_balance", sa.Double(), nullable=True),
        sa.Column("final_pnl", sa.Double(), nullable=True),
        sa.Column("trades_executed", sa.Integer(), nullable=True),
        sa.Column("posts_created", sa.Integer(), nullable=True),
        sa.Column("reward_components", JSON, nullable=False),
        sa.Column("metrics", JSON, nullable=False),
        sa.Column("details", JSON, nullable=False),
        sa.Column("judge_score", sa.Double(), nullable=True),
        sa.Column("judge_reasoning", sa.Text(), nullable=True),
        sa.Column("judged_ns", sa.BigInteger(), nullable=True),
        sa.Column("used_in_training", sa.Boolean(), nullable=False),
        sa.Column("trained_in_batch", sa.Text(), nullable=True),
        sa.Column("step_file", sa.Text(), nullable=True),
        sa.Column("first_row", sa.Integer(), nullable=True),
        sa.Column("steps_hash", sa.Text(), nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "n_steps > 0 or not trainable", name=op.f("ck_trajectories_no_steps_no_training")
        ),
        sa.CheckConstraint(
            "used_in_training = (trained_in_batch is not null)",
            name=op.f("ck_trajectories_used_by_a_batch"),
        ),
        sa.ForeignKeyConstraint(
            ["step_file"], ["step_files.file_hash"], name=op.f("fk_trajectories_step_file")
        ),
        sa.ForeignKeyConstraint(
            ["trained_in_batch"],
            ["training_batches.batch_id"],
            name=op.f("fk_trajectories_trained_in_batch"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trajectories")),
        sa.UniqueConstraint("trajectory_id", name=op.f("uq_trajectories_trajectory_id")),
    )
    op.create_index("ix_trajectories_agent_id", "trajectories", ["agent", "id"])
    op.create_index("ix_trajectories_agent_version_id", "trajectories", ["agent_version", "id"])
    op.create_index("ix_trajectories_created_ns_id", "trajectories", ["created_ns", "id"])
    op.create_index("ix_trajectories_group_key_id", "trajectories", ["group_key", "id"])
    op.create_index("ix_trajectories_judge_score_id", "trajectories", ["judge_score", "id"])
    op.create_index("ix_trajectories_n_steps_id", "trajectories", ["n_steps", "id"])
    op.create_index("ix_trajectories_run_id_id", "trajectories", ["run_id", "id"])
    op.create_index("ix_trajectories_scenario_id_id", "trajectories", ["scenario_id", "id"])
    op.create_index("ix_trajectories_snapshot_id_id", "trajectories", ["snapshot_id", "id"])
    op.create_index("ix_trajectories_start_ns_id", "trajectories", ["start_ns", "id"])
    op.create_index("ix_trajectories_status_id", "trajectories", ["status", "id"])
    op.create_index("ix_trajectories_step_file", "trajectories", ["step_file"])
    op.create_index("ix_trajectories_total_reward_id", "trajectories", ["total_reward", "id"])
    op.create_index("ix_trajectories_trained_in_batch", "trajectories", ["trained_in_batch", "id"])
    op.create_index(
        "ix_trajectories_unused",
        "trajectories",
        ["group_key", "has_log_probs", "id"],
        sqlite_where=sa.text("trainable and not used_in_training"),
        postgresql_where=sa.text("trainable and not used_in_training"),
    )
    op.create_index(
        "ix_trajectories_window_id_agent_id", "trajectories", ["window_id", "agent", "id"]
    )


def _calls_and_judgments() -> None:
    """Make what belongs to a trajectory."""
    op.create_table(
        "llm_call_logs",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("t", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("model_version", sa.Text(), nullable=True),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("action_type", sa.Text(), nullable=True),
        sa.Column("system_prompt", sa.Text(), nullable=False),
        sa.Column("user_prompt", sa.Text(), nullable=False),
        sa.Column("messages", JSON, nullable=True),
        sa.Column("response", sa.Text(), nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("temperature", sa.Double(), nullable=True),
        sa.Column("max_tokens", sa.Integer(), nullable=True),
        sa.Column("top_p", sa.Double(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=True),
        sa.Column("completion_tokens", sa.Integer(), nullable=True),
        sa.Column("latency_ms", sa.Double(), nullable=True),
        sa.Column("log_prob", sa.Double(), nullable=True),
        sa.Column("tokens", JSON, nullable=True),
        sa.Column("details", JSON, nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["trajectory_id"],
            ["trajectories.trajectory_id"],
            name=op.f("fk_llm_call_logs_trajectory_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_llm_call_logs")),
        sa.UniqueConstraint("call_id", name=op.f("uq_llm_call_logs_call_id")),
    )
    op.create_index("ix_llm_call_logs_at_ns_id", "llm_call_logs", ["at_ns", "id"])
    op.create_index("ix_llm_call_logs_trajectory_id_id", "llm_call_logs", ["trajectory_id", "id"])
    op.create_table(
        "reward_judgments",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("judgment_id", sa.Text(), nullable=False),
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("group_id", sa.Text(), nullable=False),
        sa.Column("judge_model", sa.Text(), nullable=False),
        sa.Column("judge_version", sa.Text(), nullable=False),
        sa.Column("overall_score", sa.Double(), nullable=False),
        sa.Column("normalized_score", sa.Double(), nullable=True),
        sa.Column("rank", sa.Integer(), nullable=True),
        sa.Column("component_scores", JSON, nullable=False),
        sa.Column("reasoning", sa.Text(), nullable=True),
        sa.Column("strengths", JSON, nullable=False),
        sa.Column("weaknesses", JSON, nullable=False),
        sa.Column("criteria", JSON, nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "overall_score >= 0 and overall_score <= 1",
            name=op.f("ck_reward_judgments_score_in_range"),
        ),
        sa.ForeignKeyConstraint(
            ["trajectory_id"],
            ["trajectories.trajectory_id"],
            name=op.f("fk_reward_judgments_trajectory_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reward_judgments")),
        sa.UniqueConstraint("judgment_id", name=op.f("uq_reward_judgments_judgment_id")),
    )
    op.create_index("ix_reward_judgments_group_id_id", "reward_judgments", ["group_id", "id"])
    op.create_index(
        "ix_reward_judgments_trajectory_id_id", "reward_judgments", ["trajectory_id", "id"]
    )


def _members() -> None:
    """Make the list of which trajectory is in which batch."""
    op.create_table(
        "training_batch_members",
        sa.Column("batch_id", sa.Text(), nullable=False),
        sa.Column("trajectory_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"],
            ["training_batches.batch_id"],
            name=op.f("fk_training_batch_members_batch_id"),
        ),
        sa.ForeignKeyConstraint(
            ["trajectory_id"],
            ["trajectories.trajectory_id"],
            name=op.f("fk_training_batch_members_trajectory_id"),
        ),
        sa.PrimaryKeyConstraint(
            "batch_id", "trajectory_id", name=op.f("pk_training_batch_members")
        ),
    )
    op.create_index(
        "ix_training_batch_members_trajectory_id",
        "training_batch_members",
        ["trajectory_id", "outcome"],
    )


def _models() -> None:
    """Make models, where they serve, and what became of markets."""
    op.create_table(
        "trained_models",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("base_model", sa.Text(), nullable=True),
        sa.Column("batch_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("storage_path", sa.Text(), nullable=True),
        sa.Column("benchmark_score", sa.Double(), nullable=True),
        sa.Column("accuracy", sa.Double(), nullable=True),
        sa.Column("avg_reward", sa.Double(), nullable=True),
        sa.Column("eval_metrics", JSON, nullable=False),
        sa.Column("wandb_run_id", sa.Text(), nullable=True),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("deployed_ns", sa.BigInteger(), nullable=True),
        sa.Column("archived_ns", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["training_batches.batch_id"], name=op.f("fk_trained_models_batch_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trained_models")),
        sa.UniqueConstraint("model_id", name=op.f("uq_trained_models_model_id")),
    )
    op.create_index("ix_trained_models_status_id", "trained_models", ["status", "id"])
    op.create_table(
        "model_deployments",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("deployment_id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("traffic_share", sa.Double(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("health", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("deployed_ns", sa.BigInteger(), nullable=False),
        sa.Column("undeployed_ns", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "traffic_share >= 0 and traffic_share <= 1",
            name=op.f("ck_model_deployments_share_in_range"),
        ),
        sa.ForeignKeyConstraint(
            ["model_id"], ["trained_models.model_id"], name=op.f("fk_model_deployments_model_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_deployments")),
        sa.UniqueConstraint("deployment_id", name=op.f("uq_model_deployments_deployment_id")),
    )
    op.create_index("ix_model_deployments_model_id_id", "model_deployments", ["model_id", "id"])
    op.create_index("ix_model_deployments_status_id", "model_deployments", ["status", "id"])
    op.create_table(
        "market_outcomes",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("window_id", sa.Text(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=False),
        sa.Column("market", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("start_price", sa.Double(), nullable=True),
        sa.Column("end_price", sa.Double(), nullable=True),
        sa.Column("change_percent", sa.Double(), nullable=True),
        sa.Column("sentiment", sa.Double(), nullable=True),
        sa.Column("news_events", JSON, nullable=False),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Boolean(), nullable=True),
        sa.Column("final_probability", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_market_outcomes")),
        sa.UniqueConstraint(
            "window_id",
            "snapshot_id",
            "market",
            name=op.f("uq_market_outcomes_window_id_snapshot_id_market"),
        ),
    )
