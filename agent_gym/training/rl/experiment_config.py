"""What an experiment is told, as written in YAML: one base, what differs, and how many seeds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from agent_gym.core.registry import Config, configure, unknown
from agent_gym.training.rl.config import read_mapping

SHIPPED = Path(__file__).resolve().parents[2] / "configs" / "rl"
SEARCH_SEEDS_FROM = 10_000
"""Where the seeds of a search begin: far from those that its winner is judged by afterwards."""

Overrides: TypeAlias = dict[str, Any]
"""Values by dotted key, such as ``agent.gamma``."""
Seeding: TypeAlias = int | tuple[int, ...]
"""How many seeds, or which."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_FILES = (".yaml", ".yml", ".json")
MOST_SEEDS = 1000
OF_EXPERIMENTS = ("base", "arms", "grid", "search")


class Range(Config):
    """A range that a search draws from."""

    low: float
    high: float
    log: bool = Field(default=False, description="even in orders of magnitude; needs low > 0")
    integer: bool = Field(default=False, description="whole numbers only")

    @model_validator(mode="after")
    def _a_range(self) -> Self:
        if not self.low < self.high:
            raise ValueError("a range has a low end below its high end")
        if self.log and self.low <= 0.0:
            raise ValueError("a range in orders of magnitude begins above 0")
        if self.integer and not (self.low.is_integer() and self.high.is_integer()):
            raise ValueError("a range of whole numbers has whole ends")
        return self


class Search(Config):
    """A search for better settings; every trial is trained with several seeds."""

    space: dict[str, Range | tuple[Any, ...]] = Field(
        min_length=1, description="by dotted key: a range, or a list to choose from"
    )
    trials: int = Field(default=20, ge=1, description="in all, those of earlier calls included")
    seeds: Seeding = Field(default=3, description="how many each trial is trained with, or which")
    startup_trials: int = Field(
        default=5, ge=1, description="drawn at random and never cut short, before any is"
    )
    prune: bool = Field(default=True, description="cut short what is worse than the median trial")
    warmup_evaluations: int = Field(
        default=2, ge=0, description="looks at the start of a run that never cut it short"
    )
    seed: int = Field(default=0, ge=0, description="of the draws of settings")

    @field_validator("space")
    @classmethod
    def _choices(
        cls, value: dict[str, Range | tuple[Any, ...]]
    ) -> dict[str, Range | tuple[Any, ...]]:
        for key, each in value.items():
            if isinstance(each, tuple) and len({json.dumps(choice) for choice in each}) < 2:
                raise ValueError(f"{key}: a list to choose from has at least two different values")
        return value

    @field_validator("seeds")
    @classmethod
    def _different(cls, value: Seeding) -> Seeding:
        return checked_seeds(value)

    def seed_list(self) -> tuple[int, ...]:
        """Return the seeds of a trial; they are apart from those of an experiment."""
        return seed_list(self.seeds, SEARCH_SEEDS_FROM)


class ExperimentConfig(Config):
    """Several trainings that differ in what is asked about, each with several seeds.

    ``arms`` names each of them; ``grid`` makes one of every combination of values; with neither
    there is one arm, the base itself. The first arm is the one that others are compared with.

    Example:
        >>> config = ExperimentConfig(name="two", base={"steps": 1000}, grid={"n_envs": [8, 16]})
        >>> config.seed_list()
        (0, 1, 2, 3, 4)
    """

    name: str = Field(description="of the folder in experiments/")
    about: str = Field(default="", description="the question, for whoever reads the report")
    base: str | dict[str, Any] = Field(
        default_factory=dict,
        description="a training as in training_schema.yaml, its file, or the name of a shipped one",
    )
    overrides: Overrides = Field(
        default_factory=dict, description="what differs from the base in every arm, by dotted key"
    )
    arms: dict[str, Overrides] | None = Field(
        default=None, min_length=1, description="name of the arm: what differs, by dotted key"
    )
    grid: dict[str, tuple[Any, ...]] | None = Field(
        default=None, min_length=1, description="dotted key: values; every combination is an arm"
    )
    seeds: Seeding = Field(default=5, description="how many (0, 1, 2, ...), or which")
    workers: int = Field(
        default=1, ge=1, le=256, description="runs at a time; no figure depends on it"
    )
    timeout_s: float | None = Field(
        default=None, gt=0.0, description="wall time that a run may take; null: any"
    )
    threshold: float | None = Field(
        default=None, description="mean return whose first reaching is counted in steps; null: none"
    )
    level: float = Field(default=0.95, gt=0.5, lt=1.0, description="probability of the intervals")
    resamples: int = Field(default=10_000, ge=100, description="of each bootstrap")
    search: Search | None = Field(default=None, description="for `agent-gym experiment search`")

    @field_validator("name")
    @classmethod
    def _a_folder(cls, value: str) -> str:
        return folder_name(value)

    @field_validator("seeds")
    @classmethod
    def _different(cls, value: Seeding) -> Seeding:
        return checked_seeds(value)

    @field_validator("grid")
    @classmethod
    def _values(cls, value: dict[str, tuple[Any, ...]] | None) -> dict[str, tuple[Any, ...]] | None:
        for key, each in (value or {}).items():
            if not each:
                raise ValueError(f"{key}: a grid needs at least one value")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.arms is not None and self.grid is not None:
            raise ValueError("name either arms or a grid")
        for name in self.arms or {}:
            folder_name(name)
        return self

    def seed_list(self) -> tuple[int, ...]:
        """Return the seeds of every arm."""
        return seed_list(self.seeds, 0)


def seed_list(seeds: Seeding, first: int) -> tuple[int, ...]:
    """Return the seeds that a count or a list means."""
    return tuple(range(first, first + seeds)) if isinstance(seeds, int) else seeds


def checked_seeds(seeds: Seeding) -> Seeding:
    """Return seeds, or raise ValueError if they cannot be some."""
    given = (0,) * seeds if isinstance(seeds, int) else seeds
    if not 1 <= len(given) <= MOST_SEEDS:
        raise ValueError(f"there are 1 to {MOST_SEEDS} seeds")
    if not isinstance(seeds, int) and (len(set(seeds)) < len(seeds) or min(seeds) < 0):
        raise ValueError("seeds are different whole numbers of at least 0")
    return seeds


def folder_name(name: str) -> str:
    """Return a name that can be one of a folder, or raise ValueError."""
    if not _NAME.fullmatch(name) or name.endswith("."):
        raise ValueError(f"{name!r} cannot name a folder; use a-z, A-Z, 0-9, and _ . - after it")
    return name


def shipped_names() -> tuple[str, ...]:
    """Return the names of the shipped files of trainings and experiments."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


@cache
def shipped_trainings() -> tuple[str, ...]:
    """Return the names of the shipped files that are one training each."""
    return tuple(
        name
        for name in shipped_names()
        if not is_experiment(read_mapping(SHIPPED / f"{name}.yaml"))
    )


def is_experiment(said: Mapping[str, Any]) -> bool:
    """Say whether what a file says is an experiment, and not one training."""
    return any(name in said for name in OF_EXPERIMENTS)


def shipped_config(name: str) -> Path:
    """Return the shipped file of a name, such as ``lander-ppo``."""
    if name not in shipped_names():
        raise unknown("shipped config", name, shipped_names())
    return SHIPPED / f"{name}.yaml"


def config_path(word: str, folder: Path | None = None) -> Path:
    """Return the file that a word means: a path (seen from ``folder``) or a shipped name."""
    if word.endswith(_FILES) or "/" in word:
        return (folder or Path()) / word
    return shipped_config(word)


def read_experiment(path: Path) -> ExperimentConfig:
    """Read an experiment file; its base is read too, so that nothing outside is left to change."""
    config = configure(ExperimentConfig, read_mapping(path), where=str(path))
    return config.model_copy(update={"base": base_of(config, path.parent)})


def base_of(config: ExperimentConfig, folder: Path | None = None) -> dict[str, Any]:
    """Return the training that all arms begin with, as it was written."""
    if isinstance(config.base, dict):
        return config.base
    return read_mapping(config_path(config.base, folder))
