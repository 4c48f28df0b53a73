"""Changes that do not stop others: indexes are built while rows come in."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

INVALID = sa.text(
    "select 1 from pg_index i join pg_class c on c.oid = i.indexrelid "
    "where c.relname = :name and not i.indisvalid and pg_table_is_visible(c.oid)"
)


def add_index(name: str, table: str, columns: Sequence[str], where: str | None = None) -> None:
    """Build an index; outside a transaction PostgreSQL lets others write meanwhile.

    A build that was cut short leaves an index that is no good: it is removed and built again.
    """
    condition = None if where is None else sa.text(where)
    connection = op.get_bind()
    online = _is_online(connection)
    if online and connection.scalar(INVALID, {"name": name}):
        drop_index(name, table)
    op.create_index(
        name,
        table,
        list(columns),
        if_not_exists=True,
        sqlite_where=condition,
        postgresql_where=condition,
        postgresql_concurrently=online,
    )


def drop_index(name: str, table: str) -> None:
    """Remove an index, whoever reads."""
    op.drop_index(name, table, if_exists=True, postgresql_concurrently=_is_online(op.get_bind()))


def _is_online(connection: sa.Connection) -> bool:
    if connection.dialect.name != "postgresql":
        return False
    return connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
