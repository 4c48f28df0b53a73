"""Finished and unfinished runs as they lie in their folders, read for whoever compares them."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.result import RunFolder, TrainingResult

FINISHED = ("done", "stopped_early")
FRESH = "Begin anew with --fresh, or use another name"
TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One seed of one arm.

    Attributes:
        seed: Its seed.
        folder: Where it lies.
        result: What it gave back; None if it has not ended yet.
        looks: Mean return of each evaluation, as (step, mean).
        final: Return of each final episode.
    """

    seed: int
    folder: Path
    result: TrainingResult | None
    looks: tuple[tuple[int, float], ...] = ()
    final: tuple[float, ...] = ()

    @property
    def status(self) -> str:
        """Return how it ended; ``missing`` if it has not."""
        return "missing" if self.result is None else self.result.status

    @property
    def finished(self) -> bool:
        """Return whether there is a figure of it."""
        return self.result is not None and self.result.status in FINISHED

    @property
    def score(self) -> float | None:
        """Return the mean over the final episodes."""
        return self.result.final_mean if self.result is not None and self.finished else None

    def first_reaching(self, threshold: float) -> tuple[int, bool] | None:
        """Return the step of the first look at or above a threshold and True.

        Without one: the step of the last look and False; None if nobody has looked.
        """
        for step, mean in self.looks:
            if mean >= threshold:
                return step, True
        return (self.looks[-1][0], False) if self.looks else None


@dataclass(frozen=True, slots=True)
class ArmRuns:
    """All seeds of one arm."""

    name: str
    overrides: dict[str, Any]
    runs: tuple[RunRecord, ...]

    @property
    def finished(self) -> tuple[RunRecord, ...]:
        """Return the runs that have a figure."""
        return tuple(run for run in self.runs if run.score is not None)

    def scores(self) -> list[float]:
        """Return the figure of each finished run."""
        return [run.score for run in self.runs if run.score is not None]


def read_run(folder: Path, seed: int) -> RunRecord:
    """Return the run of a folder; one that is not there yet is ``missing``."""
    files = RunFolder(folder)
    return RunRecord(
        seed=seed,
        folder=folder,
        result=read_result(folder),
        looks=_means(_rewards(files.evaluations)),
        final=tuple(reward for _, reward in _rewards(files.final_episodes)),
    )


def read_result(folder: Path) -> TrainingResult | None:
    """Return what a run gave back, None if it has not ended yet."""
    path = RunFolder(folder).result
    try:
        return TrainingResult.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        raise DataError(
            "the result of a run cannot be read",
            where=str(path),
            found=str(error).splitlines()[0],
            remedy="Remove the file; the run then goes on from its last checkpoint",
        ) from error


def stored_config(folder: Path) -> Any:
    """Return the settings that the run of a folder was begun with, None if there is none."""
    path = RunFolder(folder).config
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(
            "the settings of a run cannot be read",
            where=str(path),
            found=str(error),
            remedy=FRESH,
        ) from error


def completed(kept: Any) -> Any:
    """Return stored settings with the defaults of those that did not exist when they were stored.

    A new setting begins with what was done before there was one. What is no training is returned
    as it is.

    Example:
        >>> completed({"algo": "ppo"})["threads"], completed({"algo": "none"})
        (1, {'algo': 'none'})
    """
    try:
        return TrainerConfig.model_validate(kept).model_dump(mode="json")
    except (ValidationError, ConfigError):
        return kept


def seed_folders(folder: Path) -> list[tuple[int, Path]]:
    """Return the runs in a folder of one arm, by seed."""
    found = [
        (int(path.name.removeprefix("seed_")), path)
        for path in folder.glob("seed_*")
        if path.is_dir() and path.name.removeprefix("seed_").isdecimal()
    ]
    return sorted(found)


def read_arm(folder: Path, name: str | None = None, overrides: Any = None) -> ArmRuns:
    """Return all runs of a folder ``seed_0``, ``seed_1``, ...; ConfigError if it has none."""
    runs = tuple(read_run(path, seed) for seed, path in seed_folders(folder))
    if not runs:
        raise ConfigError(
            "there is no run here", where=str(folder), expected="folders seed_0, seed_1, ..."
        )
    return ArmRuns(name or folder.name, dict(overrides or {}), runs)


def steps_taken(folder: Path, total: int) -> int:
    """Return how far a run is, by the last row of its metrics; cheap enough to ask often."""
    files = RunFolder(folder)
    try:
        told = read_result(folder)
    except DataError:
        told = None
    if told is not None and told.status in FINISHED:
        return total
    try:
        with files.metrics.open("rb") as file:
            file.seek(max(0, files.metrics.stat().st_size - TAIL_BYTES))
            rows = file.read().decode(errors="replace").rpartition("\n")[0].splitlines()
        return min(total, int(rows[-1].split(",")[0])) if rows else 0
    except (OSError, ValueError):  # not begun, or only a header yet
        return 0


def _rewards(path: Path) -> list[tuple[int, float]]:
    """Return (step, reward) of each episode in a file; a run that is killed may lack the end."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [
                (int(row["step"]), float(row["reward"])) for row in _whole(csv.DictReader(file))
            ]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            "the episodes of a run cannot be read",
            where=str(path),
            found=repr(error),
            expected="columns step, seed, reward, length",
        ) from error


def _whole(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without a last one that is still being written."""
    found = list(rows)
    return found[:-1] if found and None in found[-1].values() else found


def _means(rewards: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    by_step: dict[int, list[float]] = {}
    for step, reward in rewards:
        by_step.setdefault(step, []).append(reward)
    return tuple((step, sum(each) / len(each)) for step, each in sorted(by_step.items()))
