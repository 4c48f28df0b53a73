"""Would another past of the same kind have given the same states? Two resampled refits tell.

Perfect agreement is not a success: states that nothing can move are most likely not states of the
market but of the statistic, so it is flagged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from agent_gym.agents.umc.macro.config import MacroConfig
from agent_gym.agents.umc.macro.fitting import fit_states
from agent_gym.agents.umc.macro.resampling import resampled
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

PERFECT = 0.995  # what is shown as 1.00

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stability:
    """How far two refits on resampled pasts agree about the same rows.

    Attributes:
        rand: Adjusted Rand index of their most likely states: 1 the same, 0 as by chance.
        by_state: For each state of the first refit, the share of rows that it and its partner in
            the second have in common, of those that either has.
        suspect: Whether all of these are 1.00, which no honest fit of noisy data gives.
    """

    rand: float
    by_state: tuple[float, ...]
    suspect: bool


def refit_stability(rows: FloatArray, states: int, config: MacroConfig, seeds: Seeds) -> Stability:
    """Refit on two resampled pasts and compare what the two filters say of the rows as they are."""
    views = []
    for side in ("first", "second"):
        own = seeds.child("stability", side)
        path = resampled(len(rows), config.cycles.refit_block_bars, own.child("past").rng())
        model = fit_states(np.ascontiguousarray(rows[path]), states, config, own.child("fit")).model
        beliefs, _ = model.filtered(rows, model.shares())
        views.append(beliefs.argmax(axis=1))
    return compare(views[0], views[1], states)


def compare(first: IntArray, second: IntArray, states: int) -> Stability:
    """Return how far two lists of states agree, whatever their numbers are.

    Example:
        >>> compare(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), 2)
        Stability(rand=1.0, by_state=(1.0, 1.0), suspect=True)
    """
    table = np.zeros((states, states))
    np.add.at(table, (first, second), 1.0)
    either = table.sum(axis=1)[:, None] + table.sum(axis=0)[None, :] - table
    overlaps = np.divide(table, either, out=np.zeros_like(table), where=either > 0.0)
    left, right = linear_sum_assignment(-overlaps)
    used = table.sum(axis=1) > 0.0
    by_state = tuple(float(overlaps[i, j]) for i, j in zip(left, right, strict=True) if used[i])
    rand = adjusted_rand(table)
    return Stability(rand, by_state, min(rand, *by_state) >= PERFECT)


def adjusted_rand(table: FloatArray) -> float:
    """Return the adjusted Rand index of a table that counts pairs of states.

    Example:
        >>> adjusted_rand(np.array([[2.0, 0.0], [1.0, 1.0]]))
        0.0
        >>> adjusted_rand(np.array([[5.0, 0.0], [0.0, 0.0]]))  # both see one state: nothing differs
        1.0
    """
    together = _pairs(table)
    rows, columns = _pairs(table.sum(axis=1)), _pairs(table.sum(axis=0))
    expected = rows * columns / _pairs(table.sum())
    largest = 0.5 * (rows + columns)
    return 1.0 if largest == expected else (together - expected) / (largest - expected)


def _pairs(counts: FloatArray | np.float64) -> float:
    return float(np.sum(counts * (counts - 1.0)) / 2.0)
