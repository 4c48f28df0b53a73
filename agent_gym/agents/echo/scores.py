"""How good an echo is: growth after costs, less what it shares with the best.

These are figures for selection, not accounts: echoes have no orders, no margin and no ledger. The
money of whoever trades against them is kept by the venue alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray


def correlations(series: FloatArray, others: FloatArray) -> FloatArray:
    """Return the correlation of each column with each other column; 0 where one stands still."""
    one, two = series - series.mean(axis=0), others - others.mean(axis=0)
    scale = np.outer(np.sqrt((one**2).sum(axis=0)), np.sqrt((two**2).sum(axis=0)))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (one.T @ two) / scale
    return np.where(scale > 1e-18, np.clip(found, -1.0, 1.0), 0.0)


def elite_of(growth: FloatArray, share: float) -> NDArray[np.intp]:
    """Return which columns grew most, best first; at least one, if there are any."""
    count = min(growth.shape[1], max(1, round(share * growth.shape[1])))
    order = np.argsort(-growth.sum(axis=0), kind="stable")
    return order[:count]


def crowding(growth: FloatArray, elite: FloatArray) -> FloatArray:
    """Return for each column the mean size of its correlation to the elite's columns.

    Example:
        >>> up = np.array([0.0, 1.0, 0.0, 1.0])
        >>> still = np.zeros(4)
        >>> crowding(np.column_stack([up, -up, still]), up[:, None]).round(6).tolist()
        [1.0, 1.0, 0.0]
    """
    if elite.shape[1] == 0:
        return np.zeros(growth.shape[1])
    shared: FloatArray = np.abs(correlations(growth, elite)).mean(axis=1)
    return shared


def live_fitness(growth: FloatArray, share: float, weight: float) -> FloatArray:
    """Return each echo's growth over the window less its crowding; nobody crowds itself."""
    total: FloatArray = growth.sum(axis=0)
    n = growth.shape[1]
    if n == 0:
        return total
    best = elite_of(growth, share)
    shared = np.abs(correlations(growth, growth[:, best]))
    own = best[None, :] == np.arange(n)[:, None]
    others = (~own).sum(axis=1)
    mean = np.where(own, 0.0, shared).sum(axis=1) / np.maximum(others, 1)
    fitness: FloatArray = total - weight * mean
    return fitness


def measures(positions: FloatArray, momentum: FloatArray) -> FloatArray:
    """Return turnover a bar, mean exposure and correlation to momentum, one row an echo."""
    before = np.vstack([np.zeros((1, positions.shape[1])), positions[:-1]])
    turnover = np.abs(positions - before).mean(axis=0)
    exposure = positions.mean(axis=0)
    likeness = correlations(positions, momentum[:, None])[:, 0]
    return np.column_stack([turnover, exposure, likeness])
