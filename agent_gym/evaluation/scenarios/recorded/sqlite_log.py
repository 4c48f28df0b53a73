"""The tables of a SQLite log, opened for reading alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agent_gym.core.errors import DataError
from agent_gym.evaluation.scenarios.recorded.source import STREAMS, LogNames, Stream

BUSY_S = 2.0
STEPS, MAX_CALLS = 1_000_000, 2_000  # a view may not compute for ever


def read_tables(path: Path, names: LogNames) -> Iterator[tuple[Stream, int, dict[str, Any]]]:
    """Yield stream, number within its table and content of each row, as of one moment."""
    with _opened(path) as base:
        base.execute("BEGIN")
        for stream, table in _tables(base, names).items():
            cursor = base.execute('SELECT * FROM "' + table.replace('"', '""') + '"')
            columns = [column[0] for column in cursor.description]
            for number, values in enumerate(cursor, 1):
                yield stream, number, dict(zip(columns, values, strict=True))


def table_streams(path: Path, names: LogNames) -> tuple[Stream, ...]:
    """Return the streams that have a table, even an empty one."""
    with _opened(path) as base:
        return tuple(_tables(base, names))


def _tables(base: sqlite3.Connection, names: LogNames) -> dict[Stream, str]:
    told = base.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    known = {str(name).lower(): str(name) for (name,) in told}
    asked = {stream: names.table(stream).lower() for stream in STREAMS}
    return {stream: known[name] for stream, name in asked.items() if name in known}


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    calls = iter(range(MAX_CALLS))
    quiet, before = _is_quiet(path), path.stat()
    address = f"file:{quote(str(path.absolute()))}?mode=ro" + ("&immutable=1" if quiet else "")
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=BUSY_S)) as base:
            base.text_factory = _lenient
            base.set_progress_handler(lambda: next(calls, None) is None, STEPS)
            base.execute("PRAGMA query_only=ON")
            base.execute("PRAGMA trusted_schema=OFF")
            yield base
    except sqlite3.Error as error:
        raise DataError(
            "the SQLite log cannot be read",
            where=str(path),
            found=str(error)[:200],
            remedy="Close what holds it locked, or copy it with `sqlite3 LOG '.backup COPY'`",
        ) from error
    after = path.stat()
    if quiet and (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
        raise DataError("the SQLite log changed while it was read", where=str(path))


def _is_quiet(path: Path) -> bool:
    """Say whether a log with a write-ahead journal is in nobody's hands.

    Then it is read as a file that does not change: otherwise even a reader would leave files beside
    it, or fail where it may not.
    """
    with path.open("rb") as file:
        ahead = file.read(20)[18:20] == b"\x02\x02"
    beside = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    return ahead and not any(each.exists() for each in beside)


def _lenient(raw: bytes) -> str:
    """Return a text; bytes that are none become marks that the cell is then refused for."""
    return raw.decode(errors="surrogateescape")
