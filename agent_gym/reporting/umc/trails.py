"""Long series as few points, and an axis of time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import matplotlib.dates
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray
from agent_gym.reporting.canvas import WIDE

DAY_NS = 86_400 * 10**9


def days(ts: NDArray[np.int64]) -> FloatArray:
    """Return times as days since 1970, which matplotlib counts in."""
    counted: FloatArray = ts / DAY_NS
    return counted


def buckets(width: int) -> int:
    """Return into how many pieces a series is cut at most for a picture of a width."""
    return 320 if width >= WIDE else 130


def thin(x: FloatArray, y: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest point of each bucket, in their order; peaks stay.

    Example:
        >>> x, y = thin(np.arange(6.0), np.array([0.0, 5.0, 1.0, 1.0, -9.0, 2.0]), 2)
        >>> y.tolist()
        [0.0, 5.0, -9.0, 2.0]
    """
    if y.size <= 2 * most:
        return x, y
    edges = np.linspace(0, y.size, most + 1).astype(int)
    places: list[int] = []
    for start, stop in pairwise(edges):
        part = y[start:stop]
        if np.isnan(part).all():
            places.append(int(start))
            continue
        places += sorted({int(start + np.nanargmin(part)), int(start + np.nanargmax(part))})
    return x[places], y[places]


def means(y: FloatArray, most: int) -> FloatArray:
    """Return the mean of each bucket, NaN where nothing is known; columns stay apart."""
    count = min(most, len(y))
    edges = np.linspace(0, len(y), count + 1).astype(int)
    rows = [_mean(y[start:stop]) for start, stop in pairwise(edges)]
    return np.array(rows)


def _mean(part: FloatArray) -> Any:
    known = ~np.isnan(part)
    total = np.where(known, part, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def time_axis(panel: Axes, width: int, x: FloatArray) -> None:
    """Name days and months below a panel, and let it begin and end with the series."""
    panel.set_xlim(float(x[0]), float(x[-1]))
    most = 9 if width >= WIDE else 4
    dates: Any = matplotlib.dates  # has no types
    locator = dates.AutoDateLocator(minticks=2, maxticks=most)
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))


def line(panel: Axes, x: FloatArray, y: FloatArray, width: int, **looks: Any) -> None:
    """Draw a series with as many points as the picture can show."""
    panel.plot(*thin(x, y, buckets(width)), **({"lw": 1.2} | looks))
