"""Indexes for stores of a team's size: what is counted is read from an index alone."""

from __future__ import annotations

from agent_gym.rollouts.database.migrations.online import add_index, drop_index

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

ONLINE = True
"""Runs outside a transaction on PostgreSQL; each step may be done again."""

TABLE = "trajectories"
FREE = "trainable and not used_in_training"


def upgrade() -> None:
    """Build the new indexes, then remove those that they replace."""
    add_index(
        "ix_trajectories_tally",
        TABLE,
        ("purpose", "used_in_training", "trainable", "n_steps", "judged_ns", "id"),
    )
    add_index(
        "ix_trajectories_snapshot_id_total_reward", TABLE, ("snapshot_id", "total_reward", "id")
    )
    add_index("ix_trajectories_free", TABLE, ("group_key", "purpose", "has_log_probs", "id"), FREE)
    drop_index("ix_trajectories_unused", TABLE)
    drop_index("ix_trajectories_snapshot_id_id", TABLE)
