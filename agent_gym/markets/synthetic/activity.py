"""Segments of activity: drawn before they begin, without looking at the price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray
from agent_gym.markets.synthetic import draws
from agent_gym.markets.synthetic.draws import base_of, exponential, uniform
from agent_gym.markets.synthetic.parameters import Activity

CLASSES = ("quiet", "normal", "active", "shock")
QUIET, NORMAL, ACTIVE, SHOCK = range(4)
UP_CHANCE = DOWN_CHANCE = 0.3
_SHORTEST = 0.25  # of the mean duration; the rest is exponential


@dataclass(frozen=True, slots=True)
class Segments:
    """The activity of each bar.

    Attributes:
        activity: Index into CLASSES.
        direction: -1, 0 or 1; it moves the price only where a drift is asked for.
        elapsed: Bars since the segment began.
    """

    activity: NDArray[np.int8]
    direction: NDArray[np.int8]
    elapsed: NDArray[np.int64]


def draw_segments(key: int, n_bars: int, dt_min: float, config: Activity) -> Segments:
    """Draw the segments of a series."""
    activity = np.empty(n_bars, dtype=np.int8)
    direction = np.empty(n_bars, dtype=np.int8)
    elapsed = np.empty(n_bars, dtype=np.int64)
    chances = np.cumsum(config.probability)
    durations = np.array(config.duration_min) / dt_min
    _fill_segments(np.uint64(key), chances, durations, activity, direction, elapsed)
    return Segments(activity, direction, elapsed)


def offsets(segments: Segments, dt_min: float, config: Activity) -> FloatArray:
    """Return what activity adds to the log volatility; a shock fades while it lasts."""
    added = np.array(config.offset)[segments.activity]
    faded = np.exp(-segments.elapsed * dt_min / config.shock_tau_min)
    return np.where(segments.activity == SHOCK, added * faded, added)


@door(
    numba.void(
        numba.uint64,
        numba.float64[::1],
        numba.float64[::1],
        numba.int8[::1],
        numba.int8[::1],
        numba.int64[::1],
    ),
    parts=(draws,),
)
def _fill_segments(
    key: np.uint64,
    chances: FloatArray,
    durations: FloatArray,
    activity: Any,
    direction: Any,
    elapsed: Any,
) -> None:
    left, current, way, since = 0.0, NORMAL, 0, 0
    for t in range(activity.size):
        left -= 1.0
        since += 1
        if left <= 0.0:
            base = base_of(key, t)
            current = QUIET
            while current < SHOCK and uniform(base, 0) > chances[current]:
                current += 1
            left = durations[current] * (_SHORTEST + (1.0 - _SHORTEST) * exponential(base, 1))
            drawn = uniform(base, 2)
            way = 1 if drawn < UP_CHANCE else (-1 if drawn < UP_CHANCE + DOWN_CHANCE else 0)
            since = 0
        activity[t] = current
        direction[t] = way
        elapsed[t] = since
