"""The registry's own tables, in the database of the store.

Models and deployments are rows of the store's tables; here are the pointer, the rollouts with what
was seen of them, the looks at sealed sets, and the history that nobody may change.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)

from agent_gym.rollouts.database.keeping.dump import Family

METADATA = MetaData()
REFUSAL = "history is only added to"

POINTER = Table(
    "registry_pointer",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("champion", Text),
    Column("previous", Text),
    Column("rollout_id", Integer),
    Column("cooldown_until_ns", BigInteger, nullable=False),
    Column("history_length", Integer, nullable=False),
    Column("history_hash", Text, nullable=False),
)
ROLLOUTS = Table(
    "registry_rollouts",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("model", Text, nullable=False),
    Column("champion", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("percent", Float, nullable=False),
    Column("salt", Text, nullable=False),
    Column("stage_pairs", Integer, nullable=False),
    Column("monitor", JSON, nullable=False),
    Column("reason", Text),
    Column("started_ns", BigInteger, nullable=False),
    Column("ended_ns", BigInteger),
)
PAIRS = Table(
    "registry_pairs",
    METADATA,
    Column("rollout_id", Integer, primary_key=True),
    Column("episode_key", Text, primary_key=True),
    Column("champion", Float, nullable=False),
    Column("challenger", Float, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
)
LOOKS = Table(
    "registry_looks",
    METADATA,
    Column("sealed_set", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("candidate", Text, nullable=False),
    Column("base_alpha", Float, nullable=False),
    Column("alpha", Float, nullable=False),
    Column("verdict", JSON),
    Column("members", JSON, nullable=False),
    Column("at_ns", BigInteger, nullable=False),
    UniqueConstraint("sealed_set", "candidate"),
)
HISTORY = Table(
    "registry_history",
    METADATA,
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("at_ns", BigInteger, nullable=False),
    Column("event", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("previous_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
FIRST: dict[str, Any] = {
    "id": 1,
    "champion": None,
    "previous": None,
    "rollout_id": None,
    "cooldown_until_ns": 0,
    "history_length": 0,
    "history_hash": "",
}


def exist(connection: Connection) -> bool:
    """Return whether the tables are there; they are made together, so one tells."""
    return bool(inspect(connection).has_table(POINTER.name))


def remove(connection: Connection) -> None:
    """Remove the tables, if they are there; a backup that takes their place brings its own."""
    METADATA.drop_all(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(text("drop function if exists refuse_change_of_registry_history()"))


def create(connection: Connection) -> None:
    """Make the tables and the triggers that keep history as it is, within one transaction."""
    if exist(connection):
        return
    METADATA.create_all(connection)
    if connection.dialect.name == "sqlite":
        for change in ("update", "delete"):
            connection.execute(
                text(
                    f"create trigger registry_history_no_{change} before {change} on "
                    f"registry_history begin select raise(abort, '{REFUSAL}'); end"
                )
            )
    else:
        connection.execute(
            text(
                "create function refuse_change_of_registry_history() returns trigger "
                f"language plpgsql as $$ begin raise exception '{REFUSAL}'; end $$"
            )
        )
        connection.execute(
            text(
                "create trigger registry_history_no_change before update or delete or truncate on "
                "registry_history for each statement "
                "execute function refuse_change_of_registry_history()"
            )
        )
    connection.execute(POINTER.insert().values(FIRST))


FAMILY = Family(tuple(table.name for table in METADATA.sorted_tables), create, remove, first_rows=1)
"""What a backup of the store has to know of these tables."""
