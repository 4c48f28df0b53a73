"""Tests of patterns in counts and times, and the price of asking many of them at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr
from scipy.stats import hypergeom, kendalltau

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import row_of


def benjamini_hochberg(p_values: ArrayLike) -> FloatArray:
    """Return p-values whose share of false finds is bounded (Benjamini and Hochberg 1995).

    Example:
        >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.04, 0.04]
    """
    row = row_of(p_values, least=0)
    order = np.argsort(row, kind="stable")[::-1]
    ranks = np.arange(row.size, 0, -1)
    adjusted = np.empty_like(row)
    adjusted[order] = np.minimum(np.minimum.accumulate(row[order] * row.size / ranks), 1.0)
    return adjusted


def enrichment_p(both: int, with_a: int, with_b: int, total: int) -> float:
    """Return Fisher's exact p-value that A and B meet so often by chance, or more often.

    Example:
        >>> round(enrichment_p(3, 3, 3, 6), 3)
        0.05
    """
    return float(hypergeom.sf(both - 1, total, with_a, with_b))


def share_trend_p(times: ArrayLike, happened: ArrayLike) -> float | None:
    """Return the two-sided p-value that a share does not change with time (Cochran, Armitage).

    None where everything happened at once, always or never.
    """
    time, flag = row_of(times, least=0), row_of(happened, least=0)
    if time.size < 3:
        return None
    gaps, share = time - time.mean(), float(flag.mean())
    spread = share * (1.0 - share) * float(gaps @ gaps)
    if spread <= 0.0:
        return None
    return 2.0 * float(ndtr(-abs(float(gaps @ flag)) / math.sqrt(spread)))


def level_trend_p(values: ArrayLike) -> float | None:
    """Return Kendall's two-sided p-value that a series neither rises nor falls."""
    row = row_of(values, least=0)
    if row.size < 4 or np.ptp(row) == 0.0:
        return None
    return float(kendalltau(np.arange(row.size), row).pvalue)
