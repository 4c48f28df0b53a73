"""Running jobs on the nodes of a Ray cluster, with the same rows as on one machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Self

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.files import HOME_VARIABLE, home, to_json
from agent_gym.core.project import PROJECT_VARIABLE
from agent_gym.rollouts.batch import Batch, Ledger, Progress, check_limit, check_workers
from agent_gym.rollouts.cluster.code import identity
from agent_gym.rollouts.cluster.connection import connect
from agent_gym.rollouts.cluster.parcels import Parcels, files_of, tokens
from agent_gym.rollouts.cluster.post import Post, end, new_post
from agent_gym.rollouts.cluster.shift import Order, Shift
from agent_gym.rollouts.hands import undisturbed
from agent_gym.rollouts.jobs import Job

START_TIMEOUT_S = 300.0  # a node that is yet to be started takes minutes
BITS = ("OMP_", "MKL_", "OPENBLAS_", "NUMBA_NUM_", "PYTHONHASHSEED")  # variables that decide bits
OWN_OF_RAY = ("OMP_NUM_THREADS", "PYTHONHASHSEED")  # not set there if they are not set here


class RayExecutor:
    """Runs jobs on a Ray cluster; see ``docs/cluster.md`` for what a cluster needs.

    Every job runs in a process of its own on its node, as it would here. A job whose station or
    node is lost is done again elsewhere, and its row counts once; so a job may be begun twice, and
    must bear that. After three losses its row says ``crashed``.

    Args:
        workers: Stations at a time, each of one processor.
        address: ``HOST:PORT`` of the head, or ``auto``; without it a cluster is started here.
        timeout_s: Wall time a job may take, as on one machine.
        start_timeout_s: Wall time until the first station is there.
        imports: Modules that each worker imports first.
        clock: Measures the time limits.
    """

    def __init__(
        self,
        workers: int,
        *,
        address: str | None = None,
        timeout_s: float | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        imports: tuple[str, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        check_workers(workers)
        check_limit("timeout_s", timeout_s)
        check_limit("start_timeout_s", start_timeout_s)
        self._size, self._address, self._timeout_s = workers, address, timeout_s
        self._start_timeout_s, self._imports = start_timeout_s, imports
        self._clock = clock or SystemClock()
        self._kept: list[Post] | None = None
        self._session = ""
        self._busy = Lock()

    def __enter__(self) -> Self:
        """Keep stations from now on."""
        self._kept, self._session = [], self._new_session()
        return self

    def __exit__(self, *_: object) -> None:
        """End the stations that were kept; a run of another thread is cut short."""
        kept, self._kept = self._kept, None
        with self._busy, undisturbed():
            end(kept or [], tidy=True)

    def run(
        self,
        jobs: Sequence[Job],
        progress: Progress | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Batch:
        """Do all jobs and return a row for each, whatever happens to it.

        On Ctrl-C the stations are ended and the batch is partial, as on one machine.

        Args:
            jobs: What to do.
            progress: Told after each job.
            timeout_s: Wall time a job of this run may take, if not what the executor was made with.

        Raises:
            ConfigError: No station could ever start, a node has other code, or it does not see a
                folder that jobs write to.
            DataError: A file that jobs read is not there.
        """
        check_limit("timeout_s", timeout_s)
        ledger = Ledger(jobs, progress)
        parcels = Parcels(ledger.jobs)
        if not ledger.jobs:
            return ledger.batch()
        files = files_of(ledger.jobs)
        connect(self._address, self._size)
        with tokens(ledger.jobs, self._clock) as told:
            order = Order(
                parcels=parcels,
                code=identity({*self._imports, *parcels.modules}),
                files=files,
                tokens=told,
                timeout_s=self._timeout_s if timeout_s is None else timeout_s,
                start_timeout_s=self._start_timeout_s,
                most=self._size,
            )
            kept = self._kept  # another thread may leave the block at any moment
            if kept is None or not self._busy.acquire(blocking=False):
                return self._run(ledger, order, [], self._new_session(), keep=False)
            try:
                return self._run(ledger, order, kept, self._session, keep=True)
            finally:
                self._busy.release()

    def _run(
        self, ledger: Ledger, order: Order, posts: list[Post], session: str, *, keep: bool
    ) -> Batch:
        keeping, settings = False, self._settings(session)
        shift = Shift(ledger, order, posts, lambda: new_post(settings), self._clock)
        try:
            shift.work(lambda: keep and self._kept is None)
            if ledger.done == len(ledger):
                keeping = keep
                return ledger.batch()
            return _cut_short(ledger, shift)
        except KeyboardInterrupt:
            return _cut_short(ledger, shift)
        finally:
            if not keeping:
                with undisturbed():
                    end(posts, tidy=True)
                    posts.clear()

    def _new_session(self) -> str:
        return f"{os.getpid()}-{self._clock.now_ns()}"

    def _settings(self, session: str) -> str:
        """Return what a station is made with."""
        names = [name for name in os.environ if name.startswith(BITS)]
        environment: dict[str, str | None] = dict.fromkeys(OWN_OF_RAY)
        environment |= {name: os.environ.get(name) for name in (*names, PROJECT_VARIABLE)}
        return to_json(
            {
                "imports": list(self._imports),
                "start_timeout_s": self._start_timeout_s,
                "session": session,
                "folder": str(Path.cwd()),
                "paths": [str(Path(each).absolute()) for each in sys.path if each],
                "environment": environment | {HOME_VARIABLE: str(home().absolute())},
            }
        )


def _cut_short(ledger: Ledger, shift: Shift) -> Batch:
    with undisturbed():
        ledger.interrupt(shift.salvage())
        return ledger.batch()
