"""What travels to the nodes: messages, large fields that jobs share, and files that they name.

A field of at least ``LARGE`` bytes that several jobs of a run have in common is sent once, under
the hash of its content. Files are listed with their hashes; a node that sees the same bytes at the
same place (a shared disk) needs nothing, another one asks for what it lacks.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

from agent_gym.core.clock import Clock
from agent_gym.core.errors import DataError
from agent_gym.core.files import write_text
from agent_gym.rollouts.jobs import Job, pack
from agent_gym.rollouts.spool import file_hash

LARGE = 16_384


class Parcels:
    """The jobs of a run as messages; large common fields are taken out of them.

    Attributes:
        shared: The text of each field that was taken out, by its hash.
        modules: Where the classes of the jobs are defined.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        packed = [pack(job) for job in jobs]
        large = [_large_fields(each) for each in packed]
        counts = Counter(key for fields in large for key in fields.values())
        self.modules = {each["module"] for each in packed}
        self.shared: dict[str, str] = {}
        self._heads: list[bytes] = []
        self._missing: list[dict[str, str]] = []
        for each, fields in zip(packed, large, strict=True):
            common = {name: key for name, key in fields.items() if counts[key] > 1}
            for name, key in common.items():
                text = _text(each["fields"].pop(name))
                self.shared.setdefault(key, text)
            self._heads.append(_text(each).encode())
            self._missing.append(common)

    def message(self, index: int) -> bytes:
        """Return a job without what it shares."""
        return self._heads[index]

    def missing(self, index: int) -> dict[str, str]:
        """Return the hashes of the fields that were taken out, by name."""
        return self._missing[index]


def whole(message: bytes, fields: dict[str, Any]) -> bytes:
    """Return a message with the fields that were taken out of it."""
    if not fields:
        return message
    packed = json.loads(message)
    packed["fields"] |= fields
    return _text(packed).encode()


def files_of(jobs: Sequence[Job]) -> dict[str, dict[str, str]]:
    """Return the files that jobs read: by the path as they name it, the hash of each file.

    A folder is all files in it, by their path inside; a file is itself, under an empty path.

    Raises:
        DataError: A file is not there, or cannot be read.
    """
    named = {str(path): path for job in jobs for path in job.reads()}
    found: dict[str, dict[str, str]] = {}
    for name, path in sorted(named.items()):
        try:
            found[name] = hashes_of(path)
        except OSError as error:
            raise DataError(
                "a job reads a file that is not there",
                where=name,
                found=error.strerror,
                remedy="Look for a typo in the path",
            ) from error
    return found


def hashes_of(path: Path) -> dict[str, str]:
    """Return the hashes of the files at a path; OSError if there are none."""
    if not path.is_dir():
        return {"": file_hash(path)}
    inside = sorted(each for each in path.rglob("*") if each.is_file())
    return {each.relative_to(path).as_posix(): file_hash(each) for each in inside}


@contextmanager
def tokens(jobs: Sequence[Job], clock: Clock) -> Iterator[list[str]]:
    """Leave a file in each folder that jobs write to; whoever sees it shares the folder."""
    folders = {_existing(path.absolute()) for job in jobs for path in job.writes()}
    name = f".agent-gym-shared-{os.getpid()}-{clock.now_ns()}"
    made: list[Path] = []
    try:
        for folder in sorted(folders):
            write_text(folder / name, "")
            made.append(folder / name)
        yield [str(path) for path in made]
    finally:
        for path in made:
            path.unlink(missing_ok=True)


def _existing(path: Path) -> Path:
    return next(each for each in (path, *path.parents) if each.is_dir())


def _large_fields(packed: dict[str, Any]) -> dict[str, str]:
    """Return the hashes of fields that are large, by name."""
    found = {}
    for name, value in packed["fields"].items():
        if isinstance(value, list | dict | str) and len(text := _text(value)) >= LARGE:
            found[name] = blake2b(text.encode(), digest_size=16).hexdigest()
    return found


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)
