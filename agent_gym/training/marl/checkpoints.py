"""A training on disk between two iterations: whole or not at all, nothing pickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import read_artifact, write_artifact
from agent_gym.agents.sb3.folder import settled
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import to_json
from agent_gym.training.marl.batch import Arrays

KIND = "marl/checkpoint-2"
ARRAYS, VALUES = "arrays.safetensors", "values.json"


class Checkpoint(NamedTuple):
    """All that decides how a training goes on: arrays, and what JSON can say."""

    arrays: Arrays
    values: dict[str, Any]


def write_checkpoint(place: Path, run: str, checkpoint: Checkpoint) -> None:
    """Put a checkpoint in the place of the last one; ``run`` says whose it is."""
    # np.array keeps a single number a single number, which ascontiguousarray does not.
    arrays = {name: np.array(array, order="C") for name, array in checkpoint.arrays.items()}
    text = to_json({"run": run, "values": checkpoint.values}) + "\n"
    write_artifact(place, KIND, {ARRAYS: bytes_of(arrays), VALUES: text.encode()})


def read_checkpoint(place: Path, run: str) -> Checkpoint | None:
    """Return the last checkpoint, None if there is none yet; that of another run is refused."""
    if not settled(place).exists():
        return None
    _, files = read_artifact(place, KIND)
    try:
        content = json.loads(files[VALUES])
        found = Checkpoint(tensors_of(checked_tensors(files[ARRAYS])), content["values"])
        theirs = content["run"]
    except (KeyError, TypeError, ValueError, SafetensorError) as error:
        raise DataError("this is no checkpoint of a team", where=str(place)) from error
    if theirs != run:
        raise ConfigError(
            "this folder holds another training",
            where=str(place),
            found=theirs,
            expected=run,
            remedy="Name another folder, or go on with the settings and versions it began with",
        )
    return found
