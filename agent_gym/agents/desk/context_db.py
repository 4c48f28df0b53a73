"""The desk's memory on disk: one SQLite file, written as things become known."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_gym.agents.desk.context_ring import fingerprint
from agent_gym.core.errors import StoreError

DB_VERSION = 2  # 2: features of signals; a file of version 1 merely has none
APPLICATION_ID = 0x4147_4458  # "AGDX": tells our file from any other SQLite file
_SCHEMA = (
    "CREATE TABLE records (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, known_at REAL NOT NULL, "
    "id TEXT NOT NULL, body BLOB NOT NULL, mark BLOB NOT NULL)",
    "CREATE INDEX records_known ON records (kind, known_at, seq)",
    "CREATE INDEX records_id ON records (id, known_at) WHERE kind = 'signal'",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {DB_VERSION}",
)
_REMEDY = "Move the file away (a new one is made) or bring it back from a backup"


class ContextDb:
    """Rows of kind, time known, id, JSON and its mark; nothing is ever changed or removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        try:
            self._prepare()
        except StoreError:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        with self._errors():
            application = self._pragma("application_id")
            version = self._pragma("user_version")
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise StoreError(
                "this is not a memory of the desk",
                where=str(self.path),
                found=f"application id {application}",
                expected=APPLICATION_ID,
                remedy="Name another file",
            )
        if version > DB_VERSION:
            raise StoreError(
                "the desk's memory was written by a newer version",
                where=str(self.path),
                found=f"schema {version}",
                expected=f"schema {DB_VERSION}",
                remedy="Use the newer version of agent-gym, or name another file",
            )
        with self._errors():
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            if not tables:
                self._create()
            elif version < DB_VERSION:  # the tables are the same; older programs must now refuse
                self._connection.execute(f"PRAGMA user_version = {DB_VERSION}")

    def _create(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in _SCHEMA:
            self._connection.execute(statement)
        self._connection.execute("COMMIT")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def append(self, kind: str, known_at: float, record_id: str, body: bytes) -> None:
        """Write one record; when this returns, a killed process does not lose it."""
        with self._errors():
            self._connection.execute(
                "INSERT INTO records (kind, known_at, id, body, mark) VALUES (?, ?, ?, ?, ?)",
                (kind, known_at, record_id, body, fingerprint(kind, known_at, body)),
            )

    def latest(self, kind: str, n: int, until: float | None = None) -> list[tuple[float, bytes]]:
        """Return the last ``n`` records of a kind that were known by ``until``, oldest first.

        Each is compared with its mark, so that a flipped bit is told and not believed.
        """
        bound = float("inf") if until is None else until
        with self._errors():
            rows = self._connection.execute(
                "SELECT seq, known_at, body, mark FROM records WHERE kind = ? AND known_at <= ? "
                "ORDER BY known_at DESC, seq DESC LIMIT ?",
                (kind, bound, n),
            ).fetchall()
        for seq, known_at, body, mark in rows:
            if not isinstance(body, bytes) or fingerprint(kind, known_at, body) != mark:
                raise self.damaged(kind, f"record {seq} does not match its mark")
        return [(known_at, body) for _, known_at, body, _ in reversed(rows)]

    def first_known(self, signal_id: str) -> float | None:
        """Return when a signal id became known first, None if it never did."""
        with self._errors():
            (known_at,) = self._connection.execute(
                # Without the hint SQLite walks all signals by time to find the earliest.
                "SELECT min(known_at) FROM records INDEXED BY records_id "
                "WHERE kind = 'signal' AND id = ?",
                (signal_id,),
            ).fetchone()
        return None if known_at is None else float(known_at)

    def count(self, kind: str) -> int:
        """Return how many records of a kind there are."""
        with self._errors():
            (found,) = self._connection.execute(
                "SELECT count(*) FROM records WHERE kind = ?", (kind,)
            ).fetchone()
        return int(found)

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it."""
        with self._errors():
            self._connection.close()

    def damaged(self, kind: str, found: str) -> StoreError:
        """Return the error for a record that cannot be read back."""
        return StoreError(
            f"a {kind} in the desk's memory cannot be read",
            where=str(self.path),
            found=found,
            remedy=_REMEDY,
        )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreError(
                "the desk's memory cannot be used",
                where=str(self.path),
                found=str(error),
                remedy="See that the disk has room, the file may be written, no other desk uses it",
            ) from error
        except (sqlite3.Error, TypeError) as error:
            raise StoreError(
                "the desk's memory is damaged",
                where=str(self.path),
                found=str(error),
                remedy=_REMEDY,
            ) from error
        except OSError as error:
            raise StoreError(
                "the desk's memory cannot be opened", where=str(self.path), found=error.strerror
            ) from error
