"""Stops a process at the n-th thing it does to the disk, or lets that one fail; children are forks.

A point is a file opened for writing, a rename, a removal, a new folder or a sync below a folder.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

FULL = os.environ.get("AGENT_GYM_RELIABILITY") == "full"
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
REFUSED, WENT_ON = 4, 0


class Points:
    """Counts what is done below a folder; the n-th is the last, or fails for lack of space."""

    def __init__(self, root: Path, stop_at: int | None, *, kill: bool) -> None:
        self.root, self.stop_at, self.kill, self.count = str(root), stop_at, kill, 0

    def watch(self) -> None:
        plain = os.fsync

        def fsync(handle: int) -> None:
            self.meet()
            plain(handle)

        os.fsync = fsync
        sys.addaudithook(self.hear)

    def hear(self, event: str, args: tuple) -> None:
        if event == "open":
            path, _mode, flags = args
            if isinstance(path, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif event not in CHANGES or (event == "os.mkdir" and Path(args[0]).exists()):
            return
        if str(args[0]).startswith(self.root):
            self.meet(removal=event in ("os.remove", "os.rmdir"))

    def meet(self, *, removal: bool = False) -> None:
        if removal and not self.kill:
            return  # a full disk lets files go
        self.count += 1
        if self.count == self.stop_at:
            if self.kill:
                os.kill(os.getpid(), signal.SIGKILL)
            raise NO_SPACE


def stopped(work: Callable[[], None], root: Path, stop_at: int | None, *, kill: bool) -> int:
    """Do some work in a fork; return how it ended: its exit code, or minus the signal."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            points = Points(root, stop_at, kill=kill)
            points.watch()
            work()
            code = WENT_ON if stop_at is None or points.count < stop_at else 71
        except Exception:  # noqa: BLE001 - a refusal is what is asked for
            code = REFUSED
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(root: Path) -> dict[str, bytes]:
    """Return every file that is meant to be seen."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }
