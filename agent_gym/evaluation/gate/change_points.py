"""Change points of a series of nights: where did its level move, and how surely?

Splits are searched one after another, as E-divisive does, and tested by Student's t instead of by
random permutations, as Hunter does; so the same series always gives the same answer. The p-value is
that of the largest t over all splits of a stretch (Siegmund's approximation), not of one
split. A level must also be apart: where values before and after overlap too much (a series that
jumps between two values for ever), nothing is said, however significant it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtr

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

ROUNDING = 1e-12
OVERSHOOT = 0.583


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A new level begins at ``index``; ``superiority`` is P(a value after is above one before)."""

    index: int
    before: float
    after: float
    p: float
    superiority: float


def change_points(
    series: Sequence[float],
    *,
    alpha: float = 0.001,
    min_segment: int = 5,
    superiority: float = 0.8,
) -> tuple[ChangePoint, ...]:
    """Return where the level of a series changed, in order.

    Args:
        series: One value a night, oldest first.
        alpha: Error rate of the whole series.
        min_segment: Fewest nights on either side; a single spike is no new level.
        superiority: How often a value of one side must be above one of the other.

    Example:
        >>> [point.index for point in change_points([1.0, 1.1, 0.9] * 4 + [2.0, 2.1, 1.9] * 4)]
        [12]
    """
    values = np.asarray(series, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError("change points need one row of finite numbers", found=values.shape)
    if min_segment < 2:
        raise DataError("a level needs at least two nights", found=min_segment)
    found: list[ChangePoint] = []
    waiting = [(0, values.size)]
    while waiting:
        start, end = waiting.pop()
        point = _strongest(values[start:end], min_segment)
        if point is None or point.p > alpha:
            continue
        if max(point.superiority, 1.0 - point.superiority) < superiority:
            continue
        split = start + point.index
        found.append(ChangePoint(split, point.before, point.after, point.p, point.superiority))
        waiting += [(start, split), (split, end)]
    return tuple(sorted(found, key=lambda point: point.index))


def _strongest(values: FloatArray, least: int) -> ChangePoint | None:
    n = values.size
    size = float(np.abs(values).max(initial=0.0))
    if n < 2 * least or size == 0.0:
        return None
    scaled = values / size
    scaled = scaled - scaled.mean()
    splits = np.arange(least, n - least + 1)
    sums, squares = np.cumsum(scaled)[splits - 1], np.cumsum(scaled * scaled)[splits - 1]
    total, all_squares = scaled.sum(), float((scaled * scaled).sum())
    left, right = sums / splits, (total - sums) / (n - splits)
    within = (squares - splits * left**2) + (all_squares - squares - (n - splits) * right**2)
    spread = np.sqrt(np.maximum(within, 0.0) / (n - 2))
    error = spread * np.sqrt(1.0 / splits + 1.0 / (n - splits))
    gap = np.abs(right - left)
    # A step without noise is certain; sums leave a rounding residue that is no noise.
    steady = spread <= math.sqrt(ROUNDING) * gap
    t = np.where(steady, np.inf, gap / np.where(error > 0.0, error, 1.0))
    t[gap <= ROUNDING] = 0.0
    best = int(np.argmax(t))
    split = int(splits[best])
    before, after = values[:split], values[split:]
    return ChangePoint(
        index=split,
        before=float(before.mean()),
        after=float(after.mean()),
        p=_largest_t_p(float(t[best]), n, least),
        superiority=_superiority(before, after),
    )


def _largest_t_p(t: float, n: int, least: int) -> float:
    """Return P(the largest |t| over all splits is at least this, if the level never moved)."""
    tail = float(stdtr(n - 2, -t))
    if tail == 0.0:
        return 0.0
    c = float(-ndtri(tail))
    if c <= 1.0:
        return 1.0
    density = math.exp(-c * c / 2.0) / math.sqrt(2.0 * math.pi)
    share = np.arange(least, n - least + 1) / n
    width = share * (1.0 - share)
    # Nights are steps, not a continuum: the second factor is Siegmund's correction for that.
    crossings = np.exp(-OVERSHOOT * c / np.sqrt(n * width)) / (n * width)
    return min(1.0, 2.0 * tail + c * density * float(crossings.sum()))


def _superiority(before: FloatArray, after: FloatArray) -> float:
    gaps = after[:, None] - before[None, :]
    return float(np.mean((gaps > 0.0) + 0.5 * (gaps == 0.0)))
