"""The ledger (``gym.db``): finished episodes under what they are made from, and past nights.

An episode's key is the hash of everything that decides its figures, so a row that is found is the
result of playing it again: this is how a run goes on after a kill, and why an unchanged suite takes
seconds. Only good episodes are kept; what failed is tried again. Every row carries a checksum; one
that does not fit is set aside, counted, and played again. So are the rows of a scenario of which
one goes differently when it is played again: then the hash has missed something.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agent_gym.core.errors import StoreError

SCHEMA_VERSION = 1
BUSY_S = 30.0
ASKED_AT_ONCE = 500  # keys of one query
_TABLES = """
CREATE TABLE IF NOT EXISTS nightly_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nightly_episodes (
  key TEXT PRIMARY KEY, body TEXT NOT NULL, checksum TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS nightly_runs (
  run_id TEXT PRIMARY KEY, suite_id TEXT NOT NULL, created_at TEXT NOT NULL,
  body TEXT NOT NULL, checksum TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS nightly_runs_in_time ON nightly_runs (suite_id, created_at);
CREATE INDEX IF NOT EXISTS nightly_runs_by_time ON nightly_runs (created_at, run_id);
CREATE INDEX IF NOT EXISTS nightly_runs_by_light
  ON nightly_runs (json_extract(body, '$.light'), created_at, run_id);
CREATE INDEX IF NOT EXISTS nightly_runs_by_verdict
  ON nightly_runs (json_extract(body, '$.verdict'), created_at, run_id);
CREATE TABLE IF NOT EXISTS nightly_set_aside (
  origin TEXT NOT NULL, key TEXT NOT NULL, body TEXT, checksum TEXT,
  PRIMARY KEY (origin, key, checksum));
"""
_TIDY = "Free some space; or move gym.db away: episodes are then played again, history begins anew"


class Ledger:
    """The database of a workspace; one run at a time writes to it (see lock.py).

    Use it in a ``with`` statement.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self.set_aside: list[str] = []
        with self._guarded():
            if read_only:
                uri = f"{path.absolute().as_uri()}?mode=ro"
                self._db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_TABLES)
            self._check_version()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def find(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the episodes that are done, by key."""
        asked = list(keys)
        found: dict[str, dict[str, Any]] = {}
        with self._guarded():
            for at in range(0, len(asked), ASKED_AT_ONCE):
                part = asked[at : at + ASKED_AT_ONCE]
                marks = ",".join("?" * len(part))
                rows = self._db.execute(
                    f"SELECT key, body, checksum FROM nightly_episodes WHERE key IN ({marks})", part
                ).fetchall()
                found |= self._verified("nightly_episodes", rows)
        return found

    def keep(self, episodes: Mapping[str, Mapping[str, Any]]) -> None:
        """Write finished episodes; when this returns they survive a kill."""
        rows = [(key, text, _seal(key, text)) for key, text in _texts(episodes)]
        with self._guarded(), self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO nightly_episodes VALUES (?, ?, ?)", rows)

    def retire(self, question: str) -> int:
        """Set all episodes of a question aside, marked as stale, and return how many they were."""
        at = ("stale episode", f"{question}-", len(question) + 1)
        with self._guarded(), self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO nightly_set_aside SELECT ?1, key, body, checksum "
                "FROM nightly_episodes WHERE substr(key, 1, ?3) = ?2",
                at,
            )
            removed = self._db.execute(
                "DELETE FROM nightly_episodes WHERE substr(key, 1, ?2) = ?1", at[1:]
            )
            return removed.rowcount

    def record(self, run_id: str, suite_id: str, created_at: str, body: Mapping[str, Any]) -> None:
        """Write how a run went; the same run again replaces what was said of it."""
        ((_, text),) = _texts({run_id: body})
        row = (run_id, suite_id, created_at, text, _seal(run_id, text))
        with self._guarded(), self._transaction():
            self._db.execute("INSERT OR REPLACE INTO nightly_runs VALUES (?, ?, ?, ?, ?)", row)

    def nights(self, suite_id: str, limit: int) -> list[dict[str, Any]]:
        """Return what was recorded of the last runs of a suite, oldest first."""
        with self._guarded():
            rows = self._db.execute(
                "SELECT run_id, body, checksum FROM nightly_runs WHERE suite_id = ? "
                "ORDER BY created_at DESC, run_id DESC LIMIT ?",
                (suite_id, limit),
            ).fetchall()
            found = self._verified("nightly_runs", rows)
        return [found[row[0]] for row in reversed(rows) if row[0] in found]

    def _verified(
        self, table: str, rows: Sequence[tuple[str, str, str]]
    ) -> dict[str, dict[str, Any]]:
        found = {}
        for key, body, checksum in rows:
            if isinstance(body, str) and _seal(key, body) == checksum:
                found[key] = json.loads(body)
            else:
                self._set_aside(table, key)
        return found

    def _set_aside(self, table: str, key: str) -> None:
        """Move a row that is not what was written out of the way, and remember that it was so."""
        name = "key" if table == "nightly_episodes" else "run_id"
        self.set_aside.append(f"{table} {key}")
        with self._transaction():
            self._db.execute(
                f"INSERT OR REPLACE INTO nightly_set_aside SELECT ?, {name}, body, checksum "
                f"FROM {table} WHERE {name} = ?",
                (table, key),
            )
            self._db.execute(f"DELETE FROM {table} WHERE {name} = ?", (key,))

    def _check_version(self) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO nightly_meta VALUES ('schema_version', ?)", (SCHEMA_VERSION,)
        )
        asked = "SELECT value FROM nightly_meta WHERE name = 'schema_version'"
        ((found,),) = self._db.execute(asked).fetchall()
        if int(found) > SCHEMA_VERSION:
            raise StoreError(
                "this database was written by a newer agent-gym",
                where=str(self._path),
                found=f"schema version {found}",
                expected=f"at most {SCHEMA_VERSION}",
                remedy="Upgrade agent-gym, or choose another workspace with AGENT_GYM_HOME",
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                "the ledger cannot be read or written",
                where=str(self._path),
                found=str(error),
                remedy=_TIDY,
            ) from error


def _texts(bodies: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [
        (key, json.dumps(body, sort_keys=True, allow_nan=False, ensure_ascii=False))
        for key, body in bodies.items()
    ]


def _seal(key: str, body: str) -> str:
    return blake2b(f"{key}\n{body}".encode(), digest_size=16).hexdigest()
