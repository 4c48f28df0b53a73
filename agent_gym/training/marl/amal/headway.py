"""Whether the primary team gets on by itself; if not, auxiliary teams are worth their steps."""

from __future__ import annotations

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.training.marl.batch import Arrays

MEMORIES = np.array([0.8, 0.95])
"""How slowly the two averages of returns move, an iteration."""
FEWEST = 10
"""Iterations before anything can be said."""


class Headway:
    """A fast and a slow average of the primary team's returns.

    Args:
        least: By what share of its size the fast one must lead the slow one to be getting on.

    Example:
        >>> headway = Headway(0.1)
        >>> for _ in range(20):
        ...     headway.take_in(1.0)
        >>> headway.stuck
        True
        >>> for reward in range(2, 10):
        ...     headway.take_in(reward)
        >>> headway.stuck
        False
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._sums: FloatArray = np.zeros(2)
        self._weights: FloatArray = np.zeros(2)
        self._seen = 0

    def take_in(self, mean_return: float | None) -> None:
        """Take in what an iteration's episodes came to; nothing, if none has ended."""
        if mean_return is None:
            return
        self._seen += 1
        self._sums = MEMORIES * self._sums + (1.0 - MEMORIES) * mean_return
        self._weights = MEMORIES * self._weights + (1.0 - MEMORIES)

    @property
    def stuck(self) -> bool:
        """Return whether returns have stopped to rise."""
        if self._seen < FEWEST:
            return False
        fast, slow = self._sums / self._weights
        return bool(fast - slow <= self._least * abs(slow))

    def state(self) -> Arrays:
        """Return all that it remembers."""
        return {"told": np.array([*self._sums, *self._weights, self._seen])}

    def restore(self, arrays: Arrays) -> None:
        """Remember what another one did."""
        told = arrays["told"]
        self._sums, self._weights, self._seen = told[:2].copy(), told[2:4].copy(), int(told[4])
