"""Bringing a database up to date: made, migrated with a backup, or refused."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.core.files import atomic_path
from agent_gym.rollouts.database import migrations
from agent_gym.rollouts.database.base import Base
from agent_gym.rollouts.database.connection import WRITES, DatabaseDown

VERSION_TABLE = "store_version"
MIGRATION_LOCK = 7_205_001
LOCK_WAIT_S = 60.0


def prepare(engine: Engine) -> None:
    """Make the tables, or bring older ones up to date; a newer schema is refused.

    A file of SQLite is copied beside itself before it is changed. PostgreSQL takes one version at a
    time, each whole or not at all, and builds indexes while others go on writing.
    """
    if not _is_current(engine):
        with _alone(engine):
            if not _is_current(engine):  # somebody else may have done it meanwhile
                _migrate(engine, "head")


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The version of a database, what this code works with, and the versions in between."""

    found: str | None
    wanted: str
    pending: tuple[str, ...]


def state_of(engine: Engine) -> SchemaState:
    """Return how far a database is; a newer or foreign one is refused."""
    _is_current(engine)
    with engine.connect() as connection:
        found = version_of(connection)
    return SchemaState(found, head(), _between(found, "head"))


def build(connection: Connection, target: str) -> None:
    """Make the tables of a version, or bring older ones to it, within a transaction of others."""
    if target not in {script.revision for script in _scripts().walk_revisions()}:
        raise StoreError(
            "this was made by a newer version",
            found=target,
            expected=f"at most {head()}",
            remedy="Update agent-gym to use it",
        )
    _run(connection, target)


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
    with engine.connect() as connection:
        older = version_of(connection)
    if engine.url.get_backend_name() == "sqlite":
        if older is not None:
            _back_up(Path(str(engine.url.database)), older)
        with engine.connect() as plain:
            connection = plain.execution_options(**{WRITES: True})
            with connection.begin():
                _run(connection, target)
        return
    for revision in _between(older, target):
        with engine.connect() as plain:
            if getattr(_scripts().get_revision(revision).module, "ONLINE", False):
                _run(plain.execution_options(isolation_level="AUTOCOMMIT"), revision)
            else:
                with plain.begin():
                    _run(plain, revision)


def _run(connection: Connection, target: str) -> None:
    scripts = _scripts()

    def steps(found: Any, _context: MigrationContext) -> list[Any]:
        return scripts._upgrade_revs(target, found)  # as Alembic's manual does it

    with EnvironmentContext(Config(), scripts, fn=steps) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()


def _between(found: str | None, target: str) -> tuple[str, ...]:
    """Return the versions that follow one, oldest first."""
    scripts = _scripts().iterate_revisions(target, found or "base")
    return tuple(script.revision for script in scripts)[::-1]


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
    """Let one process at a time migrate."""
    with _locked_file(engine) if engine.url.get_backend_name() == "sqlite" else _lock(engine):
        yield


@contextmanager
def _lock(engine: Engine) -> Iterator[None]:
    """Hold a lock of PostgreSQL.

    It is asked for again and again, not waited for: whoever waits within a statement holds up the
    building of an index, which waits for all statements that began before it.
    """
    clock, key = SystemClock(), {"key": MIGRATION_LOCK}
    give_up_s = clock.monotonic_s() + LOCK_WAIT_S
    with engine.connect() as plain:
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        while not connection.scalar(text("select pg_try_advisory_lock(:key)"), key):
            if clock.monotonic_s() > give_up_s:
                raise DatabaseDown(
                    "somebody else is migrating the database",
                    where=engine.url.render_as_string(hide_password=True),
                    remedy="Try again later; recordings wait in the outbox meanwhile",
                )
            clock.sleep_s(0.05)
        try:
            yield
        finally:
            connection.execute(text("select pg_advisory_unlock(:key)"), key)


@contextmanager
def _locked_file(engine: Engine) -> Iterator[None]:
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
