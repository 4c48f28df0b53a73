"""Stored training runs as reports read them: one folder a seed, its parent folder an arm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import ValidationError

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.training.rl.config import MARKET
from agent_gym.training.rl.result import RunFolder, TrainingResult
from agent_gym.training.rl.run_records import completed

FINISHED = ("done", "stopped_early")
TRAINING_TYPES = {"step": pl.Int64, "reward": pl.Float64, "length": pl.Int64}
EPISODE_TYPES = TRAINING_TYPES | {"seed": pl.Int64}
SEED_FOLDER = "seed_"
TRIALS = "search"  # where a search keeps its trials: settings that were given up, no arms


class Run:
    """One seed of one config; tables are read when they are asked for.

    A run that is still going, or was killed, has no ``result``: it is shown and counts for nothing.
    ``config`` is what was stored; ``settings`` are the same with the defaults of what came later.
    """

    def __init__(self, path: Path) -> None:
        self.files = RunFolder(path)
        self.config = read_mapping(self.files.config)
        self.settings: dict[str, Any] = completed(self.config)
        self.result = _result(self.files.result)

    @property
    def path(self) -> Path:
        """Return the folder."""
        return self.files.path

    @property
    def seed(self) -> int | None:
        """Return the seed; one that has not finished tells it by the name of its folder."""
        if self.result is not None:
            return self.result.seed
        text = self.path.name.removeprefix(SEED_FOLDER)
        return int(text) if text.isdecimal() else None

    @property
    def finished(self) -> bool:
        """Return whether its final episodes were played."""
        result = self.result
        return result is not None and result.status in FINISHED and bool(self.rewards.size)

    @property
    def status(self) -> str:
        """Return how it stands, in words."""
        if self.result is None:
            return "unfinished"
        if self.result.status in FINISHED and not self.finished:
            return "not evaluated"
        return self.result.status.replace("_", " ")

    @cached_property
    def evaluations(self) -> pl.DataFrame:
        """Return the greedy episodes during training."""
        return read_episodes(self.files.evaluations)

    @cached_property
    def final_episodes(self) -> pl.DataFrame:
        """Return the fresh greedy episodes of the kept model."""
        return read_episodes(self.files.final_episodes)

    @cached_property
    def training_episodes(self) -> pl.DataFrame:
        """Return the episodes of training, with exploration."""
        return read_episodes(self.files.episodes, TRAINING_TYPES)

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """Return losses and the like, an iteration a row."""
        return read_table(self.files.metrics)

    @cached_property
    def rewards(self) -> FloatArray:
        """Return the returns of the final episodes."""
        return self.final_episodes["reward"].to_numpy()

    @property
    def score(self) -> float:
        """Return the mean of the final episodes, from the rows themselves."""
        return float(self.rewards.mean())

    @cached_property
    def curve(self) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the steps of its evaluations and their means."""
        means = self.evaluations.group_by("step").agg(pl.col("reward").mean()).sort("step")
        return means["step"].to_numpy(), means["reward"].to_numpy()


class Arm:
    """Several seeds of one config."""

    def __init__(self, name: str, runs: Sequence[Run]) -> None:
        self.name = name
        self.runs = tuple(sorted(runs, key=lambda run: (run.seed is None, run.seed or 0)))
        self.config, self.settings = self.runs[0].config, self.runs[0].settings
        for run in self.runs:
            if _apart_from_seed(run.settings) != _apart_from_seed(self.settings):
                raise DataError(
                    "the seeds of an arm have one config",
                    where=str(run.files.config),
                    expected=f"the config of {self.runs[0].path.name}",
                    remedy="Put runs of another config into another folder",
                )

    @property
    def finished(self) -> tuple[Run, ...]:
        """Return the runs that count."""
        return tuple(run for run in self.runs if run.finished)

    @property
    def algo(self) -> str:
        """Return the algorithm."""
        return str(self.config.get("algo", "unknown"))

    @property
    def env(self) -> str:
        """Return the environment that was in fact trained in."""
        return next((run.result.env for run in self.runs if run.result), None) or str(
            self.config.get("env", "unknown")
        )

    @property
    def is_market(self) -> bool:
        """Return whether it trained on our own market."""
        return self.config.get("env") == MARKET

    @property
    def is_lander(self) -> bool:
        """Return whether this is the lunar lander, of whichever version."""
        return self.env.startswith("LunarLander")

    @property
    def steps(self) -> int:
        """Return the steps of training that were asked for, or taken where nothing says so."""
        asked = self.config.get("steps")
        return int(asked) if asked is not None else self.steps_taken

    @property
    def steps_taken(self) -> int:
        """Return the steps that were taken: whole iterations, so a few more than were asked for."""
        return max((run.result.steps for run in self.runs if run.result), default=0)

    @property
    def scores(self) -> FloatArray:
        """Return the mean of each finished seed."""
        return np.array([run.score for run in self.finished])


def read_arms(folder: Path) -> tuple[Arm, ...]:
    """Return the arms below a folder, by name; the folder may be a single run."""
    if not folder.is_dir():
        raise DataError("there is no such folder", where=str(folder), remedy=_REMEDY)
    found: dict[Path, list[Run]] = {}
    for config in sorted(folder.rglob("config.json")):
        if _is_run(config.parent) and TRIALS not in config.relative_to(folder).parts:
            found.setdefault(config.parent.parent, []).append(Run(config.parent))
    if not found:
        raise DataError(
            "no training run lies here", where=str(folder), expected="config.json", remedy=_REMEDY
        )
    names = _names(list(found), folder)
    return tuple(Arm(names[parent], runs) for parent, runs in sorted(found.items()))


def read_episodes(path: Path, types: Mapping[str, Any] = EPISODE_TYPES) -> pl.DataFrame:
    """Return a table of episodes with these columns; an absent or empty file has no rows."""
    table = read_table(path)
    if not table.columns:
        return pl.DataFrame(schema=dict(types))
    absent = [name for name in types if name not in table.columns]
    if absent:
        raise DataError(
            "episodes lack a column", where=str(path), found=table.columns, expected=absent
        )
    try:
        table = table.select(pl.col(name).cast(kind) for name, kind in types.items())
    except pl.exceptions.PolarsError as error:
        raise DataError("an episode is made of numbers", where=str(path)) from error
    rewards = table["reward"]
    if table.null_count().sum_horizontal().sum() or not rewards.is_finite().all():
        raise DataError("an episode lacks a number", where=str(path), expected="finite numbers")
    return table


def read_table(path: Path) -> pl.DataFrame:
    """Return a CSV file; an absent or empty one has no rows, a last line that was cut is named."""
    try:
        if not path.exists() or not path.stat().st_size:
            return pl.DataFrame()
        return pl.read_csv(path, infer_schema_length=None)
    except OSError as error:
        raise DataError("cannot read this file", where=str(path), found=error.strerror) from error
    except pl.exceptions.PolarsError as error:
        found = str(error).partition("\n")[0]
        raise DataError("this is no table", where=str(path), found=found) from error


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError("cannot read this file", where=str(path), found=error.strerror) from error
    except ValueError as error:
        raise DataError("this is no JSON", where=str(path), found=str(error)) from error
    if not isinstance(value, dict):
        raise DataError("a document is an object", where=str(path), found=type(value).__name__)
    return value


_REMEDY = "Name a folder that agent-gym train or agent-gym experiment run has written"


def _result(path: Path) -> TrainingResult | None:
    if not path.exists():
        return None
    try:
        return TrainingResult.model_validate(read_mapping(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{path}: {'.'.join(map(str, first['loc']))}"
        raise DataError("this is no result of training", where=where, found=first["msg"]) from error


def _is_run(folder: Path) -> bool:
    """Tell a run from a model or a checkpoint, which may hold a config too."""
    files = RunFolder(folder)
    marks = (files.result, files.metrics, files.episodes, files.evaluations)
    return any(mark.exists() for mark in marks)


def _apart_from_seed(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in ("seed", "folder")}


def _names(parents: list[Path], folder: Path) -> dict[Path, str]:
    """Return short names that differ: the path below the folder, else the folder's own name."""
    if len(parents) == 1:
        return {parents[0]: parents[0].name}
    return {parent: str(parent.relative_to(folder)) for parent in parents}
