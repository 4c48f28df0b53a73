"""One process at work in a folder: a lock of the system's, which ends with who holds it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_gym.core.errors import AgentGymError, StoreError

LOCK = "lock"


@contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or raise at once; a killed process holds nothing any more.

    The file stays when the lock is given back: removing it would let two hold locks of two files of
    one name.
    """
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError("cannot write here", where=str(path), found=error.strerror) from error
    try:
        _hold(handle, path)
        yield
    finally:
        os.close(handle)


def _hold(handle: int, path: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise AgentGymError(
            "another process is at work here",
            where=str(path.parent),
            remedy="Wait until it has ended, or use another name",
        ) from error
    except OSError as error:
        raise StoreError("cannot lock here", where=str(path), found=error.strerror) from error
