"""What a folder is the training of: another one is refused before anything is computed."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import write_json
from agent_gym.core.manifest import installed_versions
from agent_gym.markets.bars import Bars
from agent_gym.training.umc.config import UMCTrainConfig

RUN = "run.json"
SHOWN = 5
REMEDY = "Begin anew (--no-resume), or name another folder"


def begin_run(folder: Path, config: UMCTrainConfig, bars: Bars) -> None:
    """Say in a folder what is trained there; one that holds another training is refused."""
    path = folder / RUN
    asked = {
        "config": config.model_dump(mode="json", by_alias=True),
        "fingerprint": bars.fingerprint,
        "versions": installed_versions() | {"torch": _version("torch")},
        "machine": platform.machine(),
    }
    kept = _read(path)
    if kept is None:
        write_json(path, asked)
        return
    one, other = _flat(kept), _flat(json.loads(json.dumps(asked)))
    differing = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
    if differing:
        words = [f"{key}: {one.get(key)} there, {other.get(key)} here" for key in differing]
        raise ConfigError(
            "this folder holds another training",
            where=str(path),
            found="; ".join(words[:SHOWN]),
            expected="the same settings, bars and versions",
            remedy=REMEDY,
        )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(
            "this file cannot be read", where=str(path), found=error, remedy=REMEDY
        ) from error
    if not isinstance(kept, dict):
        raise DataError("this is no training", where=str(path), remedy=REMEDY)
    return kept


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {key: value}
    found: dict[str, Any] = {}
    for name, inner in value.items():
        found |= _flat(inner, f"{key}.{name}" if key else str(name))
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
