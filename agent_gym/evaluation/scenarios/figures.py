"""Small arithmetic that the desk scenarios share; what has no data has no figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_gym.evaluation.scenarios.metric import Direction, Metric, Tolerance


def metric(
    name: str, unit: str, direction: Direction, meaning: str, tolerance: tuple[float, float]
) -> Metric:
    """Return a gating metric; the tolerance is relative and absolute."""
    return Metric(
        name=name,
        unit=unit,
        direction=direction,
        meaning=meaning,
        tolerance=Tolerance(rel=tolerance[0], abs=tolerance[1]),
    )


def zero(name: str, unit: str, meaning: str) -> Metric:
    """Return a metric of which a single event is a failure."""
    return Metric(
        name=name,
        unit=unit,
        direction="down",
        meaning=meaning,
        tolerance=Tolerance(rel=0.0, abs=0.0),
        must_be_zero=True,
    )


def share(part: float, whole: float) -> float | None:
    """Return a part of a whole, None of nothing.

    Example:
        >>> share(1, 4), share(0, 0)
        (0.25, None)
    """
    return part / whole if whole else None


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return float(np.mean(values)) if len(values) else None


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return a quantile, None of nothing."""
    return float(np.quantile(values, q)) if len(values) else None
