"""Running many jobs on the cores of one machine.

Each worker is a process of its own with one job at a time, so a crash or a hang is known to be
that job's, costs that job alone, and the next job gets a new process. (A shared pool of processes
cannot tell: when one of its processes dies, every job that waits is lost.) Rows come in the order
of the jobs and do not depend on the number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from threading import Lock
from typing import Any, Literal, Self, TypeAlias

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.rollouts.hands import Worker, undisturbed
from agent_gym.rollouts.jobs import Job, pack
from agent_gym.rollouts.play import Failure, Status

LOOK_AROUND_S = 0.5
START_TIMEOUT_S = 120.0
START_ATTEMPTS = 3  # failed starts in a row, after which the jobs that wait are given up

SLOW_JOB = "Raise timeout_s, or see what the job waits for"
SLOW_START = "Raise start_timeout_s, or see what the modules do when they are imported"
FAILED_IMPORT = "See that the modules of imports can be imported in a new process"
TOO_MANY = "Use fewer workers, or end other processes"
OUT_OF_MEMORY = "If the machine ran out of memory, use fewer workers or smaller jobs"
CRASH = "Run the job alone, with job.run(), and see what ends the process"

Progress: TypeAlias = Callable[[int, int, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of all jobs, in order; partial if Ctrl-C came before the last one was done."""

    rows: list[dict[str, Any]]
    status: Literal["complete", "partial"]


class LocalExecutor:
    """Runs jobs in processes of this machine.

    Used in a ``with`` block it keeps its processes from run to run, which saves their start; else
    they end with the run.

    Args:
        workers: Processes at a time.
        timeout_s: Wall time a job may take, from when a worker gets it; the import of the job's own
            module is included. Then its process is killed and its row says ``timeout``.
        start_timeout_s: Wall time a new process may take before it is ready for a job: the start of
            Python and the modules of ``imports``.
        imports: Modules that each worker imports first, for worlds and agents that are registered
            in a module of the user's and not announced by an entry point.
        fresh: Each worker is a new Python instead of a fork of one: slower to start, but nothing
            is shared, not even the seed of hashes.
        clock: Measures the time limits.
    """

    def __init__(
        self,
        workers: int,
        *,
        timeout_s: float | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        imports: tuple[str, ...] = (),
        fresh: bool = False,
        clock: Clock | None = None,
    ) -> None:
        if workers < 1:
            raise ConfigError("an executor needs at least one worker", found=workers)
        _check_limit("timeout_s", timeout_s)
        _check_limit("start_timeout_s", start_timeout_s)
        self._size = workers
        self._timeout_s = timeout_s
        self._start_timeout_s = start_timeout_s
        self._imports, self._fresh = imports, fresh
        self._clock = clock or SystemClock()
        self._kept: list[Worker] | None = None
        self._busy = Lock()

    def __enter__(self) -> Self:
        """Keep processes from now on."""
        self._kept = []
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes that were kept; a run of another thread is cut short."""
        kept, self._kept = self._kept, None
        with self._busy, undisturbed():
            _kill(kept or [])

    def run(
        self,
        jobs: Sequence[Job],
        progress: Progress | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Batch:
        """Do all jobs and return a row for each, whatever happens to it.

        On Ctrl-C the workers are killed and the batch is partial: what was done is kept, a job
        that was under way is ``interrupted``, the others are ``cancelled``; a second Ctrl-C changes
        nothing about that.

        A process that does not start is tried again. After three failed starts in a row the jobs
        that wait are given up: their rows say why, and what was done is kept.

        Args:
            jobs: What to do.
            progress: Told after each job.
            timeout_s: Wall time a job of this run may take, if not what the executor was made with.

        Raises:
            ConfigError: No worker could ever start, because of the caller's modules or script.
        """
        _check_limit("timeout_s", timeout_s)
        board = _Board(jobs, progress, self._timeout_s if timeout_s is None else timeout_s)
        n = min(self._size, len(jobs))
        kept = self._kept  # another thread may leave the block at any moment
        if kept is None or not self._busy.acquire(blocking=False):
            return self._run(board, [Worker() for _ in range(n)], keep=False)
        try:
            kept += [Worker() for _ in range(n - len(kept))]
            for worker in kept:
                worker.bury()
            return self._run(board, kept[:n], keep=True)
        finally:
            self._busy.release()

    def _run(self, board: _Board, workers: list[Worker], *, keep: bool) -> Batch:
        keeping = False
        try:
            while board.done < len(board):
                if keep and self._kept is None:  # it was left while another thread used it
                    return _cut_short(board, workers)
                for worker in workers:
                    self._employ(worker, board)
                self._listen(workers, board)
            keeping = keep
        except KeyboardInterrupt:
            return _cut_short(board, workers)
        finally:
            if not keeping:
                with undisturbed():
                    _kill(workers)
        return board.batch()

    def _employ(self, worker: Worker, board: _Board) -> None:
        """Give a job to a worker that has none; start its process first if need be."""
        if worker.job is not None or not board.waiting:
            return
        now = self._clock.monotonic_s()
        if worker.pipe is None:
            worker.deadline_s = now + self._start_timeout_s
            problem = worker.start(self._imports, fresh=self._fresh)
            if problem is not None:
                self._failed_start(board, "crashed", process_lost(problem, TOO_MANY))
        elif worker.ready:
            index = board.waiting.popleft()
            worker.deadline_s = None if board.timeout_s is None else now + board.timeout_s
            if not worker.give(index, board.messages[index]):
                worker.kill()
                board.waiting.appendleft(index)

    def _listen(self, workers: list[Worker], board: _Board) -> None:
        """Wait until a worker speaks, dies or is late, and note what that means for its job."""
        pipes = [worker.pipe for worker in workers if worker.pipe is not None]
        now = self._clock.monotonic_s()
        limits = [worker.deadline_s - now for worker in workers if worker.deadline_s is not None]
        spoken = wait(pipes, max(0.0, min([LOOK_AROUND_S, *limits])))
        now = self._clock.monotonic_s()
        for worker in workers:
            if worker.pipe is not None and (worker.pipe in spoken or not worker.is_alive()):
                self._hear(worker, board)
            elif worker.is_late(now):
                self._end_late(worker, board)

    def _hear(self, worker: Worker, board: _Board) -> None:
        message, index = worker.hear(), worker.job
        if message is None:
            self._end_dead(worker, board)
        elif "leads" in message:
            worker.leads = True
        elif index is None:
            self._hear_start(worker, board, message)
        else:
            if "row" in message:
                board.note(index, message["row"])
            else:
                board.lose(index, message["status"], message["error"])
            worker.job = worker.deadline_s = None

    def _hear_start(self, worker: Worker, board: _Board, message: dict[str, Any]) -> None:
        """Note that a worker has imported its modules, or what was wrong with them."""
        if message["ready"]:
            worker.ready, worker.deadline_s = True, None
            board.failed_starts, board.ever_started = 0, True
            return
        worker.kill()
        if not board.ever_started and not board.done:
            raise ConfigError(
                "a worker could not import its modules",
                where=", ".join(self._imports),
                found=message["error"]["what"],
                remedy=FAILED_IMPORT,
            )
        self._failed_start(board, "error", {"remedy": FAILED_IMPORT} | message["error"])

    def _end_late(self, worker: Worker, board: _Board) -> None:
        index, limit = worker.job, board.timeout_s
        worker.kill()
        if index is not None:
            board.lose(index, "timeout", process_lost(f"no end within {limit} s", SLOW_JOB))
            return
        what = f"a worker was not ready within {self._start_timeout_s} s"
        self._failed_start(board, "timeout", process_lost(what, SLOW_START))

    def _end_dead(self, worker: Worker, board: _Board) -> None:
        index, was_ready, was_serving = worker.job, worker.ready, worker.leads
        ending = worker.kill()
        if index is not None:
            board.lose(index, "crashed", process_lost(ending, _advice(ending)))
        elif was_ready:
            return  # it died between two jobs: there will be a new one
        elif was_serving or "signal" in ending or board.ever_started or board.done:
            what = f"a worker ended before it was ready: {ending}"
            self._failed_start(board, "crashed", process_lost(what, _advice(ending)))
        else:
            raise ConfigError(
                "a worker process could not start",
                found=ending,
                remedy='Scripts need: if __name__ == "__main__"',
            )

    def _failed_start(self, board: _Board, status: Status, failure: Failure) -> None:
        """Try again a few times; then every job that waits gets its row."""
        board.failed_starts += 1
        if board.failed_starts >= START_ATTEMPTS:
            while board.waiting:
                board.lose(board.waiting.popleft(), status, failure)


class _Board:
    """What is to be done and what has been done."""

    def __init__(
        self, jobs: Sequence[Job], progress: Progress | None, timeout_s: float | None
    ) -> None:
        self._jobs = list(jobs)
        self._progress = progress
        self.timeout_s = timeout_s
        self.failed_starts = 0
        self.ever_started = False
        self.messages = [to_json(pack(job)).encode() for job in self._jobs]
        self.waiting = deque(range(len(self._jobs)))
        self._rows: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def done(self) -> int:
        return len(self._rows)

    def note(self, index: int, row: dict[str, Any]) -> None:
        self._rows[index] = row
        if self._progress is not None:
            self._progress(self.done, len(self._jobs), row)

    def lose(self, index: int, status: Status, failure: Failure | None) -> None:
        self.note(index, self._jobs[index].lost(status, failure))

    def interrupt(self, under_way: Iterable[int | None]) -> None:
        """Note which jobs were cut short, without telling anybody: it is time to go."""
        for index in under_way:
            if index is not None and index not in self._rows:
                self._rows[index] = self._jobs[index].lost("interrupted", None)

    def batch(self) -> Batch:
        whole = self.done == len(self._jobs) and all(
            row.get("status") != "interrupted" for row in self._rows.values()
        )
        rows = [
            self._rows[index] if index in self._rows else job.lost("cancelled", None)
            for index, job in enumerate(self._jobs)
        ]
        return Batch(rows, "complete" if whole else "partial")


def _cut_short(board: _Board, workers: Sequence[Worker]) -> Batch:
    with undisturbed():
        board.interrupt(worker.job for worker in workers)
        _kill(workers)
        return board.batch()


def _check_limit(name: str, limit: float | None) -> None:
    if limit is not None and not limit > 0:
        raise ConfigError("a time limit is more than 0 s", where=name, found=limit)


def _kill(workers: Iterable[Worker]) -> None:
    for worker in workers:
        worker.kill()


def process_lost(what: str, remedy: str) -> Failure:
    """Return the failure of a job whose process is gone."""
    return {"error": "ProcessLost", "what": what, "raised_at": None, "remedy": remedy}


def _advice(ending: str) -> str:
    return OUT_OF_MEMORY if ending == "killed by signal 9" else CRASH
