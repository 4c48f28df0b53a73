"""The mean of a team over its last steps: what single updates do to it by chance averages out."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.agents.named_arrays import under
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.batch import Arrays

NUMBERS = "numbers/"


class MeanTeam:
    """A mean of networks in which the past fades with the steps that were played since.

    Args:
        steps: Steps after which a network counts 1/e of what it did; 0: nothing is kept.

    Example:
        >>> mean = MeanTeam(100)
        >>> mean.take_in({"w": np.array([1.0], np.float32)}, 100)
        >>> mean.take_in({"w": np.array([3.0], np.float32)}, 100)
        >>> [round(float(each), 3) for each in mean.weights()["w"]]
        [2.462]
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._total: dict[str, FloatArray] = {}
        self._mass = 0.0

    def take_in(self, weights: Arrays, env_steps: int) -> None:
        """Let a network count that came of so many more steps."""
        if not self._steps:
            return
        left = math.exp(-env_steps / self._steps)
        for name, array in weights.items():
            before = self._total.get(name, 0.0)
            self._total[name] = left * before + (1.0 - left) * array.astype(np.float64)
        self._mass = left * self._mass + (1.0 - left)

    def weights(self) -> Arrays | None:
        """Return the mean so far; None if nothing is kept."""
        if not self._mass:
            return None
        return {name: (each / self._mass).astype(np.float32) for name, each in self._total.items()}

    def state(self) -> Arrays:
        """Return all that decides how it goes on."""
        numbers = {f"{NUMBERS}{name}": each.copy() for name, each in self._total.items()}
        return numbers | {"mass": np.array([self._mass])}

    def restore(self, arrays: Arrays) -> None:
        """Go on where another mean stood."""
        self._total = {name: each.copy() for name, each in under(NUMBERS, arrays).items()}
        self._mass = float(arrays["mass"][0])
