"""How alike two rankings of the same records are: pairs that flip, pairs that are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau

NEAR = 1e-9  # scores that differ by less are equal


def pair_signs(values: Sequence[float]) -> NDArray[np.int64]:
    """Return for each pair which of the two is larger: 1 the first, -1 the second, 0 neither."""
    row = np.asarray(values, dtype=np.float64)
    first, second = np.triu_indices(len(row), k=1)
    gaps = row[first] - row[second]
    return np.where(np.abs(gaps) <= NEAR, 0, np.sign(gaps)).astype(np.int64)


def flip_rate(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the share of pairs that two rankings put in opposite order; a tie is no flip.

    Example:
        >>> flip_rate([0.1, 0.5, 0.9], [0.2, 0.9, 0.5])
        0.3333333333333333
    """
    a, b = pair_signs(first), pair_signs(second)
    return float(np.mean(a * b < 0)) if a.size else None


def tie_share(values: Sequence[float]) -> float | None:
    """Return the share of pairs with equal scores."""
    signs = pair_signs(values)
    return float(np.mean(signs == 0)) if signs.size else None


def pairwise_accuracy(scores: Sequence[float], truth: Sequence[float]) -> float | None:
    """Return the share of pairs in the true order; a tie is half right, equal truth is no pair.

    Example:
        >>> pairwise_accuracy([0.1, 0.5, 0.5], [1.0, 2.0, 3.0])
        0.8333333333333334
    """
    said, real = pair_signs(scores), pair_signs(truth)
    counted = real != 0
    if not counted.any():
        return None
    return float(np.mean(0.5 + 0.5 * (said * real)[counted]))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Kendall's tau-b; None where one side holds all for equal."""
    if min(np.ptp(first), np.ptp(second)) <= NEAR:
        return None
    return float(kendalltau(first, second).statistic)
