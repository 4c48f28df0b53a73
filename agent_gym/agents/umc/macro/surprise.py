"""How surprising the shares of cycles are, each by itself and the most surprising of them all.

Whoever looks at many cycles finds one that stands out, in every series. So a cycle is held against
the most outstanding cycle of each surrogate, whichever that is. The series itself is one of the
family from which means and deviations are taken: under the null it is like any other, and the
chance of calling anything significant is what was asked for, however many cycles there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray

ROOT_DEVIATION = 0.5  # of the root of a Poisson count, however large its mean is


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """The closed walks of one series.

    Attributes:
        counts: How many closed in each cycle.
        visits: How many visits there were.
    """

    counts: Counter[tuple[int, ...]]
    visits: int


@dataclass(frozen=True, slots=True)
class Surprise:
    """Chances that a surrogate shows as much.

    Attributes:
        p_value: Of this cycle.
        adjusted_p_value: Of any cycle, each in its own deviations.
    """

    p_value: float
    adjusted_p_value: float


def surprises(seen: Walks, surrogates: Sequence[Walks]) -> dict[tuple[int, ...], Surprise]:
    """Return how surprising each cycle of a series is."""
    series = [seen, *surrogates]
    names = sorted(set().union(*(walks.counts for walks in series)))
    if not names:
        return {}
    counts = np.array([[walks.counts[name] for name in names] for walks in series], np.float64)
    visits = np.array([max(walks.visits, 1) for walks in series], np.float64)[:, None]
    # Counts times the visits of the other: shares, without the rounding of a division.
    as_large = (counts * visits[0] >= counts[0] * visits).mean(axis=0)
    heights = outstanding(counts, visits)
    as_high = (heights.max(axis=1)[:, None] >= heights[0]).mean(axis=0)
    return {
        name: Surprise(float(as_large[at]), float(max(as_high[at], as_large[at])))
        for at, name in enumerate(names)
    }


def outstanding(counts: FloatArray, visits: FloatArray) -> FloatArray:
    """Return how far each share (column) of each series (row) is above its mean, in deviations.

    Roots of counts have one deviation whether a cycle is rare or not; what is still more restless
    is divided by its own.

    Example:
        >>> outstanding(np.array([[9.0], [4.0]]), np.array([[1.0], [1.0]])).ravel().tolist()
        [1.0, -1.0]
    """
    roots = np.sqrt(counts / visits)
    floor = ROOT_DEVIATION / np.sqrt(visits.mean())
    heights: FloatArray = (roots - roots.mean(axis=0)) / np.maximum(roots.std(axis=0), floor)
    return heights
