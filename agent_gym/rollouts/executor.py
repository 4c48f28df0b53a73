"""Running many jobs on the cores of one machine.

Each worker is a process of its own with one job at a time, so a crash or a hang is known to be
that job's, costs that job alone, and the next job gets a new process. (A shared pool of processes
cannot tell: when one of its processes dies, every job that waits is lost.) Rows come in the order
of the jobs and do not depend on the number of workers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import wait
from threading import Lock
from typing import Any, Self

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import to_json
from agent_gym.rollouts.batch import (
    Answer,
    Batch,
    Ledger,
    Progress,
    check_limit,
    check_workers,
    lost,
    process_lost,
)
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
        check_workers(workers)
        check_limit("timeout_s", timeout_s)
        check_limit("start_timeout_s", start_timeout_s)
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
            ConfigError: No worker could ever start, because of the caller's modules.
        """
        check_limit("timeout_s", timeout_s)
        ledger = Ledger(jobs, progress)
        messages = [to_json(pack(job)).encode() for job in ledger.jobs]
        limit = self._timeout_s if timeout_s is None else timeout_s
        under_way = self.carry_out(Board(messages, ledger.note, limit))
        with undisturbed():
            ledger.interrupt(under_way)
            return ledger.batch()

    def carry_out(self, board: Board) -> list[int]:
        """Do what is on a board until it is empty; return what was cut short by Ctrl-C."""
        n = min(self._size, len(board.messages))
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

    def _run(self, board: Board, workers: list[Worker], *, keep: bool) -> list[int]:
        keeping = False
        try:
            while board.open:
                if keep and self._kept is None:  # it was left while another thread used it
                    return _cut_short(workers)
                for worker in workers:
                    self._employ(worker, board)
                self._listen(workers, board)
            keeping = keep
        except KeyboardInterrupt:
            return _cut_short(workers)
        finally:
            if not keeping:
                with undisturbed():
                    _kill(workers)
        return []

    def _employ(self, worker: Worker, board: Board) -> None:
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

    def _listen(self, workers: list[Worker], board: Board) -> None:
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

    def _hear(self, worker: Worker, board: Board) -> None:
        message, index = worker.hear(), worker.job
        if message is None:
            self._end_dead(worker, board)
        elif "leads" in message:
            worker.leads = True
        elif index is None:
            self._hear_start(worker, board, message)
        else:
            board.note(index, message)
            worker.job = worker.deadline_s = None

    def _hear_start(self, worker: Worker, board: Board, message: dict[str, Any]) -> None:
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

    def _end_late(self, worker: Worker, board: Board) -> None:
        index, limit = worker.job, board.timeout_s
        worker.kill()
        if index is not None:
            board.lose(index, "timeout", process_lost(f"no end within {limit} s", SLOW_JOB))
            return
        what = f"a worker was not ready within {self._start_timeout_s} s"
        self._failed_start(board, "timeout", process_lost(what, SLOW_START))

    def _end_dead(self, worker: Worker, board: Board) -> None:
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
                remedy="See that `python -c 'import agent_gym.rollouts'` works in a new process",
            )

    def _failed_start(self, board: Board, status: Status, failure: Failure) -> None:
        """Try again a few times; then every job that waits gets its row."""
        board.failed_starts += 1
        if board.failed_starts >= START_ATTEMPTS:
            while board.waiting:
                board.lose(board.waiting.popleft(), status, failure)


class Board:
    """The messages of jobs, those that wait, and whoever takes the answers.

    Args:
        messages: The jobs as they are sent.
        note: Takes the number of a job and its answer.
        timeout_s: Wall time a job may take.
    """

    def __init__(
        self,
        messages: Sequence[bytes],
        note: Callable[[int, Answer], None],
        timeout_s: float | None,
    ) -> None:
        self.messages, self.timeout_s = messages, timeout_s
        self.waiting = deque(range(len(messages)))
        self.failed_starts, self.ever_started = 0, False
        self._note, self.done = note, 0
        self._open = len(messages)

    @property
    def open(self) -> bool:
        """Return whether an answer is still to come."""
        return self.done < self._open

    def note(self, index: int, answer: Answer) -> None:
        """Hand on the answer of a job."""
        self.done += 1
        self._note(index, answer)

    def lose(self, index: int, status: Status, failure: Failure | None) -> None:
        """Hand on that a job will not answer."""
        self.note(index, lost(status, failure))

    def withdraw(self) -> None:
        """Give out no more jobs; those that nobody has begun get no answer."""
        self._open -= len(self.waiting)
        self.waiting.clear()


def _cut_short(workers: Sequence[Worker]) -> list[int]:
    with undisturbed():
        under_way = [worker.job for worker in workers if worker.job is not None]
        _kill(workers)
        return under_way


def _kill(workers: Iterable[Worker]) -> None:
    for worker in workers:
        worker.kill()


def _advice(ending: str) -> str:
    return OUT_OF_MEMORY if ending == "killed by signal 9" else CRASH
