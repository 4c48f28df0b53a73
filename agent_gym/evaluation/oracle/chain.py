"""Known markets as chains of states: what may follow, and what the next return is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray

BELIEFS = 401
BELIEFS_BESIDE_RETURNS = 161
LEVELS = 401
NODES = 21
REACH = 6.0  # of a level, in its deviations
SHOCK_REACH = 7.0
# The last return, in its deviations: what follows changes slowly with it, a decision does not.
RETURN_REACH, RETURN_STEP, STATES_PER_STEP = 5.0, 0.25, 4
TOLD_RETURN_STEP = 0.125


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Evenly spaced values of one coordinate."""

    low: float = 0.0
    step: float = 1.0
    count: int = 1

    def values(self) -> FloatArray:
        """Return the points."""
        return np.asarray(self.low + self.step * np.arange(self.count), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Where each place leads, and how likely; rows of weights add up to 1."""

    places: NDArray[np.int32]
    weights: FloatArray

    @classmethod
    def same(cls, count: int) -> Table:
        """Return the table in which every place leads to itself."""
        return cls(np.arange(count, dtype=np.int32)[:, None].copy(), np.ones((count, 1)))


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Points of decision on a grid of one or two coordinates, the second running fastest.

    Attributes:
        step: From states to the points of the next bar.
        lift: From points to states; see the kernel.
        mean: Expected next return at each point.
        square: Expected square of the next return.
        first: The grid of the first coordinate.
        second: The grid of the second one; a single point if there is none.
    """

    step: Table
    lift: Table
    mean: FloatArray
    square: FloatArray
    first: Grid = Grid()
    second: Grid = Grid()


def drift_chain(mean: float, sigma: float, stay: float) -> Chain:
    """Return the chain of the belief that a hidden drift points up (M1).

    Between two points of the grid a belief is shared out linearly, which keeps its mean.
    """
    grid = Grid(0.0, 1.0 / (BELIEFS - 1), BELIEFS)
    ahead = _turned(grid.values(), stay)
    z, chance = _gauss(NODES)
    tables = []
    for sign, likely in ((1.0, ahead), (-1.0, 1.0 - ahead)):
        after = updated_belief(ahead[:, None], 2.0 * mean * (sign * mean + sigma * z) / sigma**2)
        tables.append(_shared(after, likely[:, None] * chance, grid))
    step = Table(
        np.concatenate([table.places for table in tables], axis=1),
        np.concatenate([table.weights for table in tables], axis=1),
    )
    square = np.full(grid.count, mean**2 + sigma**2)
    return Chain(step, Table.same(grid.count), mean * (2.0 * ahead - 1.0), square, grid)


def level_chain(memory: float, shock: float, slope: float, noise: float) -> Chain:
    """Return the chain of a Gaussian level with a memory (M2, M4).

    The next return is ``slope`` times the level with the given noise about it. The points lie so
    close that the normal law, taken at them, is exact to rounding.
    """
    deviation = shock / (1.0 - memory**2) ** 0.5
    half = max(LEVELS // 2, int(np.ceil(REACH * deviation / (0.4 * shock))))
    grid = Grid(-REACH * deviation, REACH * deviation / half, 2 * half + 1)
    level = grid.values()
    reach = int(np.ceil(SHOCK_REACH * shock / grid.step))
    middle = np.rint((memory * level - grid.low) / grid.step).astype(np.int64)
    places = middle[:, None] + np.arange(-reach, reach + 1)
    z = (grid.low + grid.step * places - memory * level[:, None]) / shock
    weights = np.where((places >= 0) & (places < grid.count), np.exp(-0.5 * z**2), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    places = np.ascontiguousarray(np.clip(places, 0, grid.count - 1), dtype=np.int32)
    mean = slope * level
    lift = Table.same(grid.count)
    return Chain(Table(places, weights), lift, mean, mean**2 + noise**2, grid)


def regime_chain(share: float, sigma: float, stay: float) -> Chain:
    """Return the chain of the belief in momentum and of the last return (M3)."""
    beliefs = Grid(0.0, 1.0 / (BELIEFS_BESIDE_RETURNS - 1), BELIEFS_BESIDE_RETURNS)
    fine = _return_grid(sigma, RETURN_STEP)
    coarse = _return_grid(sigma, RETURN_STEP * STATES_PER_STEP)
    last, after = coarse.values(), fine.values()
    ahead = _turned(beliefs.values(), stay)
    up = ahead[:, None, None]  # belief, last return, next return
    chance = up * _normal_law(after, share * last, sigma)
    chance = chance + (1.0 - up) * _normal_law(after, -share * last, sigma)
    evidence = 2.0 * share * last[:, None] * after / sigma**2
    belief = updated_belief(np.broadcast_to(up, chance.shape), evidence)
    shared = _shared(belief.reshape(-1, fine.count), chance.reshape(-1, fine.count), beliefs)
    places = shared.places * fine.count + np.tile(np.arange(fine.count), 2)
    mean = (share * (2.0 * ahead - 1.0)[:, None] * after).ravel()
    square = np.tile(sigma**2 + (share * after) ** 2, beliefs.count)
    step = Table(np.ascontiguousarray(places, dtype=np.int32), shared.weights)
    return Chain(step, _between(beliefs.count, fine, coarse), mean, square, beliefs, fine)


def told_drift_chain(mean: float, sigma: float, stay: float) -> Chain:
    """Return M1 for one who is told the drift of the next bar: down in state 0, up in state 1."""
    places = np.array([[0, 1], [0, 1]], dtype=np.int32)
    step = Table(places, np.array([[stay, 1.0 - stay], [1.0 - stay, stay]]))
    square = np.full(2, mean**2 + sigma**2)
    return Chain(step, Table.same(2), np.array([-mean, mean]), square, Grid(0.0, 1.0, 2))


def told_regime_chain(share: float, sigma: float, stay: float) -> Chain:
    """Return M3 for one who is told the regime of the next bar: 0 reversion, 1 momentum."""
    last = _return_grid(sigma, TOLD_RETURN_STEP)
    after, n = last.values(), last.count
    weights = np.empty((2 * n, 2 * n))
    for regime, sign in ((0, -1.0), (1, 1.0)):
        follows = _normal_law(after, sign * share * after, sigma)
        rows = slice(regime * n, (regime + 1) * n)
        weights[rows, :n] = follows * (stay if regime == 0 else 1.0 - stay)
        weights[rows, n:] = follows * (stay if regime == 1 else 1.0 - stay)
    step = Table(np.tile(np.arange(2 * n, dtype=np.int32), (2 * n, 1)), weights)
    mean = np.concatenate([-share * after, share * after])
    return Chain(step, Table.same(2 * n), mean, mean**2 + sigma**2, Grid(0.0, 1.0, 2), last)


def still_chain(mean: float, square: float) -> Chain:
    """Return a market of which nothing is known but the mean of its returns (M5 and the nulls)."""
    return Chain(Table.same(1), Table.same(1), np.array([mean]), np.array([square]))


def updated_belief(ahead: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return a chance after evidence for it, given as the log of the ratio of likelihoods."""
    ratio = np.exp(np.clip(evidence, -500.0, 500.0))
    after: FloatArray = ahead * ratio / (ahead * ratio + 1.0 - ahead)
    return after


def _turned(belief: FloatArray, stay: float) -> FloatArray:
    """Return the belief about the next bar."""
    return stay * belief + (1.0 - stay) * (1.0 - belief)


def _gauss(nodes: int) -> tuple[FloatArray, FloatArray]:
    z, chance = np.polynomial.hermite_e.hermegauss(nodes)
    return z, chance / chance.sum()


def _return_grid(sigma: float, step: float) -> Grid:
    half = round(RETURN_REACH / step)
    return Grid(-RETURN_REACH * sigma, step * sigma, 2 * half + 1)


def _normal_law(points: FloatArray, means: FloatArray, sigma: float) -> FloatArray:
    """Return one row a mean: the normal law taken at the points."""
    weights = np.exp(-0.5 * ((points - means[:, None]) / sigma) ** 2)
    law: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return law


def _shared(values: FloatArray, chance: FloatArray, grid: Grid) -> Table:
    """Share every value out to the two points beside it."""
    place = np.clip((values - grid.low) / grid.step, 0.0, grid.count - 1.0)
    below = np.minimum(place.astype(np.int32), grid.count - 2)
    part = place - below
    places = np.concatenate([below, below + 1], axis=1, dtype=np.int32)
    return Table(places, np.concatenate([chance * (1.0 - part), chance * part], axis=1))


def _between(rows: int, fine: Grid, coarse: Grid) -> Table:
    """Return the cubic through the four coarse points about each fine one, for every row."""
    place = (fine.values() - coarse.low) / coarse.step
    first = np.clip(np.floor(place).astype(np.int64) - 1, 0, coarse.count - 4)
    near = first[:, None] + np.arange(4)
    weights = np.ones((fine.count, 4))
    for j in range(4):
        for other in range(4):
            if other != j:
                weights[:, j] *= (place - near[:, other]) / (j - other)
    places = (np.arange(rows)[:, None, None] * coarse.count + near).reshape(-1, 4)
    return Table(np.ascontiguousarray(places, dtype=np.int32), np.tile(weights, (rows, 1)))
