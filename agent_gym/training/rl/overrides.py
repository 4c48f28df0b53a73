"""A training config with some settings changed by dotted key; needs no library of learning."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.training.rl.config import TrainerConfig, as_trainer_config
from agent_gym.training.rl.experiment_config import Overrides


def trainer_config(base: Mapping[str, Any], overrides: Overrides, *, where: str) -> TrainerConfig:
    """Return the training that a base with overrides is."""
    try:
        return as_trainer_config(overridden(base, overrides), where=where)
    except ConfigError as error:  # the part of a config that is wrong does not know whose it is
        raise located(error, where) from error


def overridden(base: Mapping[str, Any], overrides: Overrides) -> dict[str, Any]:
    """Return a mapping in which values by dotted key have taken the place of others.

    Example:
        >>> overridden({"steps": 9, "agent": {"gamma": 0.9}}, {"agent.n_steps": 8, "n_envs": 1})
        {'steps': 9, 'agent': {'gamma': 0.9, 'n_steps': 8}, 'n_envs': 1}
    """
    changed = deepcopy(dict(base))
    for key, value in overrides.items():
        *path, last = key.split(".")
        place = changed
        for part in path:
            if place.get(part) is None:
                place[part] = {}
            place = place[part]
            if not isinstance(place, dict):
                raise ConfigError(
                    "this key leads into a plain value", where=key, found=f"{part}: {place!r}"
                )
        place[last] = deepcopy(value)
    return changed


def located(error: ConfigError, where: str) -> ConfigError:
    """Return an error that says which arm has it."""
    inside = error.where is not None and where not in error.where
    return ConfigError(
        error.what,
        where=f"{where}: {error.where}" if inside else where,
        found=error.found,
        expected=error.expected,
        remedy=error.remedy,
    )


def default_folder(config: TrainerConfig, seed: int) -> Path:
    """Return where a run is kept if nobody says."""
    env = config.env.replace("/", "_")
    return home() / "experiments" / f"{config.algo}_{env}" / f"seed_{seed}"
