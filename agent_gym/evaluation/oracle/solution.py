"""The best policy of a chain under a cost on every trade, and its figures in the long run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentGymError
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.oracle.chain import Chain
from agent_gym.evaluation.oracle.kernel import (
    average_figure,
    decide,
    follow_policy,
    iterate_values,
)

# A venue trades nothing while a target stays the same, and an open short then leaves its size: it
# shrinks while it wins. A target that differs by a hair, every RESIZE_BARS bars in turn, brings it
# back. A long of all equity keeps its size by itself.
RESIZE_BARS = 24
SHORT_AGAIN = -1.0 + 2.0**-30
TOLERANCE = 1e-9  # of the gain a bar, as a fraction: a hundred-thousandth of a basis point
SQUARE_TOLERANCE, TURNOVER_TOLERANCE = 1e-5, 1e-5
MOST_SWEEPS = 200_000
MOST_FIGURE_WORK = 2e9  # products of a chance and a value


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The best policy and its figures a bar, as fractions of what is held.

    Square and turnover are not numbers where trades are so rare that their share was not found.
    ``worth[x, q]`` is what it is worth to hold a position in a state; see the kernel.
    """

    chain: Chain
    cost: float
    positions: FloatArray
    worth: FloatArray
    gain: float
    square: float
    turnover: float

    @property
    def figures_known(self) -> bool:
        """Return whether square and turnover were found; not so where it hardly ever trades."""
        return not (math.isnan(self.square) or math.isnan(self.turnover))

    def targets(self, xs: FloatArray, ys: FloatArray, held: FloatArray) -> FloatArray:
        """Return one target a moment for states on a path; ``held`` is carried along."""
        first, second = self.chain.first, self.chain.second
        knobs = np.array(
            [first.low, first.step, second.low, second.step, self.cost, self.positions[0]]
        )
        out = np.empty(xs.size)
        worth = self.worth.reshape(first.count, second.count, self.positions.size)
        decide(worth, knobs, xs, ys, held, out)
        return out

    def band(self, held: float, *, second: float = 0.0, points: int = 40_001) -> float | None:
        """Return the lowest first coordinate at which the policy is long, None if it never is."""
        grid = self.chain.first
        xs = np.linspace(grid.low, grid.low + grid.step * (grid.count - 1), points)
        low, high = 0, points - 1
        if self._target(xs[high], second, held) <= 0.0:
            return None
        while low < high:  # targets rise with the coordinate, so the edge is found by halving
            middle = (low + high) // 2
            if self._target(xs[middle], second, held) > 0.0:
                high = middle
            else:
                low = middle + 1
        return float(xs[high])

    def _target(self, x: float, y: float, held: float) -> float:
        return float(self.targets(np.array([x]), np.array([y]), np.array([held]))[0])


def resized(targets: FloatArray, first_bar: int = 0) -> FloatArray:
    """Return targets that bring an open short back to its size once a day.

    Example:
        >>> resized(np.full(50, -1.0))[[0, 23, 24, 47, 48]].round(6).tolist()
        [-1.0, -1.0, -1.0, -1.0, -1.0]
        >>> np.flatnonzero(np.diff(resized(np.full(50, -1.0)))).tolist()
        [23, 47]
    """
    odd = (first_bar + np.arange(targets.size)) // RESIZE_BARS % 2 == 1
    return np.where(odd & (targets == -1.0), SHORT_AGAIN, targets)


def solve(chain: Chain, cost: float, *, allow_short: bool = True) -> Solution:
    """Return the policy with the largest gain a bar in the long run; it is long, out or short."""
    positions = np.array([-1.0, 0.0, 1.0] if allow_short else [0.0, 1.0])
    worth = np.zeros((chain.mean.size, positions.size))
    gain, sweeps = iterate_values(
        (chain.step.places, chain.lift.places),
        (chain.step.weights, chain.lift.weights),
        np.outer(chain.mean, positions),
        np.array([cost, TOLERANCE, MOST_SWEEPS]),
        worth,
    )
    if sweeps == 0:
        raise AgentGymError(
            "the attainable optimum was not found",
            where="oracle",
            found=f"no gain within {TOLERANCE:g} after {MOST_SWEEPS:,} sweeps",
            remedy="Choose a smaller stay or a larger reversion",
        )
    square, turnover = _figures(chain, cost, positions, worth)
    return Solution(chain, cost, positions, worth, gain, square, turnover)


def _reached(chosen: NDArray[np.int64]) -> tuple[int, int]:
    """Return the first and last position that one who is out may ever come to."""
    first = last = chosen.shape[1] - 2
    for _ in range(2):
        seen = chosen[:, first : last + 1]
        first, last = min(first, int(seen.min())), max(last, int(seen.max()))
    return first, last


def _figures(
    chain: Chain, cost: float, positions: FloatArray, worth: FloatArray
) -> tuple[float, float]:
    """Return the mean square of the net gain and the turnover of the policy behind ``worth``."""
    chosen = np.empty(worth.shape, dtype=np.int64)
    figures = np.empty((2, *worth.shape))
    moments = np.column_stack([chain.mean, chain.square])
    follow_policy(moments, positions, cost, worth, chosen, figures)
    exact = SQUARE_TOLERANCE * float(chain.square.mean()), TURNOVER_TOLERANCE
    places = chain.step.places, chain.lift.places
    weights = chain.step.weights, chain.lift.weights
    most = MOST_FIGURE_WORK // (worth.shape[1] * (weights[0].size + weights[1].size))
    square, turnover = (
        average_figure(
            places, weights, chosen, paid, np.array([tolerance, most, *_reached(chosen)])
        )
        for paid, tolerance in zip(figures, exact, strict=True)
    )
    return square, turnover
