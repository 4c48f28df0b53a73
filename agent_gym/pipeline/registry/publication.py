"""Signed artifacts as blobs: other machines with the same address find them by their hash.

Every file is a blob, the signature too; a small record named by the model hash says which blobs a
model is made of, and comes last. Nothing in it is believed: what is fetched is checked as any other
artifact is.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from agent_gym.agents.artifact import NAME
from agent_gym.core.errors import DataError
from agent_gym.core.files import write_json
from agent_gym.rollouts.blobs import BlobStore

FORMAT = "agent_gym.published/1"
RECORDS = "records"
LARGEST_RECORD_BYTES = 1 << 16
MOST_FILES = 1_000
_HASH = re.compile(r"[0-9a-f]{64}")


class Publication:
    """The artifacts that stand on a shelf of blobs."""

    def __init__(self, blobs: BlobStore) -> None:
        self.blobs = blobs

    def publish(self, place: Path, model_hash: str) -> None:
        """Send all files of an artifact, then the record that names them."""
        files = {}
        for path in sorted(place.rglob("*")):
            if path.is_file() and not path.is_symlink():
                digest = self.blobs.put_file(path)
                files[path.relative_to(place).as_posix()] = digest
                self.blobs.forget(digest)
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder, "record.json")
            write_json(record, {"format": FORMAT, "files": files})
            self.blobs.shelf.upload(record, _name(model_hash))

    def retrieve(self, model_hash: str, target: Path) -> bool:
        """Fetch an artifact into an empty folder; False if there is none of this hash."""
        files = self.record(model_hash)
        if files is None:
            return False
        for name, digest in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.blobs.fetch(digest), path)
            self.blobs.forget(digest)
        return True

    def record(self, model_hash: str) -> dict[str, str] | None:
        """Return the blob of each file of an artifact; None if it was never published.

        Raises:
            DataError: The record is no record of ours.
        """
        name = _name(model_hash)
        found = self.blobs.shelf.entry(name)
        if found is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "record.json")
            try:
                if found.n_bytes > LARGEST_RECORD_BYTES:
                    raise ValueError(f"{found.n_bytes} bytes")
                self.blobs.shelf.download(name, path)
                said = json.loads(path.read_bytes())
                return _files_of(said)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise DataError(
                    "the record of a published model is damaged",
                    where=f"{self.blobs.shelf.where}/{name}",
                    found=str(error),
                    remedy="Register the model again where it still lies",
                ) from error

    def hashes(self) -> dict[str, int]:
        """Return the model hash of each record, and when it was put there."""
        found = self.blobs.shelf.entries(RECORDS)
        return {
            Path(entry.name).stem: entry.changed_ns
            for entry in found
            if _HASH.fullmatch(Path(entry.name).stem)
        }

    def withdraw(self, model_hash: str) -> None:
        """Remove a record; its blobs go with the next sweep, if no other record names them."""
        self.blobs.shelf.remove(_name(model_hash))


def _name(model_hash: str) -> str:
    return f"{RECORDS}/{model_hash}.json"


def _files_of(said: Any) -> dict[str, str]:
    if said["format"] != FORMAT:
        raise ValueError(f"format {said['format']!r}")
    files: dict[str, str] = said["files"]
    if len(files) > MOST_FILES:
        raise ValueError(f"{len(files)} files")
    for name, digest in files.items():
        if not NAME.match(name.removeprefix("artifact/")) or not _HASH.fullmatch(digest):
            raise ValueError(f"a file {name[:80]!r}")
    return files
