"""Whether a run may go on from what lies in its folder, and why not, in words."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.manifest import installed_versions
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.result import RunFolder, TrainingResult

LIBRARIES = ("torch", "stable-baselines3", "sb3-contrib", "gymnasium", "box2d")
FRESH = "Begin anew with --fresh, or name another folder"
SHOWN = 8


def training_versions() -> dict[str, str]:
    """Return all that decides the bits of a training run besides its config and seed."""
    versions = installed_versions() | {name: _version(name) for name in LIBRARIES}
    capability = torch.backends.cpu.get_cpu_capability()
    return versions | {"machine": platform.machine(), "cpu": str(capability)}


def exact_reason(config: TrainerConfig) -> str | None:
    """Return why a run of this config cannot go on exactly; None if it can."""
    if config.learner != "sb3":
        return f"the state of learner {config.learner} cannot be kept to the bit"
    if config.backend != "gymnasium":
        return f"the state of backend {config.backend} cannot be kept"
    return None


def finished_result(folder: RunFolder, config: TrainerConfig, seed: int) -> TrainingResult | None:
    """Return the result of a run that is done already, if it is of this config and seed."""
    if not folder.result.exists():
        return None
    try:
        result = TrainingResult.model_validate(json.loads(folder.result.read_bytes()))
    except (OSError, ValueError) as error:
        raise DataError(
            "the result of an earlier run cannot be read", where=str(folder.result), remedy=FRESH
        ) from error
    same = result.config == config.model_dump(mode="json") and result.seed == seed
    return result if same and result.status in ("done", "stopped_early") else None


def check_folder(folder: RunFolder, config: TrainerConfig) -> bool:
    """Return whether a run has begun here; one of another config is refused."""
    if not folder.config.exists():
        return False
    try:
        found = json.loads(folder.config.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(
            "the config of an earlier run cannot be read", where=str(folder.config), remedy=FRESH
        ) from error
    refuse_difference(
        "this folder holds a run of another config",
        where=str(folder.config),
        kept=found,
        given=config.model_dump(mode="json"),
    )
    reason = exact_reason(config)
    if reason is not None:
        raise ConfigError(
            "this run was stopped and cannot go on where it was",
            where=str(folder.path),
            found=reason,
            remedy=f"{FRESH}, or use backend: gymnasium and learner: sb3",
        )
    return True


def check_extra(extra: Mapping[str, Any], where: str, seed: int) -> None:
    """Refuse a checkpoint of another seed or of other libraries than those installed."""
    refuse_difference(
        "this checkpoint was made with another seed or other versions",
        where=where,
        kept={"seed": extra["seed"], "versions": extra["versions"]},
        given={"seed": seed, "versions": training_versions()},
    )


def refuse_difference(what: str, *, where: str, kept: Any, given: Any) -> None:
    """Raise a ConfigError that names every key in which two documents differ."""
    differing = sorted(differences(kept, given))
    if differing:
        more = len(differing) - SHOWN
        shown = "; ".join(differing[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
        raise ConfigError(what, where=where, found=shown, remedy=FRESH)


def differences(kept: Any, given: Any, key: str = "") -> list[str]:
    """Return the dotted keys in which two documents differ, with both values.

    Example:
        >>> differences({"agent": {"gamma": 0.9}, "n": 5}, {"agent": {"gamma": 1.0}, "n": 5})
        ['agent.gamma: 0.9 there, 1.0 here']
    """
    if isinstance(kept, Mapping) and isinstance(given, Mapping):
        found: list[str] = []
        for name in sorted({*kept, *given}):
            inner = f"{key}.{name}" if key else str(name)
            found += differences(kept.get(name), given.get(name), inner)
        return found
    return [] if kept == given else [f"{key}: {kept} there, {given} here"]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
