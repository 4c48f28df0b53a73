"""The policy of a team: one network that every agent asks for itself.

An agent's inputs are what it sees and which of the team it is. It knows nothing of what the others
see, so each agent could run it alone. Legal actions are part of the question: what may not be done
has no chance, while acting as well as while learning.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_of
from safetensors.numpy import save as bytes_of

from agent_gym.agents.artifact import (
    About,
    ArtifactManifest,
    model_hash_of,
    read_artifact,
    write_artifact,
)
from agent_gym.agents.marl.network import (
    Floats,
    HeadShape,
    Network,
    NetworkConfig,
    Weights,
    first_weights,
    masked_log_probs,
    shapes_of,
)
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

KIND = "marl/team"
WEIGHTS, CARD = "policy.safetensors", "policy.json"
ACTION = "action"
FIRST_GAIN = 0.01
"""How large logits are at first: nearly equal chances, so nothing is ruled out."""


class TeamContract(Config):
    """What a team is made for; widths are the numbers of names."""

    map: str = Field(description="the map it learned on")
    agents: int = Field(ge=1, description="how many agents are in the team")
    observation: tuple[str, ...] = Field(min_length=1, description="what an agent sees, by name")
    actions: tuple[str, ...] = Field(min_length=1, description="what an agent may do, by name")

    @property
    def inputs(self) -> int:
        """Return how many numbers the network sees: an observation, and which agent it is."""
        return len(self.observation) + self.agents

    @property
    def heads(self) -> dict[str, HeadShape]:
        """Return the heads of the network: one, with a logit for each action."""
        return {ACTION: HeadShape(len(self.actions), FIRST_GAIN)}


class Choice(NamedTuple):
    """What each agent does, how likely that was, and what it remembers from now on."""

    actions: NDArray[np.int64]
    log_probs: Floats
    entropy: Floats
    memory: Floats


def choose(log_probs: Floats, memory: Floats, draws: FloatArray | None = None) -> Choice:
    """Return an action for every agent: by chance if draws are given, else the likeliest."""
    chances = np.exp(log_probs)
    if draws is None:
        actions = log_probs.argmax(axis=-1)
    else:
        reach = chances.cumsum(axis=-1, dtype=np.float64)
        actions = (reach > draws[..., None] * reach[..., -1:]).argmax(axis=-1)
    taken = np.take_along_axis(log_probs, actions[..., None], -1)[..., 0]
    return Choice(actions, taken, -(chances * log_probs).sum(axis=-1), memory)


class _Card(Config):
    """All about a policy but its numbers."""

    kind: str = KIND
    config: NetworkConfig
    contract: TeamContract


class TeamPolicy:
    """Chances over actions for every agent of a team; it does not change once it is made."""

    def __init__(self, config: NetworkConfig, contract: TeamContract, weights: Weights) -> None:
        self.config = config
        self.contract = contract
        self.weights = {name: _frozen(weights[name]) for name in sorted(weights)}
        _check(self.weights, shapes_of(contract.inputs, config, contract.heads))
        self.files = {WEIGHTS: bytes_of(self.weights), CARD: self._card_bytes()}
        self.version = model_hash_of(self.files)
        self._network = Network(config, self.weights)
        self._ids = np.eye(contract.agents, dtype=np.float32)

    @classmethod
    def create(cls, config: NetworkConfig, contract: TeamContract, seeds: Seeds) -> TeamPolicy:
        """Draw the first weights."""
        return cls(config, contract, first_weights(contract.inputs, config, contract.heads, seeds))

    def memory(self, *rows: int) -> Floats:
        """Return what is remembered where an episode begins: nothing, for rows of teams."""
        return np.zeros((*rows, self.contract.agents, self.config.memory), np.float32)

    def log_probs(
        self, observations: Floats, legal: NDArray[np.bool_], memory: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log of the chance of each action, and what is remembered.

        Args:
            observations: What every agent of a team sees, ``[..., agents, features]``.
            legal: What each may do, ``[..., agents, actions]``.
            memory: What each remembers, ``[..., agents, memory]``.
        """
        heads, memory = self._network(self._inputs(observations), memory)
        return masked_log_probs(heads[ACTION], legal), memory

    def features(self, observations: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Return what the last layer is given, and what is remembered."""
        return self._network.features(self._inputs(observations), memory)

    def _inputs(self, observations: Floats) -> Floats:
        ids = np.broadcast_to(self._ids, (*observations.shape[:-1], self.contract.agents))
        return np.concatenate([observations, ids], axis=-1)

    def act(
        self,
        observations: Floats,
        legal: NDArray[np.bool_],
        memory: Floats,
        draws: FloatArray | None = None,
    ) -> Choice:
        """Choose an action for every agent.

        Args:
            observations: What every agent of a team sees, ``[..., agents, features]``.
            legal: What each may do.
            memory: What each remembers.
            draws: Numbers from 0 up to 1, one an agent, which decide by chance; without them each
                does what is likeliest.
        """
        return choose(*self.log_probs(observations, legal, memory), draws)

    def with_weights(self, weights: Weights) -> TeamPolicy:
        """Return the same policy with other numbers."""
        return TeamPolicy(self.config, self.contract, weights)

    def save(self, folder: Path, about: About | None = None) -> ArtifactManifest:
        """Put the policy into a folder of its own, whole or not at all."""
        return write_artifact(folder, KIND, self.files, about)

    @classmethod
    def load(cls, folder: Path) -> TeamPolicy:
        """Read a policy; a file with a single changed byte is refused."""
        _, files = read_artifact(folder, KIND)
        try:
            card = _Card.model_validate(json.loads(files[CARD]))
            return cls(card.config, card.contract, tensors_of(checked_tensors(files[WEIGHTS])))
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError(
                "this is no policy of a team", where=str(folder), found=error
            ) from error
        except AgentError as error:
            raise DataError(error.what, where=str(folder), found=error.found) from error

    def _card_bytes(self) -> bytes:
        card = _Card(config=self.config, contract=self.contract)
        return (to_json(card.model_dump(mode="json")) + "\n").encode()


def _frozen(array: Any) -> Floats:
    own = np.array(array, order="C")
    own.flags.writeable = False
    return own


def _check(weights: Weights, expected: Mapping[str, tuple[int, ...]]) -> None:
    found = {name: array.shape for name, array in weights.items()}
    if found != dict(expected):
        raise AgentError("the weights do not fit the network", found=found, expected=expected)
    kinds = {array.dtype.name for array in weights.values()}
    if len(kinds) != 1 or not kinds <= {"float32", "float64"}:
        raise AgentError("weights are of one kind", found=sorted(kinds), expected="float32")
    if bad := [name for name, array in weights.items() if not np.isfinite(array).all()]:
        raise AgentError("a weight is not a number", found=", ".join(bad))
