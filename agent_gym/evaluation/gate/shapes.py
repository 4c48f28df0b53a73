"""Noise of known shape, for asking the gate questions whose answers are known.

Gains are what the candidate wins over the baseline on a seed. Every shape has mean 0 and standard
deviation 1; "right" skew means rare big wins, which make the usual seed look like a loss. Metrics
of a suite are independent, or share a hidden factor that gives any two a correlation of 0.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr, ndtri, stdtrit

from agent_gym.core.types import FloatArray

ZERO_SHARE = 0.8
_REACH, _STEPS = 9.0, 3_600
_T3 = np.asarray(stdtrit(3.0, ndtr(np.linspace(-_REACH, _REACH, _STEPS + 1)))) / np.sqrt(3.0)


def _normal(z: FloatArray) -> FloatArray:
    return z


def _t3(z: FloatArray) -> FloatArray:
    """Student's t of three degrees of freedom, by a fine table of its quantiles."""
    place = np.clip((z + _REACH) * (_STEPS / (2.0 * _REACH)), 0.0, _STEPS - 1e-9)
    below = place.astype(np.int64)
    share = place - below
    return np.asarray(_T3[below] * (1.0 - share) + _T3[below + 1] * share, dtype=np.float64)


def _zeros(z: FloatArray) -> FloatArray:
    """Four of five values are 0, the others normal."""
    share = 1.0 - ZERO_SHARE
    # The lower tail keeps its digits, so the upper one is read off by symmetry.
    low = np.minimum(ndtr(-np.abs(z)) / share, 0.5)
    values = np.where(low < 0.5, -np.sign(z) * ndtri(low), 0.0)
    return np.asarray(values / np.sqrt(share), dtype=np.float64)


def _right(z: FloatArray) -> FloatArray:
    """An exponential law less its mean: skew 2."""
    return np.asarray(-log_ndtr(-z)) - 1.0


def _left(z: FloatArray) -> FloatArray:
    return -_right(-z)


def _lognormal(z: FloatArray) -> FloatArray:
    """A lognormal law less its mean: skew 6.2, harder than what the gate promises for."""
    values = (np.exp(z) - np.exp(0.5)) / np.sqrt((np.e - 1.0) * np.e)
    return np.asarray(values, dtype=np.float64)


SHAPES: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {"normal": _normal, "t3": _t3, "zeros80": _zeros, "left_skew": _left, "right_skew": _right}
)
HARDER: Mapping[str, Callable[[FloatArray], FloatArray]] = MappingProxyType(
    {"lognormal": _lognormal}
)
# What the hidden factor must be so that the values themselves correlate with 0.7.
LATENT = MappingProxyType(
    {
        "normal": 0.70,
        "t3": 0.76,
        "zeros80": 0.84,
        "left_skew": 0.737,
        "right_skew": 0.737,
        "lognormal": 0.79,
    }
)


def shaped(
    hidden: FloatArray, shape: str, rows: NDArray[np.int64], *, correlated: bool
) -> FloatArray:
    """Return gains of some metrics (rows) on every seed (columns).

    Args:
        hidden: Standard normal numbers, one row a seed: first the shared one, then one a metric.
        shape: Name of the law.
        rows: The metrics that are wanted.
        correlated: Whether metrics feel the shared number.
    """
    z = hidden.T[1:][rows]
    if correlated:
        share = LATENT[shape]
        z = np.sqrt(share) * hidden.T[:1] + np.sqrt(1.0 - share) * z
    return (SHAPES.get(shape) or HARDER[shape])(np.ascontiguousarray(z))
