"""Inlined parts of the walk: the moves between the open and the close of one bar."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from agent_gym.core.kernels import inlined
from agent_gym.markets.synthetic.draws import normal

AT_OPEN, INSIDE, AT_CLOSE = 0, 1, 2
LARGEST_SCORE, LONGEST_REACH = 4.0, 2.0


class Plan(NamedTuple):
    """What is settled about a bar before its path is walked."""

    moves: int
    sigma: float
    step: float
    overshoot: float
    tilt: float
    jump: float
    jump_at: int
    home: bool
    drift: float


class Path(NamedTuple):
    """Where the path went: log distances from the open, and what it will give back."""

    end: float
    high: float
    low: float
    high_place: int
    low_place: int
    shock: float
    slow: float
    fast: float


@inlined
def count_moves(mean: float, most: int, draw: float) -> int:
    """Return a Poisson number by inversion, cut at ``most``."""
    count, chance = 0, np.exp(-mean)
    below = chance
    while draw > below and count < most:
        count += 1
        chance *= mean / count
        below += chance
    return count


@inlined
def move_of(p: Any, z: float) -> float:
    """Return a move from a normal number: not too small, sometimes large."""
    least = p.moves_least if z > 0.0 else -p.moves_least
    move: float = z * (1.0 + p.moves_kurtosis * z * z) + least
    return move


@inlined
def given_back(p: Any, plan: Plan, move: float, distance: float, score: float) -> float:
    """Return the share of a move that is given back within a few moves: more if it reaches far."""
    share: float = p.overshoot_fast * min(score, LARGEST_SCORE)
    if move * distance > 0.0:
        reach = abs(distance) / plan.sigma - p.overshoot_extension_from
        tilt = plan.tilt if move > 0.0 else -plan.tilt
        share += p.overshoot_extension * min(max(reach, 0.0), LONGEST_REACH) * (1.0 + tilt)
    return share


@inlined
def walk_bar(p: Any, base: np.uint64, plan: Plan, slow: float, fast: float) -> Path:
    """Walk the moves of a bar; half the square of each is taken off, so that no side gains."""
    start = slow + fast
    shock = correction = end = high = low = 0.0
    high_place = low_place = AT_OPEN
    keep = np.exp(p.log_slow_memory / max(plan.moves, 1))
    for i in range(plan.moves):
        z = normal(base, i)
        move = plan.step * move_of(p, z)
        share = given_back(p, plan, move, shock, abs(z))
        if i == plan.jump_at:
            move += plan.jump
            share = p.overshoot_at_jump
        slow = keep * slow + plan.overshoot * move
        fast = p.overshoot_fast_memory * fast + share * move
        shock += move
        correction += plan.drift / plan.moves - 0.5 * move * move
        end = shock + slow + fast - start + correction
        if end > high:
            high, high_place = end, INSIDE
        if end < low:
            low, low_place = end, INSIDE
    if plan.moves == 0:
        slow, fast, end = p.overshoot_slow_memory * slow, 0.0, plan.drift
    # What was overshot beyond the cap is given back before the close, where no one can trade it.
    excess = fast - min(max(fast, -p.overshoot_fast_cap), p.overshoot_fast_cap)
    fast, end = fast - excess, end - excess
    if plan.home:
        shock, end = shock - end, 0.0
    if end >= high and plan.moves > 0:
        high, high_place = end, AT_CLOSE
    if end <= low and plan.moves > 0:
        low, low_place = end, AT_CLOSE
    slow = min(max(slow, -p.overshoot_slow_cap), p.overshoot_slow_cap)
    return Path(end, high, low, high_place, low_place, shock, slow, fast)
