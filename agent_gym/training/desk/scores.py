"""How good probabilities are: loss, calibration and ranking, each with weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics import Interval

CLIP = 1e-12
Z95 = 1.959963984540054


def losses(p: FloatArray, y: NDArray[np.int8]) -> FloatArray:
    """Return the log loss of each row."""
    said = np.where(y == 1, p, 1.0 - p)
    return np.asarray(-np.log(np.clip(said, CLIP, 1.0)))


def log_loss(p: FloatArray, y: NDArray[np.int8], weight: FloatArray) -> float:
    """Return the weighted mean log loss."""
    return float(np.average(losses(p, y), weights=weight))


@dataclass(frozen=True, slots=True)
class Brier:
    """Brier's score and Murphy's parts: score = reliability - resolution + uncertainty (+ rest)."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float

    def as_dict(self) -> dict[str, float]:
        """Return the parts by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def brier(p: FloatArray, y: NDArray[np.int8], weight: FloatArray, bins: int = 10) -> Brier:
    """Return Brier's score and its parts, in bins of equal count."""
    groups = bin_sums(p, y, weight, bins)
    share, mean_p, mean_y = groups
    overall = float(np.average(y, weights=weight))
    return Brier(
        score=float(np.average((p - y) ** 2, weights=weight)),
        reliability=float(share @ (mean_p - mean_y) ** 2),
        resolution=float(share @ (mean_y - overall) ** 2),
        uncertainty=overall * (1.0 - overall),
    )


def ece(p: FloatArray, y: NDArray[np.int8], weight: FloatArray, bins: int = 10) -> float:
    """Return the expected calibration error in bins of equal count.

    Example:
        >>> p = np.repeat([0.2, 0.8], 10)
        >>> ece(p, (np.arange(20) >= 10).astype(np.int8), np.ones(20), bins=2)
        0.2
    """
    share, mean_p, mean_y = bin_sums(p, y, weight, bins)
    return round(float(share @ np.abs(mean_p - mean_y)), 12)


def bin_sums(
    p: FloatArray, y: NDArray[np.int8], weight: FloatArray, bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the share, mean probability and mean label of each filled bin of equal count."""
    where = bin_of(p, bins)
    mass = np.bincount(where, weights=weight, minlength=bins)
    filled = mass > 0.0
    mean_p = np.bincount(where, weights=weight * p, minlength=bins)[filled] / mass[filled]
    mean_y = np.bincount(where, weights=weight * y, minlength=bins)[filled] / mass[filled]
    return mass[filled] / mass.sum(), mean_p, mean_y


def bin_of(p: FloatArray, bins: int) -> NDArray[np.int64]:
    """Return the bin of each value by rank; equal values share a bin."""
    ranks = rankdata(p, method="average")
    return np.minimum((ranks - 0.5) * bins / p.size, bins - 1).astype(np.int64)


def auc(p: FloatArray, y: NDArray[np.int8]) -> Interval | None:
    """Return the area under the ROC curve with DeLong's interval; None if a class is missing.

    Example:
        >>> found = auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], dtype=np.int8))
        >>> found.estimate
        0.75
    """
    wins, rest = p[y == 1], p[y == 0]
    m, n = wins.size, rest.size
    if m == 0 or n == 0:
        return None
    both = rankdata(np.concatenate([wins, rest]))
    # Placement values: the share of the other class that each score stands above.
    above = (both[:m] - rankdata(wins)) / n
    below = 1.0 - (both[m:] - rankdata(rest)) / m
    area = float(above.mean())
    variance = _variance(above) / m + _variance(below) / n
    reach = Z95 * math.sqrt(variance)
    return Interval(area, max(0.0, area - reach), min(1.0, area + reach), 0.95)


def _variance(values: FloatArray) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0
