"""Where a fit starts: short stretches of the past, grouped by how they lie and how they shake.

Single rows would group by mean only, and would miss states that differ in nothing but variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

SPANS_BARS = (24, 8, 72)
ROUNDS = 12
LEAST_STRETCHES = 8


def start_groups(rows: FloatArray, states: int, restart: int, seeds: Seeds) -> NDArray[np.int64]:
    """Return a group for each row, by k-means over stretches; another length at each restart."""
    longest = max(1, len(rows) // (LEAST_STRETCHES * states))
    span = min(SPANS_BARS[restart % len(SPANS_BARS)], longest)
    points = stretches(rows, span)
    groups = _grouped(points, states, seeds.child(states, restart).rng())
    return np.repeat(groups, span)[: len(rows)]


def stretches(rows: FloatArray, span: int) -> FloatArray:
    """Return mean and log deviation of each input over stretches of the given length."""
    cuts = np.arange(0, len(rows), span)
    known = np.isfinite(rows)
    filled = np.where(known, rows, 0.0)
    weights = np.maximum(np.add.reduceat(known.astype(np.float64), cuts, axis=0), 1.0)
    means = np.add.reduceat(filled, cuts, axis=0) / weights
    squares = np.add.reduceat(filled**2, cuts, axis=0) / weights
    spreads = np.log(np.sqrt(np.maximum(squares - means**2, 0.0)) + 0.1)
    return np.concatenate([means, spreads], axis=1) if span > 1 else means


def _grouped(points: FloatArray, states: int, rng: np.random.Generator) -> NDArray[np.int64]:
    centres = points[rng.integers(len(points))][None, :]
    for _ in range(states - 1):  # each next centre is likely to be far from those before it
        gaps = _gaps(points, centres).min(axis=1)
        total = gaps.sum()
        chosen = np.searchsorted(np.cumsum(gaps), rng.random() * total) if total > 0.0 else 0
        centres = np.vstack([centres, points[min(int(chosen), len(points) - 1)]])
    groups = _nearest(points, centres)
    for _ in range(ROUNDS):
        for k in range(states):
            if (groups == k).any():
                centres[k] = points[groups == k].mean(axis=0)
        groups = _nearest(points, centres)
    return groups


def _nearest(points: FloatArray, centres: FloatArray) -> NDArray[np.int64]:
    return np.asarray(_gaps(points, centres).argmin(axis=1), dtype=np.int64)


def _gaps(points: FloatArray, centres: FloatArray) -> FloatArray:
    gaps: FloatArray = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return gaps
