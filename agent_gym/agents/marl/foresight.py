"""The model of the world of a team, kept beside its policy: what a moment says about that model.

Nobody needs it to play. It is what a recorded battle shows as the information bonus, so it is
played in numpy like the policy, and knows the policy that it was trained beside by its hash.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import ArtifactManifest, read_artifact, write_artifact
from agent_gym.agents.information import moment_information
from agent_gym.agents.marl.network import Floats, Weights
from agent_gym.agents.marl.policy import TeamContract
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

KIND = "marl/foresight"
TENSORS, CARD = "foresight.safetensors", "foresight.json"
LOG_VARIANCES = (-8.0, 3.0)
"""Between these the log-variance that a head tells is held, softly."""
MEAN, SPREAD = "seen.mean", "seen.spread"


class ForesightCard(Config):
    """All about a model of the world but its numbers."""

    kind: str = KIND
    policy: str = Field(description="hash of the policy that it was trained beside")
    contract: TeamContract
    state: int = Field(ge=1, description="numbers of the whole battle")
    core: tuple[int, ...] = Field(min_length=1, description="which of them it foretells")
    heads: int = Field(ge=2, description="networks that each learned by themselves")
    layers: tuple[int, ...] = Field(min_length=1, description="widths of the hidden layers")
    floor: float = Field(gt=0, description="spread below which heads agree")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every array by its name."""
        contract = self.contract
        inputs = len(self.core) + contract.agents * (len(contract.actions) + 1)
        told = 2 * (len(self.core) + 1) + 1
        sizes = list(pairwise((inputs, *self.layers, told)))
        found: dict[str, tuple[int, ...]] = {MEAN: (inputs,), SPREAD: (inputs,)}
        for i, (before, after) in enumerate(sizes):
            found |= {f"weights.{i}": (self.heads, before, after)}
            found |= {f"biases.{i}": (self.heads, 1, after)}
        return found


class TeamForesight:
    """How much a step would say about which of several heads is right, in nats."""

    def __init__(self, card: ForesightCard, weights: Weights) -> None:
        found = {name: array.shape for name, array in weights.items()}
        if found != card.shapes or not all(np.isfinite(each).all() for each in weights.values()):
            raise DataError(
                "the weights do not fit the model of the world", found=found, expected=card.shapes
            )
        self.card, self.policy = card, card.policy
        self.weights = {name: np.array(weights[name], order="C") for name in sorted(weights)}

    def information(
        self, state: Floats, actions: NDArray[np.integer], alive: NDArray[np.bool_]
    ) -> FloatArray:
        """Return the mutual information of the next state and the head that is right, ``[rows]``.

        Args:
            state: The whole battle, ``[rows, features]``.
            actions: What is about to be done, ``[rows, agents]``.
            alive: Who lives, ``[rows, agents]``.
        """
        rows = len(state)
        done = np.eye(len(self.card.contract.actions), dtype=np.float32)[actions]
        parts = (state[:, self.card.core], done, alive.astype(np.float32))
        seen = np.concatenate([part.reshape(rows, -1) for part in parts], axis=1)
        mean, variance = self._told((seen - self.weights[MEAN]) / self.weights[SPREAD])
        each = moment_information(mean.swapaxes(0, 1), variance.swapaxes(0, 1) + self.card.floor**2)
        total: FloatArray = np.minimum(each.sum(axis=-1), math.log(self.card.heads))
        return total

    def _told(self, scaled: Floats) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of the change that each head expects, ``[heads, rows, ...]``."""
        x: FloatArray = np.broadcast_to(scaled.astype(np.float64), (self.card.heads, *scaled.shape))
        last = len(self.card.layers)
        for i in range(last + 1):
            x = x @ self.weights[f"weights.{i}"] + self.weights[f"biases.{i}"]
            x = x if i == last else x / (1.0 + np.exp(-x))
        outputs = len(self.card.core) + 1
        low, high = LOG_VARIANCES
        below = high - np.logaddexp(0.0, high - x[..., outputs:-1])
        log_variance = low + np.logaddexp(0.0, below - low)
        return x[..., : outputs - 1], np.exp(log_variance[..., :-1])

    def save(self, folder: Path) -> ArtifactManifest:
        """Put the model into a folder of its own, whole or not at all."""
        text = to_json(self.card.model_dump(mode="json")) + "\n"
        return write_artifact(folder, KIND, {TENSORS: bytes_of(self.weights), CARD: text.encode()})

    @classmethod
    def load(cls, folder: Path) -> TeamForesight:
        """Read a model; a file with a single changed byte is refused."""
        _, files = read_artifact(folder, KIND)
        try:
            card: Mapping[str, object] = json.loads(files[CARD])
            return cls(
                ForesightCard.model_validate(card), tensors_of(checked_tensors(files[TENSORS]))
            )
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError("this is no model of the world", where=str(folder)) from error
