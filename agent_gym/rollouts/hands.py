"""The executor's side of a worker: its process, its pipe, and how it is ended."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Lock, current_thread, main_thread
from types import ModuleType
from typing import Any

from agent_gym.rollouts.worker import serve

EXECUTOR_VARIABLE = "AGENT_GYM_EXECUTOR"
ADDRESS_VARIABLE = "AGENT_GYM_ADDRESS"

AWAY = ("RAY_", EXECUTOR_VARIABLE, ADDRESS_VARIABLE)
ENDING_S = 0.1  # a process that ends by itself is given this long to leave its exit code

_STARTING = Lock()


@dataclass(slots=True)
class Worker:
    """One process and what it is doing.

    Attributes:
        pipe: The way to it; none while there is no process.
        leads: It leads a process group of its own, and is at its imports or past them.
        ready: It has imported its modules and takes jobs.
        job: The number of the job that it does.
        deadline_s: When it is too late, for its start or its job.
    """

    pipe: Connection[bytes, bytes] | None = None
    leads: bool = False
    ready: bool = False
    job: int | None = None
    deadline_s: float | None = None
    _process: Any = field(default=None, repr=False)

    def start(self, imports: tuple[str, ...], *, fresh: bool) -> str | None:
        """Start a process, or say why the system does not let us.

        It is forked from a server that has no threads, so it starts clean and in milliseconds, and
        it is told the environment, which the server knows only as it was when that began. A fresh
        one is a Python of its own, with its own hash seed, that has imported nothing. Neither
        imports the script of the caller: jobs name what they need, here as on a cluster.
        """
        context = get_context("spawn") if fresh else get_context("forkserver")
        try:
            ours, theirs = context.Pipe()
        except OSError as error:
            return f"no worker process: {error.strerror}"
        arguments = (theirs, imports, job_environment())
        process = context.Process(target=serve, args=arguments, daemon=True)
        try:
            with _script_hidden():
                process.start()
        except EOFError:
            ours.close()
            return "no worker process: the server that forks them was killed"
        except OSError as error:
            ours.close()
            return f"no worker process: {error.strerror}"
        finally:
            theirs.close()
        self.pipe, self._process = ours, process
        return None

    def give(self, index: int, message: bytes) -> bool:
        """Hand over a job, or say that there is nobody: it died between two jobs."""
        try:
            if self.pipe is not None:
                self.pipe.send_bytes(message)
        except OSError:
            return False
        self.job = index
        return True

    def hear(self) -> Any:
        """Return the next message, or None if the process is dead."""
        try:
            if self.pipe is None or not self.pipe.poll():  # a child of its may keep the pipe open
                return None
            return json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError, ValueError):  # gone, or not speaking our language any more
            return None

    def is_alive(self) -> bool:
        """Say whether its process runs."""
        return bool(self._process.is_alive())

    def bury(self) -> None:
        """Forget a process that has ended by itself, so that a new one is started."""
        if self.pipe is not None and not self.is_alive():
            self.kill()

    def is_late(self, now_s: float) -> bool:
        """Say whether it had its time."""
        return self.pipe is not None and self.deadline_s is not None and now_s >= self.deadline_s

    def kill(self) -> str:
        """End the process with all it has started, and say how it ended.

        If Ctrl-C comes in between, it can be called again.
        """
        if self.pipe is None:
            return "not started"
        if self.leads:  # a group of its own, which may outlive it
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.join(ENDING_S)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self.pipe.close()
        process = self._process
        self.pipe = self.job = self.deadline_s = self._process = None
        self.ready = self.leads = False
        process.close()
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


@contextmanager
def _script_hidden() -> Iterator[None]:
    """Show new processes a program without a script; they would import that first."""
    with _STARTING:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = script


def job_environment() -> dict[str, str]:
    """Return the environment of jobs: ours, without what leads to a cluster or its secrets.

    A job that makes an executor of its own gets one of the machine that it is on.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith(AWAY)}


@contextmanager
def undisturbed() -> Iterator[None]:
    """Finish something short before the next Ctrl-C is heard."""
    if current_thread() is not main_thread():  # Ctrl-C is never raised here
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
