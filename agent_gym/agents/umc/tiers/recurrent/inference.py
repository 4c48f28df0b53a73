"""The fitted recurrent model at work: one bar at a time, in float64, without torch.

Everything that is carried from bar to bar is in one flat memory: that of the network, and the
forecast for the bar to come in deviations. So a series may be shown in any pieces and the numbers
are the same, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.tiers.contract import Forecasts, Series
from agent_gym.agents.umc.tiers.recurrent.kernel import follow
from agent_gym.agents.umc.tiers.recurrent.observation import observe
from agent_gym.agents.umc.tiers.recurrent.weights import (
    names_in,
    network_in,
    normaliser_in,
    part,
)
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

COLUMNS, EMBEDDING, MEMORY, LATENT, HEADS, HEAD_WIDTH, WIDTH, COMPONENTS = range(8)


class RecurrentFilter:
    """A fitted model that follows series; made from its arrays alone."""

    def __init__(self, model: Mapping[str, NDArray[Any]]) -> None:
        self.names = names_in(model)
        self._normaliser = normaliser_in(model)
        self._sizes, self._layers = _packed(network_in(model))

    @property
    def heads(self) -> int:
        """Return how many models were fitted on resampled pasts."""
        return int(self._sizes[HEADS])

    @property
    def memory_size(self) -> int:
        """Return how many numbers the memory of the network has."""
        return int(self._sizes[MEMORY])

    def begin(self) -> FloatArray:
        """Return the memory before the first bar, without a forecast."""
        parts = int(self._sizes[HEADS] * self._sizes[COMPONENTS])
        return np.concatenate([np.zeros(self.memory_size), np.full(3 * parts, math.nan)])

    def filter(self, seen: Series, memory: FloatArray) -> Forecasts:
        """Follow the bars and move the memory on in place."""
        self._check(seen, memory)
        observed = observe(seen, self._normaliser)
        rows = np.column_stack((seen.standard, observed.values, observed.known))
        heads, latent = int(self._sizes[HEADS]), int(self._sizes[LATENT])
        out = np.empty((len(seen), 2 * heads + 1 + latent))
        follow(np.ascontiguousarray(rows), self._layers, self._sizes, memory, out)
        return Forecasts(
            chance=np.full((len(seen), heads), 1.0 / heads),
            mean=out[:, :heads] * seen.sigma[:, None],
            variance=out[:, heads : 2 * heads] * seen.sigma[:, None] ** 2,
            score=out[:, 2 * heads] - np.log(seen.expected_sigma),
            belief=out[:, 2 * heads + 1 :].copy(),
        )

    def _check(self, seen: Series, memory: FloatArray) -> None:
        if seen.names != self.names:
            raise DataError(
                "the series has other inputs than the model was fitted on",
                where="umc/recurrent",
                found=", ".join(seen.names) or "none",
                expected=", ".join(self.names) or "none",
            )
        expected = self.begin()
        if memory.shape != expected.shape or memory.dtype != expected.dtype:
            raise DataError(
                "the memory is not of this model",
                where="umc/recurrent",
                found=f"{memory.dtype} of shape {memory.shape}",
                expected=f"{expected.dtype} of shape {expected.shape}",
                remedy="Begin with begin() of the same model",
            )


def _packed(network: Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the sizes and one flat copy of all layers, in the order in which they are read."""

    def array(name: str) -> FloatArray:
        return np.asarray(part(network, name), dtype=np.float64)

    out, bias = array("return_out"), array("return_bias")
    heads, head_width, told = out.shape
    missing, embed, size = array("missing"), array("embed.bias"), array("gru.bias_hh_l0").size // 3
    width, latent = array("posterior_in.bias").size, array("posterior_out.bias").size // 2
    sizes = (missing.size, embed.size, size, latent, heads, head_width, width, told // 3)
    linear = array("shortcut") if "shortcut" in network else np.zeros((heads, missing.size))
    layers = [
        (missing, np.empty(0)),
        (embed, array("embed.weight").T),
        (array("gru.bias_ih_l0"), array("gru.weight_ih_l0").T),
        (array("gru.bias_hh_l0"), array("gru.weight_hh_l0").T),
        (array("posterior_in.bias"), array("posterior_in.weight").T),
        (array("posterior_out.bias")[:latent], array("posterior_out.weight")[:latent].T),
        (array("return_in.bias"), array("return_in.weight").T),
        (np.zeros(heads), linear.T),
        *((bias[k], out[k]) for k in range(heads)),
    ]
    flat = [numbers.ravel() for layer in layers for numbers in layer]
    return np.array(sizes, dtype=np.int64), np.concatenate(flat)
