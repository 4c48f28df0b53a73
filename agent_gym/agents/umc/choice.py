"""The choice of a position, bar by bar: the one of least expected free energy from now on.

Free energy is counted in nats, as deviations of a bar: one deviation of return is one nat. Where
orders reveal nothing, information is the same for all positions and lambda drops out to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agent_gym.agents.umc.planner import Plan
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

HELD, BARS = 0, 1
SHRUNK = 1.0 - 1e-9  # a target that differs makes the venue bring an open short back to its size
SMALLEST_COST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What a decision is made by, one row a bar.

    Attributes:
        edge: Expected return of the next bar, in deviations.
        sigma: That deviation.
        cap: Largest position that the trust in the model allows.
    """

    edge: FloatArray
    sigma: FloatArray
    cap: FloatArray


@door("void(float64[:,::1], float64[:,:,::1], float64[::1], float64[::1], float64, float64[:,::1])")
def look_up(
    outlook: FloatArray,
    worth: FloatArray,
    log_costs: FloatArray,
    levels: FloatArray,
    reach: float,
    out: FloatArray,
) -> None:
    """Write what each level is worth from now on, between the points and tables of a plan.

    ``outlook`` holds the edge and the log of the cost, both in deviations. Tables lie by rising
    volatility, so by falling cost.
    """
    tables, points = worth.shape[0], worth.shape[1]
    for t in range(outlook.shape[0]):
        place = 0.5 * (points - 1)
        if reach > 0.0:
            place *= 1.0 + min(max(outlook[t, 0] / reach, -1.0), 1.0)
        cell = min(int(place), points - 2)
        right = place - cell
        table, lower = 0, 0.0
        while table < tables - 2 and outlook[t, 1] < log_costs[table + 1]:
            table += 1
        if tables > 1:
            gap = log_costs[table] - log_costs[table + 1]
            lower = min(max((log_costs[table] - outlook[t, 1]) / gap, 0.0), 1.0)
        for a in range(levels.size):
            value = (1.0 - right) * worth[table, cell, a] + right * worth[table, cell + 1, a]
            if lower > 0.0:
                other = worth[table + 1, cell, a] * (1.0 - right)
                other += worth[table + 1, cell + 1, a] * right
                value = (1.0 - lower) * value + lower * other
            out[t, a] = value


@door("void(float64[:,::1], float64[:,::1], float64[::1], float64[::1], float64[:,::1])")
def follow_worth(
    worth: FloatArray, bounds: FloatArray, levels: FloatArray, memory: FloatArray, out: FloatArray
) -> None:
    """Choose a level at each bar; write its place, then the free energy of each level.

    ``bounds`` holds the cost of a unit of trade in deviations and the largest position allowed.
    Memory is the place of the level held. Of equals the one held is kept, so rounding trades
    nothing; a level beyond the cap has an infinite free energy.
    """
    for t in range(worth.shape[0]):
        held = int(memory[HELD])
        chosen, best = held, math.inf
        for a in range(levels.size):
            energy = bounds[t, 0] * abs(levels[a] - levels[held]) - worth[t, a]
            if abs(levels[a]) > bounds[t, 1]:
                energy = math.inf
            out[t, 1 + a] = energy
            if energy < best or (energy == best and a == held):
                chosen, best = a, energy
        out[t, 0] = chosen
        memory[HELD] = chosen


def worth_of(plan: Plan, outlook: Outlook, cost: float) -> FloatArray:
    """Return what each level of a plan is worth at each bar, in nats, before any cost."""
    out = np.empty((outlook.edge.size, plan.levels.size))
    costs = np.log(np.maximum(cost, SMALLEST_COST) / outlook.sigma)
    rows = np.column_stack([outlook.edge, costs])
    look_up(rows, plan.worth, plan.log_costs, plan.levels, plan.reach, out)
    return out


def choose_levels(
    plan: Plan, outlook: Outlook, cost: float, memory: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the place of the chosen level and the free energy of each level, bar by bar."""
    worth = worth_of(plan, outlook, cost)
    bounds = np.column_stack([cost / outlook.sigma, outlook.cap])
    out = np.empty((outlook.edge.size, 1 + plan.levels.size))
    follow_worth(worth, bounds, plan.levels, memory, out)
    return out[:, 0].copy(), out[:, 1:].copy()


def begin_choice(levels: FloatArray) -> FloatArray:
    """Return the memory before the first decision: nothing is held, no bar was seen."""
    return np.array([float(np.flatnonzero(levels == 0.0)[0]), 0.0])


def sized(targets: FloatArray, first_bar: int, resize_bars: int) -> FloatArray:
    """Return targets that bring an open short back to its size now and then.

    A venue trades nothing while a target stays the same, and a short shrinks while it wins.

    Example:
        >>> np.flatnonzero(np.diff(sized(np.full(6, -1.0), 0, 2))).tolist()
        [1, 3]
    """
    odd = (first_bar + np.arange(targets.size)) // resize_bars % 2 == 1
    return np.where(odd & (targets < 0.0), targets * SHRUNK, targets)
