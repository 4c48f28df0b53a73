"""The network of a team, in numpy: normalised layers, a memory if asked for, heads by name.

Inputs are normalised, go through layers of ``Linear, ReLU, LayerNorm``, then through a GRU if the
network is recurrent, and end in one linear head a name. Weights carry the names and layouts that
torch gives them, so that its twin (``agent_gym.training.marl.networks``) takes them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds

Floats: TypeAlias = NDArray[np.float32]
Weights: TypeAlias = Mapping[str, Floats]
RELU_GAIN = 2.0**0.5
NORM_EPSILON = 1e-5
WIDEST, DEEPEST = 4096, 64
"""Beyond is a typo: nothing here is wider than 128 or deeper than 2."""
ILLEGAL = -1e9
"""The logit of what may not be done: its chance is exactly 0, and sums stay finite."""


class NetworkConfig(Config):
    """The shape between inputs and heads; actor and critic share it, not its numbers."""

    hidden: int = Field(default=64, ge=1, le=WIDEST, description="width of every layer")
    layers: int = Field(default=2, ge=1, le=DEEPEST, description="how many layers")
    recurrent: bool = Field(default=False, description="remember within an episode, by a GRU")

    @property
    def memory(self) -> int:
        """Return how many numbers are carried from one step to the next."""
        return self.hidden if self.recurrent else 0


@dataclass(frozen=True, slots=True)
class HeadShape:
    """How wide a head is and how large its answers are at first."""

    width: int
    gain: float


def shapes_of(
    inputs: int, config: NetworkConfig, heads: Mapping[str, HeadShape]
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight by its name."""
    hidden = config.hidden
    shapes: dict[str, tuple[int, ...]] = {"norm.weight": (inputs,), "norm.bias": (inputs,)}
    for i in range(config.layers):
        shapes[f"layers.{i}.weight"] = (hidden, inputs if i == 0 else hidden)
        for name in (f"layers.{i}.bias", f"norms.{i}.weight", f"norms.{i}.bias"):
            shapes[name] = (hidden,)
    if config.recurrent:
        for side in ("ih", "hh"):
            shapes[f"memory.weight_{side}"] = (3 * hidden, hidden)
            shapes[f"memory.bias_{side}"] = (3 * hidden,)
        shapes["memory_norm.weight"] = shapes["memory_norm.bias"] = (hidden,)
    for name, head in heads.items():
        shapes[f"heads.{name}.weight"] = (head.width, hidden)
        shapes[f"heads.{name}.bias"] = (head.width,)
    return shapes


def first_weights(
    inputs: int, config: NetworkConfig, heads: Mapping[str, HeadShape], seeds: Seeds
) -> dict[str, Floats]:
    """Draw the weights a network begins with: orthogonal, and no bias.

    Every matrix has its own node of the seed tree, so another head changes nothing in the rest.
    """
    made: dict[str, Floats] = {}
    for name, shape in shapes_of(inputs, config, heads).items():
        room, _, kind = name.rpartition(".")
        if len(shape) == 1:
            fill = 1.0 if kind == "weight" else 0.0
            made[name] = np.full(shape, fill, np.float32)
            continue
        gain = heads[room.removeprefix("heads.")].gain if room.startswith("heads.") else 1.0
        gain = RELU_GAIN if room.startswith("layers.") else gain
        made[name] = _orthogonal(shape, gain, seeds.child(name))
    return made


def _orthogonal(shape: tuple[int, ...], gain: float, seeds: Seeds) -> Floats:
    """Return a matrix whose rows (or columns, if there are fewer) are orthogonal."""
    draws = seeds.rng().standard_normal((max(shape), min(shape)))
    q, r = np.linalg.qr(draws)
    q = q * np.sign(np.diag(r))
    return (gain * (q if shape[0] >= shape[1] else q.T)).astype(np.float32)


class Network:
    """Plays a network forward in the precision of its weights; it has no gradient.

    Args:
        config: Its shape.
        weights: Its numbers, by name.
    """

    def __init__(self, config: NetworkConfig, weights: Weights) -> None:
        self.config = config
        self._norm = weights["norm.weight"], weights["norm.bias"]
        self._layers = [
            (
                *_linear(weights, f"layers.{i}"),
                weights[f"norms.{i}.weight"],
                weights[f"norms.{i}.bias"],
            )
            for i in range(config.layers)
        ]
        self._cell = _Cell(weights) if config.recurrent else None
        names = [name.split(".")[1] for name in weights if name.startswith("heads.")]
        self._heads = {name: _linear(weights, f"heads.{name}") for name in dict.fromkeys(names)}

    def __call__(self, inputs: Floats, memory: Floats) -> tuple[dict[str, Floats], Floats]:
        """Return the answer of every head for rows ``[..., inputs]``, and what is remembered.

        Args:
            inputs: What is seen.
            memory: What is remembered, ``[..., memory]``; zeros where an episode begins.
        """
        x, memory = self.features(inputs, memory)
        return {name: x @ weight + bias for name, (weight, bias) in self._heads.items()}, memory

    def features(self, inputs: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Return what the heads are given, and what is remembered."""
        x = normalized(inputs, *self._norm)
        for weight, bias, scale, shift in self._layers:
            x = x @ weight
            x += bias
            np.maximum(x, 0.0, out=x)
            x = normalized(x, scale, shift)
        if self._cell is not None:
            memory = self._cell(x, memory)
            x = self._cell.read(memory)
        return x, memory


class _Cell:
    """A GRU cell, gates in the order of torch: reset, update, new."""

    def __init__(self, weights: Weights) -> None:
        self._seen = _linear(weights, "memory", "_ih")
        self._kept = _linear(weights, "memory", "_hh")
        self._norm = weights["memory_norm.weight"], weights["memory_norm.bias"]

    def __call__(self, x: Floats, memory: Floats) -> Floats:
        seen = np.split(x @ self._seen[0] + self._seen[1], 3, axis=-1)
        kept = np.split(memory @ self._kept[0] + self._kept[1], 3, axis=-1)
        reset, update = _sigmoid(seen[0] + kept[0]), _sigmoid(seen[1] + kept[1])
        new = np.tanh(seen[2] + reset * kept[2])
        after: Floats = (1 - update) * new + update * memory
        return after

    def read(self, memory: Floats) -> Floats:
        return normalized(memory, *self._norm)


def normalized(x: Floats, weight: Floats, bias: Floats) -> Floats:
    """Return rows with mean 0 and deviation 1, scaled and shifted."""
    share = x.dtype.type(1.0 / x.shape[-1])
    x = x - x.sum(axis=-1, keepdims=True) * share
    spread = np.einsum("...i,...i->...", x, x)[..., None] * share
    x /= np.sqrt(spread + x.dtype.type(NORM_EPSILON))
    x *= weight
    x += bias
    return x


def masked_log_probs(logits: Floats, legal: NDArray[np.bool_]) -> Floats:
    """Return the log of the chance of each action; what is not legal has none.

    Example:
        >>> row = masked_log_probs(np.zeros(3, np.float32), np.array([True, False, True]))
        >>> np.exp(row).tolist()
        [0.5, 0.0, 0.5]
    """
    x: Floats = np.where(legal, logits, logits.dtype.type(ILLEGAL))
    x -= x.max(axis=-1, keepdims=True)
    x -= np.log(np.exp(x).sum(axis=-1, keepdims=True))
    return x


def _linear(weights: Weights, name: str, side: str = "") -> tuple[Floats, Floats]:
    """Return a layer's matrix (inputs x outputs) and bias."""
    return np.ascontiguousarray(weights[f"{name}.weight{side}"].T), weights[f"{name}.bias{side}"]


def _sigmoid(x: Floats) -> Floats:
    risen: Floats = np.divide(1, 1 + np.exp(-x), dtype=x.dtype)
    return risen
