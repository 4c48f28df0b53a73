"""How large the noise of a market is, and how heavy its tails."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

FREEDOMS = (3.0, 4.0, 6.0, 9.0, 14.0, 30.0, 100.0, 1_000.0)
FEWEST = 24
SWEEPS = 30


def enough_returns(standard: FloatArray) -> FloatArray:
    """Return the standardised returns that are numbers; too few of them is a DataError."""
    values: FloatArray = standard[np.isfinite(standard)]
    if values.size < FEWEST or not values.any():
        raise DataError(
            "too few returns to learn from",
            where="umc",
            found=int(np.count_nonzero(values)),
            expected=f"at least {FEWEST} that are not all 0",
            remedy="Give it more bars",
        )
    return values


def student_noise(standard: FloatArray) -> tuple[float, float]:
    """Return scale and degrees of freedom of Student's law for standardised returns.

    Values that are not finite are left out.

    Example:
        >>> from agent_gym.core.seeds import Seeds
        >>> scale, freedom = student_noise(Seeds(0).rng().standard_normal(5_000))
        >>> round(scale, 1), freedom
        (1.0, 1000.0)
    """
    values = enough_returns(standard)
    fits = [(_likely_scale(values, freedom), freedom) for freedom in FREEDOMS]
    return max(fits, key=lambda fit: float(t.logpdf(values, fit[1], scale=fit[0]).sum()))


def _likely_scale(values: FloatArray, freedom: float) -> float:
    """Return the scale that makes the values most likely, by weighing far ones down."""
    squares = values**2
    square = float(squares.mean())
    for _ in range(SWEEPS):
        square = float(np.mean(squares * (freedom + 1.0) / (freedom + squares / square)))
    return math.sqrt(square)
