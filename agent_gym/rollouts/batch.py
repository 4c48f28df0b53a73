"""What every executor takes and gives: jobs in, one row for each in their order, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias

from agent_gym.core.errors import ConfigError
from agent_gym.rollouts.jobs import Job
from agent_gym.rollouts.play import Failure, Status

Progress: TypeAlias = Callable[[int, int, dict[str, Any]], None]
Answer: TypeAlias = dict[str, Any]  # {"row": ...}, or the status and the error of a job without one


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of all jobs, in order; partial if Ctrl-C came before the last one was done."""

    rows: list[dict[str, Any]]
    status: Literal["complete", "partial"]


class Executor(Protocol):
    """Runs jobs somewhere; rows depend neither on where nor on how many at a time.

    Used in a ``with`` block it keeps its processes from run to run.
    """

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def run(
        self,
        jobs: Sequence[Job],
        progress: Progress | None = None,
        *,
        timeout_s: float | None = None,
    ) -> Batch:
        """Do all jobs and return a row for each, whatever happens to it."""


class Ledger:
    """The jobs of a run and the rows that are there; a job's row counts once."""

    def __init__(self, jobs: Sequence[Job], progress: Progress | None) -> None:
        self.jobs = list(jobs)
        self._progress = progress
        self._rows: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self.jobs)

    def __contains__(self, index: int) -> bool:
        return index in self._rows

    @property
    def done(self) -> int:
        """Return how many rows are there."""
        return len(self._rows)

    def note(self, index: int, answer: Answer) -> None:
        """Keep the row of a job, or that of its loss, and tell who wants to know."""
        if index in self._rows:
            return
        job = self.jobs[index]
        row = answer["row"] if "row" in answer else job.lost(answer["status"], answer["error"])
        self._rows[index] = row
        if self._progress is not None:
            self._progress(self.done, len(self.jobs), row)

    def interrupt(self, under_way: Iterable[int | None]) -> None:
        """Note which jobs were cut short, without telling anybody: it is time to go."""
        for index in under_way:
            if index is not None and index not in self._rows:
                self._rows[index] = self.jobs[index].lost("interrupted", None)

    def batch(self) -> Batch:
        """Return what there is; what was never begun is cancelled."""
        whole = self.done == len(self.jobs) and all(
            row.get("status") != "interrupted" for row in self._rows.values()
        )
        rows = [
            self._rows[index] if index in self._rows else job.lost("cancelled", None)
            for index, job in enumerate(self.jobs)
        ]
        return Batch(rows, "complete" if whole else "partial")


def lost(status: Status, failure: Failure | None) -> Answer:
    """Return the answer of a job that could not give one itself."""
    return {"status": status, "error": failure}


def process_lost(what: str, remedy: str) -> Failure:
    """Return the failure of a job whose process is gone."""
    return {"error": "ProcessLost", "what": what, "raised_at": None, "remedy": remedy}


def check_workers(workers: int) -> None:
    """Raise ConfigError unless somebody is there to work."""
    if workers < 1:
        raise ConfigError("an executor needs at least one worker", found=workers)


def check_limit(name: str, limit: float | None) -> None:
    """Raise ConfigError unless a time limit is one."""
    if limit is not None and not limit > 0:
        raise ConfigError("a time limit is more than 0 s", where=name, found=limit)
