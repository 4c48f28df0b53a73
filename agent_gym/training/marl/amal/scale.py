"""The scale of columns: mean and deviation of all rows that were ever taken in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray
from agent_gym.training.marl.batch import Arrays

SMALLEST = 1e-4
"""Below this a column does not move, and is left as it is."""


class Scale:
    """Counts, means and squares of columns, taken in window by window.

    Example:
        >>> scale = Scale(1)
        >>> scale.update(np.array([[1.0], [3.0]]))
        >>> scale.mean.tolist(), scale.spread.tolist()
        ([2.0], [1.0])
    """

    def __init__(self, width: int) -> None:
        self._count = 0.0
        self.mean: FloatArray = np.zeros(width)
        self._squares: FloatArray = np.zeros(width)

    def update(self, rows: NDArray[np.floating]) -> None:
        """Take in rows, ``[rows, width]``."""
        if not len(rows):
            return
        values = np.asarray(rows, np.float64)
        count, mean = len(values), values.mean(axis=0)
        total = self._count + count
        apart = mean - self.mean
        self._squares = (
            self._squares
            + np.square(values - mean).sum(axis=0)
            + np.square(apart) * (self._count * count / total)
        )
        self.mean = self.mean + apart * (count / total)
        self._count = total

    @property
    def spread(self) -> FloatArray:
        """Return the deviation of each column; 1 where it does not move."""
        spread = np.sqrt(self._squares / max(self._count, 1.0))
        return np.where(spread < SMALLEST, 1.0, spread)

    def scaled(self, rows: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return rows with mean 0 and deviation 1."""
        return ((rows - self.mean) / self.spread).astype(np.float32)

    def arrays(self) -> Arrays:
        """Return all it remembers."""
        return {"count": np.array([self._count]), "mean": self.mean, "squares": self._squares}

    def restore(self, arrays: Arrays) -> None:
        """Remember what another one did."""
        self._count = float(arrays["count"][0])
        self.mean, self._squares = arrays["mean"].copy(), arrays["squares"].copy()
