"""The level and deviation of inputs, learned from a past."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray

SMALLEST_SPREAD = 1e-9
"""A column whose deviation is below that, next to its size, is taken to be constant."""


@dataclass(frozen=True, slots=True, eq=False)
class Normaliser:
    """The level and deviation of each input in the bars it was fitted on.

    Attributes:
        mean: Level of each column.
        deviation: Deviation of each column, 1 for a constant one.
        usable: 1 for each column that was ever known, else 0: nothing was learned from it.
    """

    mean: FloatArray
    deviation: FloatArray
    usable: FloatArray

    @classmethod
    def fitted(cls, inputs: FloatArray) -> Normaliser:
        """Return the normaliser of these rows.

        Example:
            >>> found = Normaliser.fitted(np.array([[1.0, np.nan], [3.0, np.nan]]))
            >>> found.mean.tolist(), found.deviation.tolist(), found.usable.tolist()
            ([2.0, 0.0], [1.0, 1.0], [1.0, 0.0])
        """
        known = np.isfinite(inputs)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, inputs, 0.0).sum(axis=0) / count
        squares = np.where(known, inputs - mean, 0.0) ** 2
        deviation = np.sqrt(squares.sum(axis=0) / count)
        deviation[deviation <= SMALLEST_SPREAD * (1.0 + np.abs(mean))] = 1.0
        return cls(mean, deviation, np.asarray(known.any(axis=0), dtype=np.float64))

    def scaled(self, inputs: FloatArray) -> FloatArray:
        """Return the inputs in deviations from their level, NaN where nothing can be said."""
        with np.errstate(all="ignore"):  # what is not a number here is unknown there
            units = (inputs - self.mean) / self.deviation
        told: FloatArray = np.where(np.isfinite(units) & (self.usable > 0.0), units, np.nan)
        return told
