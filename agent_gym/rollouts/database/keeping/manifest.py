"""What a backup says of itself: every file with its hash, and a hash of all that is said."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError

from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json, write_json
from agent_gym.core.registry import Config

FILE = "manifest.json"
FORMAT = "agent_gym.store_backup/1"
TABLES, STEPS, OUTBOX = "tables", "steps", "outbox"
LARGEST_MANIFEST = 1 << 30


class TableEntry(Config):
    """A table: how many rows it has, and the hash of their lines."""

    rows: int = Field(ge=0)
    sha256: str


class BackupManifest(Config):
    """The whole backup.

    Attributes:
        format: What this is.
        created_ns: When the rows were seen.
        source: Which kind of database they were in.
        schema_version: Of its tables.
        tables: By name.
        families: Which tables belong to whom, besides the store's own.
        steps: Bytes of each step file, by its hash.
        lost: Step files that rows name and that could not be copied: gone, or changed.
        outbox: Hash of each recording that waited, by name.
    """

    format: str = FORMAT
    created_ns: int
    source: str
    schema_version: str
    tables: dict[str, TableEntry]
    families: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    steps: dict[str, int] = Field(default_factory=dict)
    lost: dict[str, str] = Field(default_factory=dict)
    outbox: dict[str, str] = Field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables.values())

    @property
    def n_bytes(self) -> int:
        """Bytes of all step files."""
        return sum(self.steps.values())

    def summary(self) -> dict[str, Any]:
        """Return the manifest without the long lists."""
        said = self.model_dump(mode="json", exclude={"steps", "outbox", "families"})
        return said | {
            "rows": self.n_rows,
            "step_files": len(self.steps),
            "step_bytes": self.n_bytes,
            "waiting_recordings": len(self.outbox),
        }

    def write(self, folder: Path) -> None:
        """Put it in place, last of all: a folder without it is no backup."""
        said = self.model_dump(mode="json")
        write_json(folder / FILE, {"sha256": _hash(said), "backup": said})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read what a backup says, if nobody has changed it."""
        path = folder / FILE
        try:
            if path.stat().st_size > LARGEST_MANIFEST:
                raise _bad(path, "too large")
            said = json.loads(path.read_text(encoding="utf-8"))
            told, whole = said["backup"], said["sha256"] == _hash(said["backup"])
        except FileNotFoundError as error:
            raise DataError(
                "this is no backup, or one that was cut short",
                where=str(folder),
                expected=FILE,
                remedy="Name the folder that `agent-gym db backup` wrote",
            ) from error
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise _bad(path, str(error)) from error
        if not whole:
            raise _bad(path, "changed since it was written")
        if told.get("format") != FORMAT:
            raise _bad(path, f"format {told.get('format')}")
        try:
            return cls.model_validate(told)
        except ValidationError as error:
            raise _bad(path, str(error)) from error


def _hash(said: Any) -> str:
    return sha256(to_json(said).encode()).hexdigest()


def _bad(path: Path, found: str) -> DataError:
    return DataError(
        "the list of a backup cannot be believed",
        where=str(path),
        found=found,
        remedy="Take another backup",
    )
