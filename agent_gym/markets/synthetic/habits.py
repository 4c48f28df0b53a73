"""Inlined parts of the market's habits: what differs from day to day and drifts slowly."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agent_gym.core.kernels import inlined
from agent_gym.markets.synthetic.draws import normal

EVERY_MIN = 60.0  # habits are slow: they are moved once an hour


class Habits(NamedTuple):
    """Standard normal scores that scale the parameters named like them."""

    moves: float
    leverage: float
    overshoot: float
    gaps: float
    tilt: float


@inlined
def first_habits(base: np.uint64) -> Habits:
    """Return the habits at the start of a series."""
    return Habits(
        normal(base, 0), normal(base, 1), normal(base, 2), normal(base, 3), normal(base, 4)
    )


@inlined
def drifted(p: Any, base: np.uint64, habits: Habits) -> Habits:
    """Return the habits an hour on."""
    keep, noise = p.habit_memory, p.habit_noise
    return Habits(
        keep * habits.moves + noise * normal(base, 0),
        keep * habits.leverage + noise * normal(base, 1),
        keep * habits.overshoot + noise * normal(base, 2),
        keep * habits.gaps + noise * normal(base, 3),
        keep * habits.tilt + noise * normal(base, 4),
    )
