"""The policy itself: a few small layers in numpy, float64 throughout.

Torch computes the same network while it is trained; in double precision the two agree to about
1e-15, so a log-probability that was recorded while acting is that of the trainer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError, field_validator
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
from agent_gym.agents.neural.layout import PolicyInputs
from agent_gym.agents.tensor_file import checked_tensors
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.files import to_json
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

KIND = "neural/market"
WEIGHTS, CARD = "policy.safetensors", "policy.json"
FIRST_SCALE = 0.01
"""How large the last layer begins: chances start out nearly equal, so nothing is ruled out."""
SMALLEST_SPREAD = 1e-8
POSITION = "position"
"""The feature of a market that says what is held there, as a share of its budget."""


class NeuralConfig(Config):
    """The shape of the network and what its answers mean."""

    levels: tuple[float, ...] = Field(
        default=(-1.0, 0.0, 1.0), min_length=2, description="target positions it chooses from"
    )
    hidden: tuple[int, ...] = Field(default=(32,), min_length=1, description="width of each layer")
    clip: float = Field(default=10.0, gt=0, description="where scaled inputs are cut")
    inertia: float = Field(
        default=0.0,
        ge=0,
        description="how much it leans to what it holds: taken off a level's logit, times the "
        "square of its distance from the position; needs a world that shows one",
    )

    @field_validator("levels")
    @classmethod
    def _rising(cls, levels: tuple[float, ...]) -> tuple[float, ...]:
        if any(b <= a for a, b in pairwise(levels)):
            raise ValueError("levels must rise")
        return levels

    @field_validator("hidden")
    @classmethod
    def _positive(cls, hidden: tuple[int, ...]) -> tuple[int, ...]:
        if min(hidden) < 1:
            raise ValueError("a layer needs at least one unit")
        return hidden


class _Card(Config):
    """All about a policy but its numbers."""

    kind: str = KIND
    config: NeuralConfig
    inputs: PolicyInputs


class NeuralPolicy:
    """Chances over target positions for each market; it does not change once it is made.

    ``weights`` holds ``offset`` and ``scale`` of the inputs and ``layers.I.weight`` (inputs x
    outputs) and ``layers.I.bias`` for each layer.
    """

    def __init__(
        self, config: NeuralConfig, inputs: PolicyInputs, weights: Mapping[str, FloatArray]
    ) -> None:
        self.config = config
        self.inputs = inputs
        self.weights = {name: _frozen(weights[name]) for name in sorted(weights)}
        self.levels = np.array(config.levels)
        _check_shapes(self.weights, config, inputs)
        self._position = _place_of_position(config, inputs)
        self.files = {WEIGHTS: bytes_of(self.weights), CARD: self._card_bytes()}
        self.version = model_hash_of(self.files)
        self._layers = [
            (self.weights[f"layers.{i}.weight"], self.weights[f"layers.{i}.bias"])
            for i in range(len(config.hidden) + 1)
        ]

    @classmethod
    def create(
        cls,
        config: NeuralConfig,
        inputs: PolicyInputs,
        seeds: Seeds,
        sample: FloatArray | None = None,
    ) -> NeuralPolicy:
        """Draw the first weights.

        Args:
            config: The shape.
            inputs: The features it will look at.
            seeds: Where the weights are drawn from.
            sample: Rows of inputs, ``[..., width]``; their mean and spread then scale what the
                network sees. This is part of the policy, and training never changes it.
        """
        offset, scale = np.zeros(inputs.width), np.ones(inputs.width)
        if sample is not None:
            rows = np.asarray(sample, dtype=np.float64).reshape(-1, inputs.width)
            spread = rows.std(axis=0)
            offset = rows.mean(axis=0)
            scale = 1.0 / np.where(spread > SMALLEST_SPREAD, spread, 1.0)
        weights = {"offset": offset, "scale": scale}
        widths = (inputs.width, *config.hidden, len(config.levels))
        for i, (before, after) in enumerate(pairwise(widths)):
            last = FIRST_SCALE if i == len(config.hidden) else 1.0
            draws = seeds.child("layer", i).rng().standard_normal((before, after))
            weights[f"layers.{i}.weight"] = draws * (last / np.sqrt(before))
            weights[f"layers.{i}.bias"] = np.zeros(after)
        return cls(config, inputs, weights)

    def log_probs(self, blocks: FloatArray) -> FloatArray:
        """Return the log of the chance of each level, for each row of inputs ``[..., width]``."""
        clip = self.config.clip
        x = (blocks - self.weights["offset"]) * self.weights["scale"]
        x = np.minimum(np.maximum(x, -clip), clip)
        for weight, bias in self._layers[:-1]:
            x = np.tanh(x @ weight + bias)
        weight, bias = self._layers[-1]
        x = x @ weight + bias
        if self._position is not None:
            x -= self.pull(blocks)
        x -= x.max(axis=-1, keepdims=True)
        x -= np.log(np.exp(x).sum(axis=-1, keepdims=True))
        return x

    def pull(self, blocks: FloatArray) -> FloatArray:
        """Return what its inertia takes off the logit of each level, for each row of inputs."""
        if self._position is None:
            return np.zeros((*blocks.shape[:-1], len(self.levels)))
        far = self.levels - blocks[..., self._position, np.newaxis]
        return self.config.inertia * far * far

    def with_weights(self, weights: Mapping[str, FloatArray]) -> NeuralPolicy:
        """Return the same policy with other numbers in its layers."""
        return NeuralPolicy(self.config, self.inputs, {**self.weights, **weights})

    def save(self, folder: Path, about: About | None = None) -> ArtifactManifest:
        """Put the policy into a folder of its own, whole or not at all."""
        return write_artifact(folder, KIND, self.files, about)

    @classmethod
    def load(cls, folder: Path) -> NeuralPolicy:
        """Read a policy; a file with a single changed byte is refused."""
        _, files = read_artifact(folder, KIND)
        try:
            card = _Card.model_validate(json.loads(files[CARD]))
            weights = tensors_of(checked_tensors(files[WEIGHTS]))
        except (KeyError, ValueError, ValidationError, SafetensorError) as error:
            raise DataError("this is no neural policy", where=str(folder), found=error) from error
        try:
            return cls(card.config, card.inputs, weights)
        except AgentError as error:
            raise DataError(error.what, where=str(folder), found=error.found) from error

    def _card_bytes(self) -> bytes:
        card = _Card(config=self.config, inputs=self.inputs)
        return (to_json(card.model_dump(mode="json")) + "\n").encode()


def _frozen(array: Any) -> FloatArray:
    own = np.array(array, dtype=np.float64, order="C")
    own.flags.writeable = False
    return own


def _place_of_position(config: NeuralConfig, inputs: PolicyInputs) -> int | None:
    """Return which input is the position; None if it has no part in the decision."""
    if config.inertia == 0:
        return None
    if POSITION not in inputs.market:
        raise AgentError(
            "a policy with inertia must see what it holds",
            where="inertia",
            found=", ".join(inputs.market),
            expected=f"a feature {POSITION!r} of each market",
            remedy="Set inertia to 0, or play in a world that shows the position",
        )
    return inputs.market.index(POSITION)


def _check_shapes(
    weights: Mapping[str, FloatArray], config: NeuralConfig, inputs: PolicyInputs
) -> None:
    widths = (inputs.width, *config.hidden, len(config.levels))
    expected: dict[str, tuple[int, ...]] = {"offset": widths[:1], "scale": widths[:1]}
    for i, (before, after) in enumerate(pairwise(widths)):
        expected[f"layers.{i}.weight"] = (before, after)
        expected[f"layers.{i}.bias"] = (after,)
    found = {name: array.shape for name, array in weights.items()}
    if found != expected:
        raise AgentError("the weights do not fit the network", found=found, expected=expected)
    if bad := [name for name, array in weights.items() if not np.isfinite(array).all()]:
        raise AgentError("a weight is not a number", found=", ".join(bad))
