"""Trainings of teams as they are asked for and as they lie in their folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import configure, unknown
from agent_gym.training.marl.config import TeamTrainConfig, shipped_config
from agent_gym.training.marl.trainer import CONFIG, RECORD, TIMINGS
from agent_gym.training.marl.worlds import battle_worlds
from agent_gym.training.rl.config import read_mapping
from agent_gym.training.rl.resuming import differences

SUFFIXES = (".yaml", ".yml", ".json")
SHOWN = 4
OTHER_FOLDER = "Name another folder with --out, or go on with the settings it began with"


class Trained(NamedTuple):
    """What a finished training left: its record, and the seconds that it took."""

    record: dict[str, Any]
    cpu_s: float
    wall_s: float


def named_config(word: str) -> tuple[str, TeamTrainConfig]:
    """Return the name of an arm and its config, from the name of a shipped one or a file."""
    path = Path(word)
    if path.suffix not in SUFFIXES:
        return word, shipped_config(word)
    if not path.is_file():
        raise ConfigError("there is no such file", where=word, remedy="Check the path")
    return path.stem, configure(TeamTrainConfig, read_mapping(path), where=word)


def changed(config: TeamTrainConfig, changes: Mapping[str, Any], *, where: str) -> TeamTrainConfig:
    """Return a config with some fields set otherwise, each named by its dotted key.

    A mapping in place of a part that is there changes only what it names.

    Example:
        >>> changed(TeamTrainConfig(), {"learn.epochs": 2}, where="here").learn.epochs
        2
    """
    fields = config.model_dump(mode="json")
    for key, value in changes.items():
        _put(fields, key, value, where)
    return configure(TeamTrainConfig, fields, where=where)


def _put(fields: dict[str, Any], key: str, value: Any, where: str) -> None:
    *parts, last = key.split(".")
    inner: Any = fields
    for at, part in enumerate(parts):
        _check(inner, parts[: at + 1], where)
        inner[part] = {} if inner[part] is None else inner[part]
        inner = inner[part]
    if inner != {}:  # what a part that is not there yet may hold is said by its own config
        _check(inner, [*parts, last], where)
    if isinstance(value, Mapping) and isinstance(inner.get(last), dict):
        for name, own in value.items():
            _put(inner[last], name, own, where)
    else:
        inner[last] = value


def _check(inner: Any, parts: Sequence[str], where: str) -> None:
    known = tuple(inner) if isinstance(inner, dict) else ()
    if parts[-1] not in known:
        above = "".join(f"{part}." for part in parts[:-1])
        raise unknown(f"setting of {where}", ".".join(parts), tuple(above + name for name in known))


def stored_training(folder: Path) -> Trained | None:
    """Return what a finished training left in a folder; None if there is none."""
    if not (folder / RECORD).is_file():
        return None
    record, spent = read_json(folder / RECORD), read_json(folder / TIMINGS)
    try:
        return Trained(record, float(spent["cpu_s"]), float(spent["wall_s"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("these are no timings of a training", where=str(folder)) from error


def finished(config: TeamTrainConfig, folder: Path) -> Trained | None:
    """Return a training that is done, None if it is still to do or to go on with.

    Raises:
        ConfigError: The folder holds a training of other settings, or of another map.
    """
    if not (folder / CONFIG).is_file():
        return None
    refuse_other(folder, differing(read_json(folder / CONFIG), config, folder))
    found = stored_training(folder)
    if found is None:
        return None
    made = found.record["manifest"]
    data = battle_worlds(config, config.n_envs).get_state().values
    refuse_other(
        folder, [*differing(made["config"], config, folder), *differences(made["data"], data)]
    )
    return found


def differing(kept: Any, config: TeamTrainConfig, folder: Path) -> list[str]:
    """Return in what stored settings differ; what was not there then has its default."""
    try:
        stored = TeamTrainConfig.model_validate(kept)
    except ValidationError as error:
        raise DataError(
            "the settings of a training cannot be read", where=str(folder), found=str(error)
        ) from error
    there, here = (_deciding(each) for each in (stored, config))
    return differences(there, here)


def _deciding(config: TeamTrainConfig) -> dict[str, Any]:
    """Return the settings that decide every bit; when checkpoints are written does not."""
    return config.model_dump(mode="json", exclude={"checkpoint_every"})


def refuse_other(folder: Path, found: list[str]) -> None:
    """Raise ConfigError if a folder differs in anything from what is asked for."""
    if not found:
        return
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    raise ConfigError(
        "this folder holds another training",
        where=str(folder),
        found="; ".join(found[:SHOWN]) + more,
        remedy=OTHER_FOLDER,
    )


def read_json(path: Path) -> Any:
    """Return what a JSON file says."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise DataError("cannot read this file", where=str(path), found=error.strerror) from error
    except ValueError as error:
        raise DataError("this file is no JSON", where=str(path), found=str(error)) from error
