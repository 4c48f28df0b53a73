"""Trainings of teams as jobs: one process each, done ones found done, failed ones told."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import Field
from typing_extensions import override

from agent_gym.core.clock import Clock, SystemClock
from agent_gym.core.files import write_json
from agent_gym.rollouts.choice import make_executor
from agent_gym.rollouts.jobs import Job
from agent_gym.rollouts.play import Failure
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.records import Listener, Progress
from agent_gym.training.marl.runs import Trained, finished, stored_training
from agent_gym.training.marl.trainer import RECORD, TeamTrainer

PROGRESS = "progress.json"
EVERY_S = 1.0


class TeamJob(Job):
    """One seed of one arm."""

    arm: str
    config: TeamTrainConfig
    folder: Path
    command: tuple[str, ...] = Field(description="makes the same team again")

    @property
    def label(self) -> str:
        """Return what this is called where others are at work beside it."""
        return f"{self.arm} {self.config.world.map} seed {self.config.seed}"

    @property
    def done(self) -> bool:
        """Return whether there is a record of it."""
        return (self.folder / RECORD).is_file()

    @override
    def run(self) -> dict[str, Any]:
        """Train, or go on; the figures are in the folder."""
        listener = told_in(self.folder)
        TeamTrainer(self.config, self.folder, listener, command=self.command).train()
        (self.folder / PROGRESS).unlink(missing_ok=True)
        return {"status": "ok"}

    @override
    def writes(self) -> tuple[Path, ...]:
        """Return the folder of the training."""
        return (self.folder,)


class Ran(NamedTuple):
    """What came of each job, in their order, and whether none was cut off by Ctrl-C."""

    results: list[Trained | Failure]
    complete: bool


def run_teams(jobs: Sequence[TeamJob], workers: int) -> Ran:
    """Do what is not done yet, each training in a process of its own.

    Args:
        jobs: The trainings; all folders are looked at before anything begins.
        workers: Processes at a time; no figure depends on it.

    Raises:
        ConfigError: A folder holds a training of other settings.
    """
    known = [finished(job.config, job.folder) for job in jobs]
    todo = [job for job, found in zip(jobs, known, strict=True) if found is None]
    batch = make_executor(workers).run(todo)
    fresh = iter([_result(job, row) for job, row in zip(todo, batch.rows, strict=True)])
    results = [next(fresh) if found is None else found for found in known]
    return Ran(results, batch.status == "complete")


def _result(job: TeamJob, row: dict[str, Any]) -> Trained | Failure:
    stored = stored_training(job.folder) if row["status"] == "ok" else None
    if stored is not None:
        return stored
    failure: Failure = row.get("error") or {
        "error": str(row["status"]),
        "what": f"it was {row['status']}",
        "raised_at": None,
    }
    return failure


def told_in(folder: Path, clock: Clock | None = None) -> Listener:
    """Return a listener that leaves in a folder how far a training is, about once a second."""
    watch = clock or SystemClock()
    last_s = watch.monotonic_s() - EVERY_S
    last: dict[str, Any] = {"look": None}

    def tell(progress: Progress) -> None:
        nonlocal last_s
        if progress.look is not None:
            last["look"] = asdict(progress.look) | {"env_steps": progress.env_steps}
        now_s = watch.monotonic_s()
        if now_s - last_s >= EVERY_S:
            last_s = now_s
            write_json(folder / PROGRESS, _told(progress) | last)

    return tell


def _told(progress: Progress) -> dict[str, Any]:
    joined = {} if progress.amal is None else asdict(progress.amal)
    return {
        "env_steps": progress.env_steps,
        "total_steps": progress.total_steps,
        "train_win_rate": progress.episodes.win_rate,
        "figures": flat_figures(joined) | flat_figures(asdict(progress.figures)),
    }


def flat_figures(figures: Mapping[str, Any], inside: str = "") -> dict[str, float]:
    """Return all finite numbers by name, those of mappings behind the name of the mapping.

    Example:
        >>> flat_figures({"entropy": 1.5, "ess": {"fresh": 1.0}, "why": "x"})
        {'entropy': 1.5, 'ess fresh': 1.0}
    """
    found: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, Mapping):
            found |= flat_figures(value, f"{inside}{name} ")
        elif isinstance(value, float) and math.isfinite(value):
            found[f"{inside}{name}"] = value
    return found


def read_progress(folder: Path) -> dict[str, Any] | None:
    """Return how far a training is; None before it has begun and after it has ended."""
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((folder / PROGRESS).read_bytes())
        return found
    return None
