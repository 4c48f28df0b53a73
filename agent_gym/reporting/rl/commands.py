"""Which command trains an arm again, so that no page tells a path of the machine it was made on."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from agent_gym.core.errors import ConfigError
from agent_gym.reporting.rl.runs import Arm
from agent_gym.training.rl.arms import overridden
from agent_gym.training.rl.config import as_trainer_config, read_trainer_config
from agent_gym.training.rl.experiment_config import folder_name, shipped_config, shipped_trainings

MOST_CHANGES = 6
ABSENT = object()


class _Words(NamedTuple):
    """A shipped config, or a file, and what differs from it."""

    config: str
    changes: dict[str, Any]


def training_command(arm: Arm, least_seeds: int = 1) -> str:
    """Return the command that trains an arm again, into its own folder.

    Settings that are nearly those of a shipped config are told as that and what differs; only
    others are told by the stored file.

    Args:
        arm: What was trained.
        least_seeds: Asks for at least so many, so that the command adds what is missing.
    """
    told = _nearest_shipped(arm) or _Words(arm.runs[0].files.config.as_posix(), {})
    words = ["agent-gym", "train", "--config", told.config]
    for key, value in told.changes.items():
        words += ["--set", f"{key}={_text(value)}"]
    words += _name_words(arm.runs[0].path.parent.name, told.config)
    seeds = sorted(run.seed for run in arm.runs if run.seed is not None)
    if seeds:
        words += ["--seeds", str(max(least_seeds, seeds[-1] - seeds[0] + 1))]
        words += ["--seed", str(seeds[0])] if seeds[0] else []
    return shlex.join(words)


def _name_words(folder: str, config: str) -> list[str]:
    """Return how the folder is named, where it is not that of the config anyway."""
    if folder == config:
        return []
    try:
        return ["--name", folder_name(folder)]
    except ValueError:  # no name that the command would take
        return []


def _nearest_shipped(arm: Arm) -> _Words | None:
    found = []
    for name, config in _shipped():
        changes = _changes(_flat(config), _flat(arm.settings))
        if changes is not None and _gives(config, changes, arm.settings):
            found.append(_Words(name, changes))
    return min(found, key=lambda each: (len(each.changes), each.config), default=None)


def _changes(shipped: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what ``--set`` must say; None if it is too much, or another algorithm."""
    names = [name for name in {**shipped, **own} if shipped.get(name, ABSENT) != own.get(name)]
    if len(names) > MOST_CHANGES or {"algo", "env"} & set(names) or set(names) - set(own):
        return None
    return {name: own[name] for name in names}


def _gives(config: Mapping[str, Any], changes: Mapping[str, Any], wanted: object) -> bool:
    try:
        made = as_trainer_config(overridden(config, dict(changes)), where="command")
    except ConfigError:
        return False
    return made.model_dump(mode="json") == wanted


def _flat(config: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found |= _flat(value, f"{above}{key}.")
        else:
            found[f"{above}{key}"] = value
    return found


def _text(value: Any) -> str:
    """Return a value as ``--set`` takes it: a word as it is, all else as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value)


@cache
def _shipped() -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple(
        (name, read_trainer_config(shipped_config(name)).model_dump(mode="json"))
        for name in shipped_trainings()
    )
