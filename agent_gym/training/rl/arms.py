"""The arms of an experiment: a base, and what differs, as whole training configs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError
from agent_gym.envs.training_env import evaluation_recipe
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.experiment_config import (
    ExperimentConfig,
    Overrides,
    base_of,
    folder_name,
)
from agent_gym.training.rl.overrides import located, overridden, trainer_config
from agent_gym.training.rl.setup import check_installed, recipe_of

__all__ = ["BASE", "Arm", "arms_of", "check_environment", "overridden", "trainer_config"]

BASE = "base"
"""The name of the only arm, if nothing differs."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of an experiment."""

    name: str
    overrides: Overrides
    config: TrainerConfig


def arms_of(experiment: ExperimentConfig, folder: Path | None = None) -> tuple[Arm, ...]:
    """Return all arms, each a config that was checked, before anything is trained.

    Args:
        experiment: What was asked for.
        folder: Where a base file is looked for.
    """
    base = base_of(experiment, folder)
    common = overridden(base, experiment.overrides)
    arms = [
        Arm(name, overrides, trainer_config(common, overrides, where=f"arm {name}"))
        for name, overrides in _named(experiment)
    ]
    _check_different(arms)
    for arm in arms:
        check_environment(arm.config, where=f"arm {arm.name}")
    return tuple(arms)


def check_environment(config: TrainerConfig, *, where: str) -> None:
    """Refuse an environment that does not exist or that the algorithm cannot act in.

    So is a library that the config names and that is not installed.
    """
    try:
        check_installed(config)
        evaluation_recipe(recipe_of(config), config.evaluation.env_params)
    except ConfigError as error:
        raise located(error, where) from error


def _named(experiment: ExperimentConfig) -> list[tuple[str, Overrides]]:
    if experiment.arms is not None:
        return list(experiment.arms.items())
    if experiment.grid is None:
        return [(BASE, {})]
    keys = tuple(experiment.grid)
    short = _short_keys(keys)
    points = [dict(zip(keys, values, strict=True)) for values in product(*experiment.grid.values())]
    named = [
        ("_".join(f"{short[key]}_{_word(value)}" for key, value in point.items())[:100], point)
        for point in points
    ]
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        raise ConfigError(
            "two points of the grid would have one name",
            where="grid",
            found=next(name for name in names if names.count(name) > 1),
            remedy="Take a value away, or name them yourself under arms",
        )
    return named


def _short_keys(keys: Sequence[str]) -> dict[str, str]:
    """Return the last part of each key, the whole of it where that would be ambiguous."""
    last = [key.rpartition(".")[2] for key in keys]
    return {
        key: short if last.count(short) == 1 else key for key, short in zip(keys, last, strict=True)
    }


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return folder_name(_UNSAFE.sub("-", text).strip("-.") or "none")


def _check_different(arms: Sequence[Arm]) -> None:
    seen: dict[str, str] = {}
    for arm in arms:
        said = json.dumps(arm.config.model_dump(mode="json"), sort_keys=True)
        if said in seen:
            raise ConfigError(
                "two arms are the same training",
                where=f"arms {seen[said]} and {arm.name}",
                found=str(arm.overrides),
                remedy="Take one away; the same settings twice are more seeds",
            )
        seen[said] = arm.name
