"""The one door through which a stranger's model comes in, and with it whatever code it holds."""

from __future__ import annotations

from pathlib import Path

from stable_baselines3.common.base_class import BaseAlgorithm

from agent_gym.agents.sb3.algorithms import ALGORITHMS
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.registry import unknown


def unsafe_load_foreign_zip(path: Path, algo: str) -> BaseAlgorithm:
    """Read a zip of Stable-Baselines3. THIS RUNS WHATEVER CODE THE FILE HOLDS.

    The format is a pickle in a zip: opening it is as trusting as running a program from the same
    sender. Nothing in this package calls it but a command whose option says so.
    """
    if algo not in ALGORITHMS:
        raise unknown("algorithm", algo, tuple(ALGORITHMS))
    if not path.is_file():
        raise DataError("no such file", where=str(path))
    try:
        return ALGORITHMS[algo].model.load(path, device="cpu")
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ConfigError(
            f"this zip is no {algo} model", where=str(path), found=str(error)
        ) from error
