"""Which command trains an arm again, so that no page tells a path of the machine it was made on."""

from __future__ import annotations

import shlex
from functools import cache
from typing import Any

from agent_gym.core.errors import ConfigError
from agent_gym.reporting.rl.runs import Arm
from agent_gym.training.rl.config import read_trainer_config
from agent_gym.training.rl.experiment_config import shipped_config, shipped_names


def training_command(arm: Arm) -> str:
    """Return the command: by the name of a shipped config if it is one, else by the stored file."""
    words = ["agent-gym", "train", "--config", _config_word(arm)]
    seeds = sorted(run.seed for run in arm.runs if run.seed is not None)
    if seeds:
        words += ["--seeds", str(seeds[-1] - seeds[0] + 1)]
        words += ["--seed", str(seeds[0])] if seeds[0] else []
    return shlex.join(words)


def _config_word(arm: Arm) -> str:
    named = [name for name, config in _shipped() if config == arm.config]
    return named[0] if named else arm.runs[0].files.config.as_posix()


@cache
def _shipped() -> tuple[tuple[str, dict[str, Any]], ...]:
    found = []
    for name in shipped_names():
        try:
            config = read_trainer_config(shipped_config(name))
        except ConfigError:
            continue  # an experiment of several arms, whose arms are configs of their own
        found.append((name, config.model_dump(mode="json")))
    return tuple(found)
