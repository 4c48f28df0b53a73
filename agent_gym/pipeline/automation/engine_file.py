"""The file in which the workflow engine keeps which steps of which job are done."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agent_gym.core.errors import StoreError

REMEDY = (
    "Put a copy of it back; or move it away: jobs that were under way are then forgotten, and what "
    "they had claimed stays claimed"
)


def check_engine_file(database: Path) -> None:
    """Raise StoreError if the file is there and is no whole database."""
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(f"file:{database.absolute()}?mode=ro", uri=True)) as opened:
            found = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.Error as error:
        found = str(error)
    if found != "ok":
        raise StoreError(
            "the record of jobs is damaged", where=str(database), found=found, remedy=REMEDY
        )
