"""Which files a log is made of; links, devices and files above the cap are refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from agent_gym.core.errors import DataError
from agent_gym.evaluation.scenarios.recorded.source import STREAMS, LogNames, Stream

Found: TypeAlias = Literal["sqlite", "jsonl", "parquet"]
ENDINGS: Mapping[str, Found] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_DIRECT = "Name the file itself"


class Place(Struct, frozen=True):
    """A file of the log; ``stream`` is None where it holds several."""

    path: Path
    format: Found
    stream: Stream | None
    signature: tuple[int, int, int]


def find_places(path: Path, asked: str, names: LogNames, max_bytes: int) -> tuple[Place, ...]:
    """Return the files of a log; links, devices and files above the cap are refused."""
    if path.is_symlink():
        raise DataError("a log must not be a symbolic link", where=str(path), remedy=_DIRECT)
    if path.is_dir():
        places = _in_folder(path, asked, names)
    else:
        places = (_place(path, _format_of(path, asked), None),)
    size = sum(place.signature[1] for place in places)
    if size > max_bytes:
        raise DataError(
            "the log is larger than allowed",
            where=str(path),
            found=f"{size:,} bytes",
            expected=f"at most {max_bytes:,}",
            remedy="Cut the log, or raise max_bytes",
        )
    return places


def _in_folder(folder: Path, asked: str, names: LogNames) -> tuple[Place, ...]:
    by_name = {names.table(stream): stream for stream in STREAMS}
    places = [
        _place(path, ENDINGS[path.suffix.lower()], by_name[path.stem])
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in ENDINGS and path.stem in by_name
    ]
    places = [place for place in places if asked in {"auto", place.format}]
    if not places or len({place.stream for place in places}) < len(places):
        raise DataError(
            "the folder must hold one file for each stream that there is",
            where=str(folder),
            found=", ".join(place.path.name for place in places) or "none",
            expected=" or ".join(f"{name}.jsonl, {name}.parquet" for name in by_name),
        )
    return tuple(places)


def _place(path: Path, found: Found, stream: Stream | None) -> Place:
    facts = _facts(path)
    beside = path.with_name(path.name + "-wal")
    fresh = beside.stat().st_mtime_ns if found == "sqlite" and beside.is_file() else 0
    return Place(path, found, stream, (facts.st_mtime_ns + fresh, facts.st_size, facts.st_ino))


def _facts(path: Path) -> os.stat_result:
    try:
        facts = path.lstat()
    except OSError as error:
        raise DataError(
            "the log cannot be opened", where=str(path), found=error.strerror
        ) from error
    if not stat.S_ISREG(facts.st_mode):
        raise DataError("a log must be a plain file", where=str(path), remedy=_DIRECT)
    return facts


def _format_of(path: Path, asked: str) -> Found:
    _facts(path)
    with path.open("rb") as file:
        head = file.read(16)
    found: Found = "jsonl"
    if head == b"SQLite format 3\0":
        found = "sqlite"
    elif head[:4] == b"PAR1":
        found = "parquet"
    if asked not in {"auto", found}:
        raise DataError(
            "the log is of another format", where=str(path), found=found, expected=asked
        )
    return found
