"""A UMC agent in a folder: its config and all that it has learned, with a hash of every byte."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import read_artifact, write_artifact
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json

KIND = "umc"
CARD, WEIGHTS = "agent.json", "weights.safetensors"


def write_agent(folder: Path, config: UMCConfig, weights: Mapping[str, NDArray[Any]]) -> None:
    """Put an agent into a folder, whole or not at all."""
    card = config.model_copy(update={"folder": None}).model_dump(mode="json")
    arrays = {name: np.ascontiguousarray(array) for name, array in weights.items()}
    files = {CARD: (to_json(card) + "\n").encode(), WEIGHTS: bytes_of(arrays)}
    write_artifact(folder, KIND, files)


def read_agent(folder: Path) -> tuple[UMCConfig, dict[str, NDArray[Any]]]:
    """Read config and weights; a file with a single changed byte is refused."""
    _, files = read_artifact(folder, KIND)
    try:
        config = UMCConfig.model_validate(json.loads(files[CARD]))
        return config, tensors_of(checked_tensors(files[WEIGHTS]))
    except (KeyError, ValueError, ValidationError, SafetensorError) as error:
        raise DataError("this is no UMC agent", where=str(folder), found=error) from error


def settled_config(asked: UMCConfig, saved: UMCConfig) -> UMCConfig:
    """Return the config of a saved agent with what was asked for explicitly in its place."""
    said = {name: getattr(asked, name) for name in asked.model_fields_set}
    return saved.model_copy(update=said)
