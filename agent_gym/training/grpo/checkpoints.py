"""A training run on disk: the last state, whole or not at all, nothing pickled."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor

from agent_gym.agents.artifact import read_artifact, write_artifact
from agent_gym.agents.sb3.folder import settled
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.training.grpo.result import UpdateMetrics

KIND = "grpo/checkpoint"
TENSORS, STATE = "state.safetensors", "state.json"


class TrainingState(Config):
    """Where a run stands, but for its tensors; the next update is number ``done``."""

    run: str
    done: int = 0
    steps: int = 0
    model_before: str
    lineage: tuple[str, ...]
    trained_ids: tuple[str, ...] = ()
    refused: dict[str, int] = Field(default_factory=dict)
    updates: tuple[UpdateMetrics, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointFolder:
    """The newest checkpoint of one run, in a folder of its own.

    ``run`` is the hash of the settings and of the policy the run began with: the checkpoint of
    another run is never continued.
    """

    folder: Path
    run: str

    def save(self, state: TrainingState, tensors: dict[str, Tensor]) -> None:
        """Put a state in the place of the last one."""
        text = to_json(state.model_dump(mode="json")) + "\n"
        files = {TENSORS: bytes_of(tensors), STATE: text.encode()}
        write_artifact(self.folder, KIND, files)

    def load(self) -> tuple[TrainingState, dict[str, Tensor]] | None:
        """Return the last state; None if there is none yet."""
        if not settled(self.folder).exists():
            return None
        _, files = read_artifact(self.folder, KIND)
        try:
            content: Any = json.loads(files[STATE])
            state, tensors = (
                TrainingState.model_validate(content),
                tensors_of(checked_tensors(files[TENSORS])),
            )
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError("this is no checkpoint", where=str(self.folder)) from error
        if state.run != self.run:
            raise ConfigError(
                "the folder holds a run with other settings or another policy to begin with",
                where=str(self.folder),
                remedy="Name another folder, or continue with the settings it began with",
            )
        return state, tensors
