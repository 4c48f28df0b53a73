"""Tests for few pairs and for many tests: exact sign flips, and Holm's correction."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.statistics.samples import row_of

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
MAX_EXACT_PAIRS = 20
CHUNK = 1_000_000
# Sums in another order differ by rounding; a pattern as extreme as the one seen must count.
ROUNDING = 1e-12


def sign_flip(
    differences: ArrayLike,
    alternative: Alternative = "two-sided",
    *,
    seeds: Seeds | None = None,
    reps: int = 100_000,
) -> float:
    """Return the p-value of differences that are symmetric about 0 if nothing is going on.

    Up to 20 pairs all sign patterns are counted and the p-value is exact; it cannot be smaller than
    2 ** -n (twice that on two sides), so few pairs can never be highly significant. Beyond that
    ``reps`` patterns are drawn, and the one seen counts among them.

    Args:
        differences: One a pair; pairs must share their randomness.
        alternative: "greater" asks whether the mean is above 0.
        seeds: Where the patterns come from beyond 20 pairs; by default one fixed node.
        reps: Patterns to draw beyond 20 pairs.

    Example:
        >>> sign_flip([1.0, 2.0, 3.0, 4.0, 5.0], "greater")
        0.03125
    """
    row = row_of(differences)
    if alternative not in ("two-sided", "greater", "less"):
        raise DataError(
            "no such alternative", found=alternative, expected="two-sided, greater, less"
        )
    row = -row if alternative == "less" else row
    seen, slack = float(row.sum()), ROUNDING * float(np.abs(row).sum())
    two_sided = alternative == "two-sided"
    if row.size <= MAX_EXACT_PAIRS:
        least = abs(seen) - slack if two_sided else seen - slack
        count = _patterns_above(row, least)
        if two_sided:  # every pattern has its mirror image
            count = 2 * count if least > 0.0 else 2**row.size
        return count / 2.0**row.size
    rng = (seeds or Seeds(0)).child("sign flips").rng()
    size, count = max(1, CHUNK // row.size), 0
    for done in range(0, reps, size):
        signs = rng.integers(0, 2, size=(min(size, reps - done), row.size), dtype=np.int8)
        sums = 2.0 * (signs @ row) - seen
        count += _extreme(sums, seen - slack, abs(seen) - slack, two_sided)
    return (count + 1) / (reps + 1)


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values that hold for all tests together (Holm 1979), in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    row = row_of(p_values, least=0)
    if ((row < 0.0) | (row > 1.0)).any():
        raise DataError("a p-value lies between 0 and 1", found=row)
    order = np.argsort(row, kind="stable")
    steps = row[order] * np.arange(row.size, 0, -1)
    adjusted = np.empty_like(row)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def _patterns_above(row: FloatArray, least: float) -> int:
    """Count the sign patterns whose sum is at least ``least``.

    Both halves have few patterns; for each of one half it is looked up how many of the other do.
    """
    first, second = (_sums(half) for half in np.array_split(row, 2))
    second.sort()
    return int(np.sum(second.size - np.searchsorted(second, least - first, side="left")))


def _sums(row: FloatArray) -> FloatArray:
    sums = np.zeros(1)
    for value in row:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _extreme(sums: FloatArray, least: float, least_size: float, two_sided: bool) -> int:
    return int(np.sum(np.abs(sums) >= least_size if two_sided else sums >= least))
