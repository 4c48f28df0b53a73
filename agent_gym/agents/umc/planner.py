"""The planner: expected free energy to the end of time, by backward induction over edges.

On prices that nobody moves, the expected free energy of a position is, up to a constant, minus the
expected log preference of its outcome (see ``efe``): gain less risk less cost. What follows after
the next bar counts too, because a position is costly to change; so each position is given its
value under the best decisions later, over the chain in which edges followed each other in the past.
All of it is in deviations of a bar, which are nats: preferences give one nat to one deviation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.umc.planner_kernel import iterate_values
from agent_gym.core.errors import AgentError
from agent_gym.core.types import FloatArray

POINTS = 81
NEIGHBOURS = 300
STILL = 1e-6  # edges of fewer deviations are none
TOLERANCE, MOST_SWEEPS = 1e-7, 50_000
HORIZON_BARS, MOST_POLICIES = 20_000.0, 200
VOLATILITIES = 5


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What each position is worth at each edge, for several costs.

    Attributes:
        levels: Positions, as fractions of equity.
        reach: The grid of edges goes from minus to plus this many deviations; 0 if there are none.
        log_costs: Log of the cost of a unit of trade in deviations, one a table.
        worth: Table, edge, position.
    """

    levels: FloatArray
    reach: float
    log_costs: FloatArray
    worth: FloatArray


def plan_positions(
    edges: FloatArray, sigma: FloatArray, levels: FloatArray, cost: float, risk_aversion: float
) -> Plan:
    """Plan for edges that go on as those of the past did.

    Args:
        edges: Expected returns of the next bar, in deviations, bar by bar.
        sigma: These deviations.
        levels: Positions to choose from; one of them is 0.
        cost: Of a unit of trade, as a fraction.
        risk_aversion: 1 wants the highest growth, 0 the highest gain.
    """
    reach = float(np.abs(edges).max(initial=0.0))
    if reach < STILL:
        return Plan(levels, 0.0, np.zeros(1), np.zeros((1, 2, levels.size)))
    chain = edge_chain(edges, reach)
    grid = np.linspace(-reach, reach, POINTS)
    typical = np.unique(np.quantile(sigma, np.linspace(0.05, 0.95, VOLATILITIES)))
    tables = [
        _worth(chain, grid, levels, cost / deviation, risk_aversion * deviation)
        for deviation in typical
    ]
    return Plan(levels, reach, np.log(np.maximum(cost, 1e-12) / typical), np.stack(tables))


def edge_chain(edges: FloatArray, reach: float) -> FloatArray:
    """Return the chances of moving between points of the grid, from the moves of the past.

    Up and down are taken to be alike, so every move counts twice. A point takes the moves of the
    nearest past edges, each shifted by what an edge keeps of a distance from bar to bar: nearly all
    of it where edges last, nothing where they are new every bar.

    Example:
        >>> chain = edge_chain(np.sin(np.arange(400.0)), 1.0)
        >>> chain.shape, bool(np.allclose(chain.sum(axis=1), 1.0))
        ((81, 81), True)
    """
    before = np.concatenate([edges[:-1], -edges[:-1]])
    after = np.concatenate([edges[1:], -edges[1:]])
    order = np.argsort(before, kind="stable")
    before, after = before[order], after[order]
    keeps = float(before @ after / (before @ before))
    near = min(NEIGHBOURS, before.size)
    chain = np.zeros((POINTS, POINTS))
    for i, point in enumerate(np.linspace(-reach, reach, POINTS)):
        first = int(np.searchsorted(before, point)) - near // 2
        rows = slice(max(0, min(first, before.size - near)), None)
        new = after[rows][:near] + keeps * (point - before[rows][:near])
        place = np.clip((new + reach) / (2.0 * reach), 0.0, 1.0) * (POINTS - 1)
        cell = np.minimum(place.astype(np.int64), POINTS - 2)
        np.add.at(chain[i], cell, 1.0 - (place - cell))
        np.add.at(chain[i], cell + 1, place - cell)
    shares: FloatArray = chain / near
    return shares


def _worth(
    chain: FloatArray, grid: FloatArray, levels: FloatArray, cost: float, aversion: float
) -> FloatArray:
    paid = grid[:, None] * levels - 0.5 * aversion * levels**2
    costs = cost * np.abs(levels[:, None] - levels)
    worth = np.empty_like(paid)
    knobs = np.array([TOLERANCE, MOST_SWEEPS])
    if iterate_values(chain, paid, costs, knobs, worth) == 0:
        return improved_worth(chain, paid, costs, worth)
    return worth


def improved_worth(
    chain: FloatArray, paid: FloatArray, costs: FloatArray, worth: FloatArray
) -> FloatArray:
    """Return what positions are worth where sweeps take too long: by better and better policies.

    Where edges are small next to costs, positions are held for so long that values creep. Each
    policy is worth the answer of one linear system, and a handful of them leads to the best. What
    lies ``HORIZON_BARS`` ahead counts for a third.
    """
    points, k = paid.shape
    keep = 1.0 - 1.0 / HORIZON_BARS
    places = np.arange(points)
    chosen: NDArray[np.intp] | None = None
    for _ in range(MOST_POLICIES):
        best = np.argmax(worth[:, None, :] - costs[None, :, :], axis=2)
        if chosen is not None:
            gain = _taken(worth, costs, best) - _taken(worth, costs, chosen)
            best = np.where(gain > STILL, best, chosen)  # of equals the old one, or it goes round
            if (best == chosen).all():
                return worth
        chosen = best
        system = np.eye(points * k).reshape(points, k, points, k)
        for held in range(k):
            system[:, held, places, chosen[:, held]] -= keep * chain
        fees = chain @ costs[np.arange(k)[None, :], chosen]
        flat = np.linalg.solve(system.reshape(points * k, -1), (paid - keep * fees).ravel())
        worth = np.asarray(flat - flat.mean(), dtype=np.float64).reshape(points, k)
    raise AgentError(
        "no policy is the best one",
        where="umc planner",
        found=f"{MOST_POLICIES} policies",
        remedy="Give it more bars to learn from",
    )


def _taken(worth: FloatArray, costs: FloatArray, chosen: NDArray[np.intp]) -> FloatArray:
    """Return what is left of the worth of the chosen level after the cost of getting there."""
    held = np.arange(costs.shape[0])[None, :]
    left: FloatArray = np.take_along_axis(worth, chosen, axis=1) - costs[held, chosen]
    return left
