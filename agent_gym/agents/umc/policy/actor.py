"""The trained actor at work: no torch, no chance, the same numbers in any pieces.

The arrays of an actor are the parameters of its network (``weight_0``, ``bias_0``, ... with the
member as first axis), the level and deviation of what it sees, and the levels it chooses from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.policy.kernel import decide_bars
from agent_gym.agents.umc.policy.lessons import WHERE, check_levels, check_shape
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

LARGEST_SEEN = 8.0
"""Where a scaled number that the actor sees is cut."""
MEAN, DEVIATION, LEVELS = "normaliser/mean", "normaliser/deviation", "levels"


class Actor:
    """A trained ensemble that takes the likeliest level; made from its arrays alone."""

    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        self._mean, self._deviation, self.levels = (
            _part(weights, name) for name in (MEAN, DEVIATION, LEVELS)
        )
        check_levels(self.levels)
        check_shape(MEAN, self._mean, (self._mean.size,))
        check_shape(DEVIATION, self._deviation, self._mean.shape)
        self._sizes, self._layers = _packed(weights, self._mean.size, self.levels)

    def begin(self) -> FloatArray:
        """Return the memory before the first bar: the position held, which is none."""
        return np.zeros(1)

    def decide(self, states: FloatArray, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return target positions and the chances of each level, and move the memory on.

        Args:
            states: What is known at the close of each bar, (bar, column).
            memory: The position held, see begin(). Whoever could not get the last target puts
                the position in its place.
        """
        check_shape("states", states, (states.shape[0], self._mean.size))
        check_shape("memory", memory, (1,))
        if not (np.isfinite(states).all() and np.isfinite(memory).all()):
            raise DataError("a state or the position held is not a number", where=WHERE)
        rows = np.ascontiguousarray(scaled(states, self._mean, self._deviation))
        out = np.empty((states.shape[0], self.levels.size + 1))
        decide_bars(rows, self._layers, self.levels, self._sizes, memory, out)
        return out[:, -1].copy(), out[:, :-1].copy()


def scaled(states: FloatArray, mean: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return states in deviations from their level."""
    cut: FloatArray = np.clip((states - mean) / deviation, -LARGEST_SEEN, LARGEST_SEEN)
    return cut


def reach_of(levels: FloatArray) -> float:
    """Return the largest position: what is held is seen as a share of it."""
    return float(np.abs(levels).max())


def _part(weights: Mapping[str, NDArray[Any]], name: str) -> FloatArray:
    if name not in weights:
        raise DataError(
            "the weights are not those of an actor",
            where=f"{WHERE}, {name}",
            found=f"{len(weights)} arrays without it",
            remedy="Give what ActorFit.model() returned",
        )
    return np.array(weights[name], dtype=np.float64)


def _packed(
    weights: Mapping[str, NDArray[Any]], columns: int, levels: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return sizes and one flat copy of all layers, member by member."""
    depth = sum(name.startswith("weight_") for name in weights) - 1
    layers = [
        (_part(weights, f"weight_{i}"), _part(weights, f"bias_{i}"))
        for i in range(max(depth, 1) + 1)
    ]
    members, _, width = layers[0][0].shape
    rows, ends = (columns + 1, *(width,) * depth), (*(width,) * depth, levels.size)
    for i, (weight, bias) in enumerate(layers):
        check_shape(f"weight_{i}", weight, (members, rows[i], ends[i]))
        check_shape(f"bias_{i}", bias, (members, 1, ends[i]))
    layers[0][0][:, -1] /= reach_of(levels)
    flat = [array[k].ravel() for k in range(members) for layer in layers for array in layer[::-1]]
    return np.array((members, width, depth), dtype=np.int64), np.concatenate(flat)
