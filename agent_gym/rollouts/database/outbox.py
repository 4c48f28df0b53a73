"""Where recordings wait while the database is away: one file each, written whole or not at all.

A document names its step files and holds the rows that belong into the database. Its file is called
by the hash of its content, and every row has an id of its own that the database takes once, so a
document may be delivered again after any accident and still counts once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from agent_gym.core.errors import StoreError
from agent_gym.core.files import write_text
from agent_gym.rollouts.database.base import Base
from agent_gym.rollouts.database.connection import Database, DatabaseDown
from agent_gym.rollouts.database.tables import LlmCall, StepFile, Trajectory

FORMAT = "agent_gym.recording/1"
SUFFIX = ".json"
REFUSED = "refused"
PARTS: tuple[tuple[str, type[Base], str], ...] = (
    ("step_files", StepFile, "file_hash"),
    ("trajectories", Trajectory, "trajectory_id"),
    ("llm_calls", LlmCall, "call_id"),
)

Rows = list[dict[str, Any]]
Document = dict[str, Rows]


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """What became of the documents that waited.

    Attributes:
        delivered: Documents that are in the database now.
        waiting: Documents that wait on, because the database is away.
        refused: Files that are no documents of ours or were changed; set aside.
    """

    delivered: int = 0
    waiting: int = 0
    refused: tuple[str, ...] = ()


def insert(database: Database, document: Document) -> None:
    """Put all rows of a document into the database in one transaction, each row once."""
    ids = [row["trajectory_id"] for row in document["trajectories"]]
    with database.writing() as connection:
        if not _all_known(connection, ids):
            for part, model, key in PARTS:
                insert_new(connection, model, document[part], key)


def insert_new(connection: Connection, model: type[Base], rows: Rows, *key: str) -> None:
    """Insert the rows whose key is not there yet."""
    if not rows:
        return
    build = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = build(table_of(model)).on_conflict_do_nothing(index_elements=list(key))
    connection.execute(statement, rows)


def table_of(model: type[Base]) -> Table:
    """Return the table of a model."""
    table = model.__table__
    if not isinstance(table, Table):
        raise TypeError(f"{model.__name__} is no table")
    return table


class Outbox:
    """The folder of documents that wait."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, document: Document) -> Path:
        """Write a document; it is there when this returns, even if the power fails."""
        said = {"format": FORMAT, "rows": document}
        content = json.dumps(said, allow_nan=False, sort_keys=True)
        path = self.folder / f"{_digest(content)}{SUFFIX}"
        write_text(path, content)
        return path

    def waiting(self) -> tuple[Path, ...]:
        """Return the documents that wait."""
        return tuple(sorted(self.folder.glob(f"*{SUFFIX}")))

    def documents(self) -> Iterator[Document]:
        """Yield the documents that wait; one that is delivered meanwhile may be left out."""
        for path in self.waiting():
            try:
                document = read_document(path)
            except FileNotFoundError:
                continue
            if document is not None:
                yield document

    def step_files(self) -> set[str]:
        """Return the step files that waiting documents name."""
        return {row["file_hash"] for one in self.documents() for row in one.get("step_files", [])}

    def deliver(self, put: Callable[[Document], None]) -> DeliveryReport:
        """Hand every document to ``put`` and remove it once that has returned."""
        delivered, refused = 0, []
        paths = self.waiting()
        for i, path in enumerate(paths):
            try:
                document = read_document(path)
                if document is None:
                    refused.append(path.name)
                    self._set_aside(path)
                    continue
                put(document)
            except FileNotFoundError:
                continue  # somebody else has just delivered it
            except DatabaseDown:
                return DeliveryReport(delivered, len(paths) - i, tuple(refused))
            path.unlink(missing_ok=True)
            delivered += 1
        return DeliveryReport(delivered, 0, tuple(refused))

    def _set_aside(self, path: Path) -> None:
        target = self.folder / REFUSED / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)


def _all_known(connection: Connection, ids: Sequence[str]) -> bool:
    found = connection.scalars(
        select(Trajectory.trajectory_id).where(Trajectory.trajectory_id.in_(ids))
    )
    return set(found) == set(ids)


def read_document(path: Path) -> Document | None:
    """Return a document; None if the file is not what its name says."""
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
    if f"{_digest(content)}{SUFFIX}" != path.name:
        return None
    said = json.loads(content)
    if said["format"] != FORMAT:
        raise StoreError(
            "a waiting recording was made by another version",
            where=str(path),
            found=said["format"],
            expected=FORMAT,
        )
    document: Document = said["rows"]
    return document


def _digest(content: str) -> str:
    return sha256(content.encode()).hexdigest()
