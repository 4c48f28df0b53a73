"""The critic of a team, kept beside its policy: what it expects of each moment, in rewards to come.

Nobody needs it to play. It is what a recorded battle shows as the value, so it is played in numpy
like the policy, and knows the policy that it judged by its hash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import ArtifactManifest, read_artifact, write_artifact
from agent_gym.agents.marl.network import (
    Floats,
    HeadShape,
    Network,
    NetworkConfig,
    Weights,
    shapes_of,
)
from agent_gym.agents.marl.policy import TeamContract
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray

KIND = "marl/critic"
WEIGHTS, CARD = "critic.safetensors", "critic.json"


class ValueHead(Config):
    """The name of a reward, and what answers of 0 and of 1 mean in its units."""

    name: str
    mean: float
    spread: float = Field(gt=0)


class CriticCard(Config):
    """All about a critic but its numbers."""

    kind: str = KIND
    policy: str = Field(description="hash of the policy that it judged")
    config: NetworkConfig
    contract: TeamContract
    state: int = Field(ge=0, description="numbers of the whole battle that it sees; 0: none")
    heads: tuple[ValueHead, ...] = Field(min_length=1, description="the team's own reward first")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight by its name."""
        heads = {head.name: HeadShape(1, 1.0) for head in self.heads}
        return shapes_of(self.state + self.contract.inputs, self.config, heads)


class TeamCritic:
    """What a team may expect, by the name of the reward, for every agent."""

    def __init__(self, card: CriticCard, weights: Weights) -> None:
        found = {name: array.shape for name, array in weights.items()}
        if found != card.shapes or not all(np.isfinite(each).all() for each in weights.values()):
            raise DataError("the weights do not fit the critic", found=found, expected=card.shapes)
        self.card, self.policy = card, card.policy
        self.weights = {name: np.array(weights[name], order="C") for name in sorted(weights)}
        self._network = Network(card.config, self.weights)

    def memory(self, *rows: int) -> Floats:
        """Return what is remembered where an episode begins."""
        return np.zeros((*rows, self.card.contract.agents, self.card.config.memory), np.float32)

    def values(
        self, observations: Floats, state: Floats, memory: Floats
    ) -> tuple[dict[str, FloatArray], Floats]:
        """Return what each agent may expect, by head, and what is remembered.

        Args:
            observations: What every agent sees, ``[..., agents, features]``.
            state: The whole battle, ``[..., features]``.
            memory: What is remembered, ``[..., agents, memory]``.
        """
        agents, rows = self.card.contract.agents, observations.shape[:-1]
        ids = np.broadcast_to(np.eye(agents, dtype=np.float32), (*rows, agents))
        parts = [observations, ids]
        if self.card.state:
            whole = np.broadcast_to(state[..., None, :], (*rows, state.shape[-1]))
            parts.insert(0, whole)
        heads, memory = self._network(np.concatenate(parts, axis=-1), memory)
        return {
            head.name: heads[head.name][..., 0].astype(np.float64) * head.spread + head.mean
            for head in self.card.heads
        }, memory

    def save(self, folder: Path) -> ArtifactManifest:
        """Put the critic into a folder of its own, whole or not at all."""
        text = to_json(self.card.model_dump(mode="json")) + "\n"
        return write_artifact(folder, KIND, {WEIGHTS: bytes_of(self.weights), CARD: text.encode()})

    @classmethod
    def load(cls, folder: Path) -> TeamCritic:
        """Read a critic; a file with a single changed byte is refused."""
        _, files = read_artifact(folder, KIND)
        try:
            card: Mapping[str, object] = json.loads(files[CARD])
            return cls(CriticCard.model_validate(card), tensors_of(checked_tensors(files[WEIGHTS])))
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError("this is no critic of a team", where=str(folder)) from error
