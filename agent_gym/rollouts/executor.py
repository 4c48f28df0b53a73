"""Running many jobs on the cores of one machine.

Each worker is a process of its own with one job at a time, so a crash or a hang is known to be
that job's, costs that job alone, and the next job gets a new process. (A shared pool of processes
cannot tell: when one of its processes dies, every job that waits is lost.) Rows come in the order
of the jobs and do not depend on the number of workers.
"""

from __future__ import annotations

import json
import os
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Literal, TypeAlias

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.rollouts.jobs import Job, pack
from agent_gym.rollouts.play import Failure, Status
from agent_gym.rollouts.worker import serve

LOOK_AROUND_S = 0.5
ENDING_S = 0.1  # a process that ends by itself is given this long to leave its exit code

Progress: TypeAlias = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of all jobs, in order; partial if Ctrl-C came before the last one was done."""

    rows: list[dict[str, Any]]
    status: Literal["complete", "partial"]


class LocalExecutor:
    """Runs jobs in processes of this machine.

    Args:
        workers: Processes at a time.
        timeout_s: Wall time a job may take, imports on its first call included; then its process
            is killed and its row says ``timeout``.
        imports: Modules that each worker imports first, for worlds and agents that are registered
            in a module of the user's and not announced by an entry point.
        clock: Measures the time limit.
    """

    def __init__(
        self,
        workers: int,
        *,
        timeout_s: float | None = None,
        imports: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        if workers < 1:
            raise ConfigError("an executor needs at least one worker", found=workers)
        self._size = workers
        self._timeout_s = timeout_s
        self._imports = imports
        self._clock = clock or SystemClock()

    def run(self, jobs: Sequence[Job], progress: Progress | None = None) -> Batch:
        """Do all jobs and return a row for each, whatever happens to it.

        On Ctrl-C the workers are killed and the batch is partial: what was done is kept, a job
        that was under way is ``interrupted``, the others are ``cancelled``.
        """
        board = _Board(jobs, progress)
        workers = [_Worker() for _ in range(min(self._size, len(jobs)))]
        try:
            while board.done < len(jobs):
                for worker in workers:
                    self._employ(worker, board)
                self._listen(workers, board)
        except KeyboardInterrupt:
            for worker in workers:
                if worker.job is not None:
                    board.lose(worker.job, "interrupted", None)
        finally:
            for worker in workers:
                worker.kill()
        return board.batch()

    def _employ(self, worker: _Worker, board: _Board) -> None:
        """Give a job to a worker that has none; start its process first if need be."""
        if worker.job is not None or not board.waiting:
            return
        if worker.pipe is None:
            worker.start(self._imports)
        if worker.ready:
            index = board.waiting.popleft()
            limit = self._timeout_s
            worker.deadline_s = None if limit is None else self._clock.monotonic_s() + limit
            worker.give(index, board.messages[index])

    def _listen(self, workers: list[_Worker], board: _Board) -> None:
        """Wait until a worker speaks, dies or is late, and note what that means for its job."""
        pipes = [worker.pipe for worker in workers if worker.pipe is not None]
        now = self._clock.monotonic_s()
        limits = [worker.deadline_s - now for worker in workers if worker.deadline_s is not None]
        spoken = wait(pipes, max(0.0, min([LOOK_AROUND_S, *limits])))
        now = self._clock.monotonic_s()
        for worker in workers:
            if worker.pipe is not None and (worker.pipe in spoken or not worker.is_alive()):
                self._hear(worker, board)
            elif worker.job is not None and worker.is_late(now):
                board.lose(worker.job, "timeout", _failure(f"no end within {self._timeout_s} s"))
                worker.kill()

    def _hear(self, worker: _Worker, board: _Board) -> None:
        message, index = worker.hear(), worker.job
        if message is None:
            started, ending = worker.ready, worker.kill()
            if index is not None:
                board.lose(index, "crashed", _failure(ending))
            elif not started:
                raise ConfigError(
                    "a worker process could not start",
                    found=ending,
                    remedy='Scripts need: if __name__ == "__main__"',
                )
        elif index is None:
            if not message["ready"]:
                raise ConfigError(
                    "a worker could not import its modules",
                    where=", ".join(self._imports),
                    found=message["error"]["what"],
                )
            worker.ready = True
        else:
            worker.job = worker.deadline_s = None
            if "row" in message:
                board.note(index, message["row"])
            else:
                board.lose(index, message["status"], message["error"])


class _Board:
    """What is to be done and what has been done."""

    def __init__(self, jobs: Sequence[Job], progress: Progress | None) -> None:
        self._jobs = list(jobs)
        self._progress = progress
        self.messages = [to_json(pack(job)).encode() for job in self._jobs]
        self.waiting = deque(range(len(self._jobs)))
        self._rows: dict[int, dict[str, Any]] = {}

    @property
    def done(self) -> int:
        return len(self._rows)

    def note(self, index: int, row: dict[str, Any]) -> None:
        self._rows[index] = row
        if self._progress is not None:
            self._progress(self.done, len(self._jobs), row)

    def lose(self, index: int, status: Status, failure: Failure | None) -> None:
        self.note(index, self._jobs[index].lost(status, failure))

    def batch(self) -> Batch:
        whole = self.done == len(self._jobs) and all(
            row.get("status") != "interrupted" for row in self._rows.values()
        )
        rows = [
            self._rows[index] if index in self._rows else job.lost("cancelled", None)
            for index, job in enumerate(self._jobs)
        ]
        return Batch(rows, "complete" if whole else "partial")


@dataclass(slots=True)
class _Worker:
    """One process and what it is doing."""

    pipe: Connection[bytes, bytes] | None = None
    ready: bool = False
    job: int | None = None
    deadline_s: float | None = None
    _process: Any = field(default=None, repr=False)

    def start(self, imports: tuple[str, ...]) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, imports), daemon=True)
        self.pipe, self.ready, self.job, self.deadline_s = ours, False, None, None
        self._process.start()
        theirs.close()

    def give(self, index: int, message: bytes) -> None:
        self.job = index
        try:
            if self.pipe is not None:
                self.pipe.send_bytes(message)
        except OSError:  # it died between two jobs; the next look at it will say so
            return

    def hear(self) -> Any:
        """Return the next message, or None if the process is dead."""
        try:
            if self.pipe is None or not self.pipe.poll():  # a child of its may keep the pipe open
                return None
            return json.loads(self.pipe.recv_bytes())
        except (EOFError, OSError):
            return None

    def is_alive(self) -> bool:
        return bool(self._process.is_alive())

    def is_late(self, now_s: float) -> bool:
        return self.deadline_s is not None and now_s >= self.deadline_s

    def kill(self) -> str:
        """End the process with all it has started, and say how it ended."""
        if self.pipe is None:
            return "not started"
        if self.ready:  # so it leads a group of its own, which may outlive it
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.join(ENDING_S)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self.pipe.close()
        self._process.close()
        self.pipe = self._process = self.job = self.deadline_s = None
        self.ready = False
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _failure(what: str) -> Failure:
    return {"error": "ProcessLost", "what": what, "raised_at": None}
