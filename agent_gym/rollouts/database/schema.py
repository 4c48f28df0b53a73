"""Bringing a database up to date: made, migrated with a backup, or refused."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path
from agent_gym.rollouts.database import migrations
from agent_gym.rollouts.database.base import Base
from agent_gym.rollouts.database.connection import WRITES

VERSION_TABLE = "store_version"
MIGRATION_LOCK = 7_205_001


def prepare(engine: Engine) -> None:
    """Make the tables, or bring older ones up to date; a newer schema is refused.

    A file of SQLite is copied beside itself before it is changed. PostgreSQL changes its schema in
    the same transaction as everything else, so a migration that fails leaves the old one.
    """
    if not _is_current(engine):
        with _alone(engine):
            if not _is_current(engine):  # somebody else may have done it meanwhile
                _migrate(engine, "head")


def version_of(connection: Connection) -> str | None:
    """Return the version of the schema; None if there is none."""
    return MigrationContext.configure(
        connection, opts={"version_table": VERSION_TABLE}
    ).get_current_revision()


def head() -> str:
    """Return the version that this code works with."""
    newest = _scripts().get_current_head()
    if newest is None:
        raise StoreError("the package was installed without its migrations")
    return newest


def _is_current(engine: Engine) -> bool:
    with engine.connect() as connection:
        found = version_of(connection)
        known = {script.revision for script in _scripts().walk_revisions()}
        if found is not None and found not in known:
            raise StoreError(
                "this database was made by a newer version",
                where=engine.url.render_as_string(hide_password=True),
                found=found,
                expected=f"at most {head()}",
                remedy="Update agent-gym to use it",
            )
        if found is None:
            _refuse_foreign(connection, engine)
        return found == head()


def _refuse_foreign(connection: Connection, engine: Engine) -> None:
    """Do not build into tables of the same names that somebody else has made."""
    ours = set(Base.metadata.tables).intersection(inspect(connection).get_table_names())
    if ours:
        raise StoreError(
            "this database has tables of the same names, but was not made by agent-gym",
            where=engine.url.render_as_string(hide_password=True),
            found=", ".join(sorted(ours)),
            remedy="Choose another database",
        )


def _migrate(engine: Engine, target: str) -> None:
    scripts = _scripts()

    def steps(found: Any, _context: MigrationContext) -> list[Any]:
        return scripts._upgrade_revs(target, found)  # as Alembic's manual does it

    with engine.connect() as connection:
        older = version_of(connection)
    if engine.url.get_backend_name() == "sqlite" and older is not None:
        _back_up(Path(str(engine.url.database)), older)
    with engine.connect() as plain:
        connection = plain.execution_options(**{WRITES: True})
        with connection.begin():
            if engine.url.get_backend_name() != "sqlite":
                connection.execute(
                    text("select pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK}
                )
            with EnvironmentContext(Config(), scripts, fn=steps) as environment:
                environment.configure(connection=connection, version_table=VERSION_TABLE)
                environment.run_migrations()


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(Path(migrations.__file__).parent))


def _back_up(path: Path, version: str) -> None:
    """Copy the database beside itself; SQLite does it page by page, under its own locks."""
    with (
        atomic_path(path.with_name(f"{path.name}.before-{version}")) as copy,
        closing(sqlite3.connect(path)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Let one process at a time migrate a file; PostgreSQL has a lock of its own for that."""
    if engine.url.get_backend_name() != "sqlite":
        yield
        return
    path = Path(str(engine.url.database))
    try:
        handle = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError("cannot write here", where=str(path), found=error.strerror) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
