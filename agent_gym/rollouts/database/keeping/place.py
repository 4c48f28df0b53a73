"""Where a store lies: opened as it is, and held while its files must not go."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.files import atomic_path
from agent_gym.rollouts.database.connection import Database
from agent_gym.rollouts.database.store import DATABASE, TrajectoryStore

LOCK = "keeping.lock"
BLOCK = 1 << 20

Watch: TypeAlias = Callable[[str, int, int], None]
"""Told what is done, how much of it, and of how much."""


def unwatched(_what: str, _done: int, _total: int) -> None:
    """Tell nobody."""


class Steps:
    """Counts one piece of work and tells how far it is."""

    def __init__(self, watch: Watch, what: str, total: int) -> None:
        self._watch, self._what, self._total = watch, what, total
        self._done = 0
        watch(what, 0, total)

    def __call__(self, n: int = 1) -> None:
        self._done += n
        self._watch(self._what, self._done, self._total)


def as_it_is(
    url: str | None, folder: Path, clock: Clock | None = None, *, new: bool = False
) -> TrajectoryStore:
    """Return a store whose schema is left as it is, older or not there at all.

    Args:
        url: Of the database; that in the folder if it is not given.
        folder: Where steps and waiting recordings lie.
        clock: Tells the time.
        new: There need not be anything yet; the folder is made.
    """
    place = folder.absolute()
    database = Database(url or f"sqlite:///{place / DATABASE}", lambda _engine: None)
    path = Path(str(database.url.database)) if database.is_sqlite else None
    if new:
        for wanted in (place, *([] if path is None else [path.parent])):
            wanted.mkdir(parents=True, exist_ok=True)
    elif path is not None and not path.is_file():
        raise StoreError(
            "there is no store here",
            where=str(path),
            remedy="Name its folder with --folder, or its database with --database",
        )
    return TrajectoryStore(database, place, clock or SystemClock())


@contextmanager
def files_held(folder: Path, *, alone: bool) -> Iterator[None]:
    """Keep step files from going while they are copied; who removes them must be alone."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise StoreError(
            "step files are being copied or removed by somebody else",
            where=str(folder),
            remedy="Try again when it has ended",
        ) from error
    finally:
        os.close(handle)


def copy_checked(source: Path, target: Path, wanted: str) -> int:
    """Copy a file and return its size; it must have the hash that is said."""
    found, size = sha256(), 0
    with atomic_path(target) as temporary, source.open("rb") as given, temporary.open("wb") as made:
        while part := given.read(BLOCK):
            found.update(part)
            size += made.write(part)
        if found.hexdigest() != wanted:
            raise DataError(
                "a file is not what was written", where=str(source), expected=f"sha256 {wanted}"
            )
    return size


def hash_of(path: Path) -> str:
    """Return the hash of a file's bytes."""
    found = sha256()
    with path.open("rb") as given:
        while part := given.read(BLOCK):
            found.update(part)
    return found.hexdigest()
