"""Whether a run may go on from what lies in its folder, and why not, in words."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from agent_gym.agents.sb3.artifact import verify_model
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.manifest import installed_versions
from agent_gym.training.rl.config import TrainerConfig
from agent_gym.training.rl.result import RunFolder, TrainingResult
from agent_gym.training.rl.run_records import (
    FINISHED,
    FRESH,
    completed,
    read_result,
    stored_config,
)

LIBRARIES = ("torch", "stable-baselines3", "sb3-contrib", "gymnasium", "box2d")
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
    result = read_result(folder.path)
    if result is None or result.status not in FINISHED or result.seed != seed:
        return None
    return None if settings_differ(result.config, config) else result


def check_folder(folder: RunFolder, config: TrainerConfig) -> bool:
    """Return whether a run has begun here; one of another config is refused."""
    found = stored_config(folder.path)
    if found is None:
        return False
    refuse_difference(
        "this folder holds a run of another config",
        where=str(folder.config),
        kept=completed(found),
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


def check_best(folder: RunFolder) -> None:
    """Refuse a damaged best model now: hours later there would be nothing to judge."""
    try:
        verify_model(folder.best)
    except DataError as error:
        error.remedy = FRESH
        raise


def settings_differ(kept: Any, config: TrainerConfig) -> list[str]:
    """Return in what stored settings differ from those of a config; absent ones are defaults."""
    return differences(completed(kept), config.model_dump(mode="json"))


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
