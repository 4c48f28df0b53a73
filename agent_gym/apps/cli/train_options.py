"""What can be said to ``agent-gym train``, and the training that it means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from agent_gym.agents.sb3.config import CONFIGS, OnPolicyConfig
from agent_gym.apps.cli.config_options import parse_pairs
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.core.registry import Config
from agent_gym.reporting.text import many
from agent_gym.training.rl.config import TrainerConfig, read_mapping
from agent_gym.training.rl.experiment_config import (
    config_path,
    folder_name,
    is_experiment,
    shipped_trainings,
)
from agent_gym.training.rl.overrides import default_folder, trainer_config

SEEDS = 5
LISTED = "`agent-gym train schema` lists all settings"
GENERIC = ("config", "training")  # file names that say nothing of what is trained


class TrainJob(Config):
    """What is trained."""

    config: str | None = Field(
        default=None,
        description="training file (YAML or JSON), or the name of a shipped one: "
        + (", ".join(shipped_trainings()) or "none"),
    )
    algo: str | None = Field(default=None, description="algorithm: " + ", ".join(CONFIGS))
    env: str | None = Field(default=None, description="market, or an id of Gymnasium")
    steps: int | None = Field(
        default=None, ge=1, le=10**12, description="steps of all environments together"
    )


class TrainRuns(Config):
    """How often, and where to."""

    seeds: int | None = Field(
        default=None, ge=1, le=1_000, description=f"how many seeds are trained (default {SEEDS})"
    )
    seed: int | None = Field(
        default=None, ge=0, le=2**31, description="first seed; without --seeds the only one"
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="seeds that are trained at once; changes no number (default: one a core)",
    )
    name: str | None = Field(
        default=None, description="folder in results/experiments (default by config or algorithm)"
    )
    fresh: bool = Field(
        default=False, description="begin anew, instead of going on where a run was stopped"
    )
    calibrate: bool = Field(
        default=False, description="measure first, and take as many threads as are fastest here"
    )
    report: bool = Field(default=True, description="write curve and report.html at the end")
    video: bool = Field(default=True, description="record episodes for the report")

    @field_validator("name")
    @classmethod
    def _a_folder(cls, value: str | None) -> str | None:
        return None if value is None else folder_name(value)

    def seed_list(self) -> tuple[int, ...]:
        """Return the seeds that are trained."""
        count = self.seeds or (SEEDS if self.seed is None else 1)
        first = self.seed or 0
        return tuple(range(first, first + count))

    def workers_for(self, seeds: int) -> int:
        """Return how many processes train at once."""
        return min(seeds, self.workers or len(os.sched_getaffinity(0)))


def asked_config(job: TrainJob, pairs: Sequence[str]) -> TrainerConfig:
    """Return the training that is meant: the file, and over it what the command says."""
    if job.config is None and job.algo is None and job.env is None:
        raise ConfigError(
            "it is not said what is to be trained",
            where="agent-gym train",
            expected="--config FILE, or --algo and --env",
            remedy=f"Shipped: {', '.join(shipped_trainings()) or 'none'}",
        )
    base: dict[str, Any] = {} if job.config is None else read_training(job.config)
    said = {name: getattr(job, name) for name in ("algo", "env", "steps")}
    overrides = {name: value for name, value in said.items() if value is not None}
    changed = parse_settings(pairs)
    twice = sorted(set(changed) & set(overrides))
    if twice:
        raise ConfigError("said twice", where=f"--set {twice[0]}", found=f"--{twice[0]} as well")
    where = "the command" if job.config is None else f"--config {job.config}"
    return trainer_config(base, overrides | changed, where=where)


def parse_settings(
    pairs: Sequence[str], example: str = "agent.gamma=0.99", listed: str = LISTED
) -> dict[str, Any]:
    """Return settings by dotted key from what ``--set`` was given.

    Args:
        pairs: What was given.
        example: A setting that could be.
        listed: Says where all settings are.
    """
    for pair in pairs:
        if not pair.partition("=")[1] or pair.startswith("="):
            raise ConfigError(
                "--set takes name=value",
                where="--set",
                found=repr(pair),
                expected=f"a dotted key, an equals sign and a value, such as --set {example}",
                remedy=listed,
            )
    return parse_pairs(pairs, "--set")


def read_training(word: str) -> dict[str, Any]:
    """Return what a training file says; an experiment is sent to its own command."""
    path = config_path(word)
    if not path.is_file():
        raise ConfigError(
            "there is no such training file",
            where="--config",
            found=word,
            remedy=f"Check the path. Shipped: {', '.join(shipped_trainings()) or 'none'}",
        )
    found = read_mapping(path)
    if is_experiment(found):
        raise ConfigError(
            "this file is an experiment, not one training",
            where=str(path),
            remedy=f"Run it with `agent-gym experiment run {word}`",
        )
    return found


def folder_of(job: TrainJob, runs: TrainRuns, config: TrainerConfig) -> Path:
    """Return where the seeds are trained."""
    if runs.name is not None:
        return home() / "experiments" / runs.name
    stem = None if job.config is None else config_path(job.config).stem
    if stem is None or stem in GENERIC:
        return default_folder(config, 0).parent
    return home() / "experiments" / folder_name(stem)


def steps_note(config: TrainerConfig) -> str | None:
    """Return what is to be said where the steps are no whole number of iterations."""
    agent = config.agent
    length = agent.n_steps if isinstance(agent, OnPolicyConfig) else getattr(agent, "train_freq", 1)
    each = length * config.n_envs
    over = config.steps % each
    if not over:
        return None
    return (
        f"{config.steps:,} steps are no multiple of {each:,} (an iteration of "
        f"{many(config.n_envs, 'environment')}): {config.steps + each - over:,} will be taken"
    )
