"""One run at a time: a lock of the system's, which ends with the process that holds it.

What is written into the file is for people. A file that a killed run has left behind locks nothing,
so nothing has to be guessed about processes that may be dead, and the file is never removed:
removing it would let two runs hold the locks of two files of the same name.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_gym.core.clock import Clock
from agent_gym.core.errors import AgentGymError, StoreError
from agent_gym.core.files import to_json
from agent_gym.pipeline.nightly.times import iso

EXIT_LOCKED = 5


class LockHeld(AgentGymError):
    """Another run is under way in the same workspace."""


@contextmanager
def one_run(path: Path, clock: Clock, command: str) -> Iterator[None]:
    """Hold the lock of a workspace, or raise LockHeld at once."""
    handle = _locked(path)
    said = {"pid": os.getpid(), "since": iso(clock.now_ns()), "command": command}
    try:
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, (to_json(said) + "\n").encode(), 0)
        except OSError as error:
            raise _no_lock(path, error) from error
        yield
    finally:
        os.close(handle)


def _locked(path: Path) -> int:
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _no_lock(path, error) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise LockHeld(
                "another run holds the lock",
                where=str(path),
                found=_holder(path),
                remedy="Wait until it has ended",
            ) from error
        except OSError as error:
            os.close(handle)
            raise _no_lock(path, error) from error
        if _same_file(path, handle):
            return handle
        os.close(handle)  # somebody has removed the file in between: lock the one that is there


def _same_file(path: Path, handle: int) -> bool:
    try:
        found, held = path.stat(), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)


def _holder(path: Path) -> str:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return f"process {said['pid']} since {said['since']}: {said['command']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has only just begun to write
        return "a run that has just begun"


def _no_lock(path: Path, error: OSError) -> StoreError:
    return StoreError(
        "a run cannot be locked here",
        where=str(path),
        found=error.strerror,
        remedy="Choose a workspace on a local disk that has room, with AGENT_GYM_HOME",
    )
