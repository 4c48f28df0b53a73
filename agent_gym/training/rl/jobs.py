"""Training runs as jobs: one process a run, done ones found done, failed ones told as results."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pydantic import Field
from typing_extensions import override

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.rollouts.choice import make_executor
from agent_gym.rollouts.jobs import Job
from agent_gym.rollouts.play import Failure, Status
from agent_gym.training.rl.callbacks import Progress, Verdict
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.result import RunFolder, TrainingResult, error_text, figure_text
from agent_gym.training.rl.resuming import exact_reason, settings_differ
from agent_gym.training.rl.run_records import (
    FINISHED,
    FRESH,
    read_result,
    steps_taken,
    stored_config,
)
from agent_gym.training.rl.trainer import Trainer

Say: TypeAlias = Callable[[str], None]
SHOWN = 4


class Bars:
    """Cuts a run short whose best look so far is below the bar of the look it is at.

    Args:
        bars: One a look, in their order; None where nothing is asked.
    """

    def __init__(self, bars: Sequence[float | None]) -> None:
        self._bars = tuple(bars)

    def on_iteration(self, progress: Progress) -> Verdict:
        """Say stop if the look of this very step fell short."""
        looks = progress.evaluations
        if not looks or looks[-1][0] != progress.step or progress.step >= progress.total:
            return "go"
        return "stop" if self.cut_at([mean for _, mean in looks]) == len(looks) - 1 else "go"

    def cut_at(self, means: Sequence[float]) -> int | None:
        """Return the first look that fell short, None if none did.

        Example:
            >>> Bars((None, 10.0, 20.0)).cut_at([0.0, 12.0, 15.0])
            2
        """
        best = float("-inf")
        for index, (mean, bar) in enumerate(zip(means, self._bars, strict=False)):
            best = max(best, mean)
            if bar is not None and best < bar:
                return index
        return None


class TrainingJob(Job):
    """One seed of one training."""

    label: str
    config: TrainerConfig
    seed: int = Field(ge=0)
    folder: Path
    bars: tuple[float | None, ...] = Field(
        default=(), description="of each look; below it the run is cut short"
    )

    @override
    def run(self) -> dict[str, Any]:
        """Train, or go on, and return the result as a row."""
        return self.row("ok", self.train())

    def train(self) -> TrainingResult:
        """Do the work; a run whose state cannot be kept begins anew if it was stopped."""
        callbacks = (Bars(self.bars),) if self.bars else ()
        trainer = Trainer(self.config, self.seed, self.folder, callbacks)
        return trainer.train(resume=exact_reason(self.config) is None)

    @override
    def lost(self, status: Status, failure: Failure | None) -> dict[str, Any]:
        """Return the row of a run that failed; what it wrote of its end itself comes first."""
        with suppress(DataError):
            told = read_result(self.folder)
            if status == "error" and told is not None and told.status == "error":
                return self.row(status, told)
        ended = "interrupted" if status in ("interrupted", "cancelled") else "error"
        return self.row(status, self.failed(ended == "interrupted", dict(failure or {})))

    @override
    def writes(self) -> tuple[Path, ...]:
        """Return the folder of the run."""
        return (self.folder,)

    def failed(self, interrupted: bool, error: dict[str, Any]) -> TrainingResult:
        """Return the result of a run that could not give one itself."""
        return TrainingResult(
            status="interrupted" if interrupted else "error",
            error=error or None,
            algo=self.config.algo,
            env=self.config.env,
            seed=self.seed,
            steps=steps_taken(self.folder, self.config.steps),
            best_step=None,
            best_mean=None,
            final_mean=None,
            state_hash=None,
            config=self.config.model_dump(mode="json"),
            manifest={},
        )

    def row(self, status: Status, result: TrainingResult) -> dict[str, Any]:
        """Return a result as the row of this job."""
        return {
            "status": status,
            "label": self.label,
            "seed": self.seed,
            "result": result.model_dump(mode="json"),
        }

    def known(self) -> TrainingResult | None:
        """Return the result of a run that is done, None if it is still to do.

        Raises:
            ConfigError: The folder holds a run of other settings or of another seed.
        """
        kept = stored_config(self.folder)
        if kept is None:
            return None
        other = settings_differ(kept, self.config)
        result = read_result(self.folder)
        if result is not None and result.seed != self.seed:
            other.append(f"seed: {result.seed} there, {self.seed} here")
        if other:
            more = f"; and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
            raise ConfigError(
                "a run of other settings lies here",
                where=str(self.folder),
                found="; ".join(other[:SHOWN]) + more,
                remedy=FRESH,
            )
        return result if result is not None and result.status in FINISHED else None


def begin_anew(folders: Iterable[Path]) -> None:
    """Remove runs, readable or not; a folder that holds no run stays as it is."""
    for folder in folders:
        if RunFolder(folder).config.exists():
            shutil.rmtree(folder)


class Ran(NamedTuple):
    """The results of all jobs in their order, and whether none was cut off by Ctrl-C."""

    results: list[TrainingResult]
    complete: bool


def run_jobs(
    jobs: Sequence[TrainingJob],
    workers: int,
    say: Say | None = None,
    timeout_s: float | None = None,
) -> Ran:
    """Do what is not done yet, each run in a process of its own, and return all results.

    Args:
        jobs: The runs.
        workers: Processes at a time; no figure depends on it.
        say: Who is told of every run that has ended.
        timeout_s: Wall time that a run may take.
    """
    tell = say or (lambda _text: None)
    known = [job.known() for job in jobs]
    todo = [job for job, result in zip(jobs, known, strict=True) if result is None]
    if len(todo) < len(jobs):
        tell(f"{len(jobs) - len(todo)} of {len(jobs)} runs were done before")
    executor = make_executor(workers, timeout_s=timeout_s)
    batch = executor.run(todo, lambda done, total, row: tell(f"{done}/{total} {line(row)}"))
    fresh = iter([_kept(job, row) for job, row in zip(todo, batch.rows, strict=True)])
    results = [next(fresh) if result is None else result for result in known]
    return Ran(results, batch.status == "complete")


def _kept(job: TrainingJob, row: dict[str, Any]) -> TrainingResult:
    """Return the result of a row; that of a process that was lost is written in its stead."""
    result = TrainingResult.model_validate(row["result"])
    if row["status"] in ("crashed", "timeout", "error") and result.manifest == {}:
        write_json(RunFolder(job.folder).result, row["result"])
    return result


def line(row: dict[str, Any]) -> str:
    """Return how a run ended, in one line."""
    result = row["result"]
    name = f"{row['label']} seed {row['seed']}"
    if result["status"] in FINISHED:
        cpu = "" if result["cpu_s"] is None else f", {result['cpu_s']:.0f} cpu s"
        early = " (stopped early)" if result["status"] == "stopped_early" else ""
        mean = figure_text(result["final_mean"])
        return f"{name}: {mean} after {result['steps']:,} steps{early}{cpu}"
    return f"{name}: {row['status']}: {error_text(result['error'], result['status'])}"
