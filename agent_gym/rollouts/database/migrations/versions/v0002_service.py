"""Agents of the service, and a log of events that nothing can change."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON(none_as_null=True)


REFUSAL = "events are never changed"


def upgrade() -> None:
    """Make the tables, and the triggers that keep events as they are."""
    _tables()
    if op.get_bind().dialect.name == "sqlite":
        for change in ("update", "delete"):
            op.execute(
                f"create trigger events_no_{change} before {change} on events "
                f"begin select raise(abort, '{REFUSAL}'); end"
            )
    else:
        op.execute(
            "create function refuse_change_of_events() returns trigger language plpgsql as "
            f"$$ begin raise exception '{REFUSAL}'; end $$"
        )
        op.execute(
            "create trigger events_no_change before update or delete or truncate on events "
            "for each statement execute function refuse_change_of_events()"
        )


def _tables() -> None:
    """Make the tables."""
    op.create_table(
        "service_agents",
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("points", sa.BigInteger(), nullable=False),
        sa.Column("tick", sa.Integer(), nullable=False),
        sa.Column("snapshot_id", sa.Text(), nullable=True),
        sa.Column("policy_version", sa.Text(), nullable=True),
        sa.Column("state", JSON, nullable=False),
        sa.Column("created_ns", sa.BigInteger(), nullable=False),
        sa.Column("updated_ns", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("points >= 0", name=op.f("ck_service_agents_no_debt")),
        sa.PrimaryKeyConstraint("agent_id", name=op.f("pk_service_agents")),
    )
    op.create_index("ix_service_agents_status", "service_agents", ["status"])
    op.create_table(
        "events",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("data", JSON, nullable=False),
        sa.Column("at_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_kind_id", "events", ["kind", "id"])
    op.create_index("ix_events_subject_id", "events", ["subject", "id"])
