"""The two databases of the soak, and what can go wrong with each."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from tests.rollouts.postgres import Server, end, new_server

BUSY = ("service_agents", "events", "trajectories", "registry_pointer")
PATIENCE_S = 30.0


class Sqlite:
    """The file in the workspace."""

    name = "sqlite"
    url: str | None = None

    def __init__(self, home: Path) -> None:
        self.path = home / "trajectories" / "trajectories.db"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep everybody from writing."""
        with closing(sqlite3.connect(self.path, PATIENCE_S, isolation_level=None)) as connection:
            connection.execute("begin immediate")
            yield
            connection.execute("rollback")

    def pids(self) -> list[int]:
        """There is no process."""
        return []

    def close(self) -> None:
        """There is nothing to end."""


class Postgres:
    """A server of its own, on a socket in a folder of its own."""

    name = "postgres"

    def __init__(self, home: Path) -> None:
        self._server: Server = new_server()
        self._database = self._server.new_database()
        self.url: str | None = self._server.url(self._database)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the tables that everybody writes to."""
        with psycopg.connect(self.url) as connection:
            connection.execute(f"set lock_timeout = '{PATIENCE_S:.0f}s'")
            connection.execute(f"lock table {', '.join(BUSY)} in access exclusive mode")
            yield
            connection.rollback()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Stop the server at once, as ``pg_ctl stop -m immediate`` does, and start it again."""
        self._server.stop()
        try:
            yield
        finally:
            self._server.start()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let nobody write."""
        self._set("alter system set default_transaction_read_only = on")
        try:
            yield
        finally:
            self._set("alter system reset default_transaction_read_only")

    def pids(self) -> list[int]:
        """Return the process of the server."""
        return [self._server.pid]

    def close(self) -> None:
        """End the server and remove its files."""
        end(self._server)

    def _set(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("set default_transaction_read_only = off")
            connection.execute(statement)
            connection.execute("select pg_reload_conf()")


Place = Sqlite | Postgres


def opened(name: str, home: Path) -> Place:
    """Return a database by its name."""
    return Sqlite(home) if name == Sqlite.name else Postgres(home)
