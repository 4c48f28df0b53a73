"""Inputs in deviations from their mean, so that no unit and no level decides what a state is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """Mean and deviation of every input over the rows of a fit."""

    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, inputs: FloatArray) -> Scaling:
        """Measure a table; an input that is never known, or never moves, keeps its unit.

        Example:
            >>> scaling = Scaling.of(np.array([[1.0, np.nan], [3.0, np.nan]]))
            >>> scaling.centre.tolist(), scaling.scale.tolist()
            ([2.0, 0.0], [1.0, 1.0])
        """
        centre, scale = np.zeros(inputs.shape[1]), np.ones(inputs.shape[1])
        for d in range(inputs.shape[1]):
            known = inputs[np.isfinite(inputs[:, d]), d]
            # Divided by its largest number a column can be squared, however large that is.
            largest = float(np.abs(known).max(initial=0.0))
            if known.size == 0 or largest == 0.0:
                continue
            parts = known / largest
            centre[d] = parts.mean() * largest
            spread = float(parts.std())
            if spread > 1e-12:
                scale[d] = spread * largest
        return cls(centre, scale)

    def applied(self, inputs: FloatArray, largest: float) -> FloatArray:
        """Return a table in deviations, clipped at the largest; what is not finite is NaN."""
        known = np.isfinite(inputs)
        with np.errstate(over="ignore"):
            scores = (np.where(known, inputs, 0.0) - self.centre) / self.scale
        return np.ascontiguousarray(np.where(known, np.clip(scores, -largest, largest), np.nan))
