"""The scale of values: a critic learns targets of mean 0 and deviation 1, whatever is paid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray

SMALLEST_VARIANCE = 1e-2


class ValueNorm:
    """A moving mean and deviation of targets, without the pull of where it began.

    Args:
        memory: What the past counts when something new is seen; 0 forgets it at once.

    Example:
        >>> norm = ValueNorm(0.9)
        >>> norm.update(np.array([1.0, 3.0]))
        >>> norm.normalize(np.array([4.0])).tolist()
        [2.0]
    """

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._sums: FloatArray = np.zeros(3)  # of values, of squares, of weights

    def update(self, targets: NDArray[np.floating]) -> None:
        """Take in the targets of an iteration."""
        values = np.asarray(targets, np.float64)
        seen = np.array([values.mean(), np.square(values).mean(), 1.0])
        self._sums = self._memory * self._sums + (1.0 - self._memory) * seen

    @property
    def mean_and_spread(self) -> tuple[float, float]:
        """Return mean and deviation; 0 and 1 as long as nothing was seen."""
        total, squares, weight = self._sums
        if weight == 0.0:
            return 0.0, 1.0
        mean = total / weight
        return float(mean), float(np.sqrt(max(squares / weight - mean**2, SMALLEST_VARIANCE)))

    def normalize(self, values: FloatArray) -> FloatArray:
        """Return values as a critic is taught them."""
        mean, spread = self.mean_and_spread
        return (values - mean) / spread

    def denormalize(self, values: NDArray[np.floating]) -> FloatArray:
        """Return what a critic says in units of the reward."""
        mean, spread = self.mean_and_spread
        return np.asarray(values, np.float64) * spread + mean

    def array(self) -> FloatArray:
        """Return all it remembers."""
        return self._sums.copy()

    def restore(self, array: FloatArray) -> None:
        """Remember what another one did."""
        self._sums = np.array(array, np.float64)
