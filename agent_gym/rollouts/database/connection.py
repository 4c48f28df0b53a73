"""How the store reaches its database: SQLite in a file, or PostgreSQL by URL.

A transaction is whole or nothing. A database that cannot be reached, is locked for too long or may
not be written to raises DatabaseDown, so that whoever has something to keep can keep it elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from agent_gym.core.errors import ConfigError, StoreError

BUSY_S = 20
CONNECT_S = 5
SLOW_S = 60
POOL, MORE_AT_PEAK = 8, 24
WRITES = "writes"
TURNED_AWAY = ("25006", "42501")  # read-only for now, or no right to write
KEPT_ALIVE = {  # a host that vanished is noticed in half a minute, not in two hours
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
LIMITS = text(
    "select set_config('lock_timeout', :lock, true), "
    "set_config('statement_timeout', :statement, true)"
)
REACH = "See that it runs and that you may write to it; recordings wait in the outbox meanwhile"
DAMAGED = ("not a database", "malformed")  # as SQLite says it
MEND = "The file is damaged: put a copy of it back, or move it away to begin a new one"


class DatabaseDown(StoreError):
    """The database cannot be reached or written to at the moment."""


class Database:
    """One database and the way to work in it.

    Args:
        url: ``sqlite:///path`` or ``postgresql://user@host/name``.
        prepare: Called once with the engine, before anything else is done there.
    """

    def __init__(self, url: str, prepare: Callable[[Engine], None]) -> None:
        self.url = database_url(url)
        self._prepare = prepare
        self._prepared = False
        self.engine = _engine(self.url)

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        return self.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.url.get_backend_name() == "sqlite"

    def prepare(self) -> None:
        """Bring the schema up to date, once."""
        if not self._prepared:
            with plain_errors(self.name):
                self._prepare(self.engine)
            self._prepared = True

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session that sees one state of the database."""
        self.prepare()
        with (
            plain_errors(self.name),
            self.engine.connect() as connection,
            connection.begin(),
            Session(connection, expire_on_commit=False) as session,
        ):
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Yield a connection that sees the same state until the end, whatever others write."""
        self.prepare()
        with plain_errors(self.name), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection = connection.execution_options(
                    isolation_level="REPEATABLE READ", postgresql_readonly=True
                )
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self, *, limited: bool = True) -> Iterator[Connection]:
        """Yield a connection inside a transaction that is kept only if the block ends well.

        Args:
            limited: Give up on a lock or a statement that takes far too long.
        """
        self.prepare()
        with (
            plain_errors(self.name),
            self.engine.connect() as connection,
            connection.execution_options(**{WRITES: True}).begin(),
        ):
            if limited:
                self._limit(connection)
            yield connection

    def _limit(self, connection: Connection) -> None:
        """Do not wait for ever in PostgreSQL; SQLite has a limit of its own for locks."""
        if not self.is_sqlite:
            connection.execute(LIMITS, {"lock": f"{BUSY_S}s", "statement": f"{SLOW_S}s"})

    def hold(self, connection: Connection, lock: int) -> None:
        """Wait until nobody else is in the same section; lasts until the transaction ends.

        SQLite lets in one writer at a time anyway. What is done in a section may take its time.
        """
        if not self.is_sqlite:
            connection.execute(LIMITS, {"lock": "0", "statement": "0"})
            connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": lock})

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()


@contextmanager
def plain_errors(name: str, remedy: str = REACH) -> Iterator[None]:
    """Turn what SQLAlchemy raises into errors of ours.

    Args:
        name: Of the database, as people know it.
        remedy: What to do while it cannot be used.
    """
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise DatabaseDown(
            "the database cannot be used now", where=name, found=_said(error), remedy=remedy
        ) from error
    except SQLAlchemyError as error:
        if isinstance(error, DBAPIError) and _is_passing(error):
            raise DatabaseDown(
                "the database went away or takes no changes",
                where=name,
                found=_said(error),
                remedy=remedy,
            ) from error
        said = _said(error)
        mend = MEND if any(word in said for word in DAMAGED) else None
        raise StoreError("the database refused", where=name, found=said, remedy=mend) from error


def database_url(url: str) -> URL:
    """Return a URL that names a driver we have, or say what is wrong with it.

    Example:
        >>> database_url("postgresql://gym@localhost/gym").drivername
        'postgresql+psycopg'
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigError(  # the text is not shown: it may hold a password
            "this is no database URL",
            expected="sqlite:///FILE or postgresql://USER@HOST/NAME",
        ) from error
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise ConfigError(
            "the store needs SQLite in a file, or PostgreSQL",
            found=parsed.render_as_string(hide_password=True),
            expected="sqlite:///FILE or postgresql://USER@HOST/NAME",
        )
    return parsed


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = create_engine(
            url,
            pool_size=POOL + MORE_AT_PEAK,
            connect_args={"timeout": BUSY_S, "isolation_level": None},
            json_serializer=_to_json,
        )
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    return create_engine(
        url,
        pool_pre_ping=True,
        pool_size=POOL,
        max_overflow=MORE_AT_PEAK,
        pool_timeout=BUSY_S,
        connect_args={"connect_timeout": CONNECT_S, "application_name": "agent-gym", **KEPT_ALIVE},
        json_serializer=_to_json,
    )


def _is_passing(error: DBAPIError) -> bool:
    """Say whether the same may well be taken later."""
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in TURNED_AWAY


def _set_up_sqlite(raw: Any, _record: Any) -> None:
    cursor = raw.cursor()
    for pragma in ("journal_mode = wal", "synchronous = full", "foreign_keys = on"):
        cursor.execute(f"pragma {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    """Begin as a writer at once: one that reads first and then writes could be turned away."""
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _to_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, sort_keys=True)


def _said(error: SQLAlchemyError | PoolTimeout) -> str:
    """Return what the driver said, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return " ".join(str(cause).split())
