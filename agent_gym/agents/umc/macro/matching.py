"""Which state of a new fit is which state of the old one, so that a number keeps its meaning."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.optimize import linear_sum_assignment

from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class Match:
    """How the states of a new fit were given numbers.

    Attributes:
        ids: Number of each state of the new fit, in its own order.
        costs: Divergence of each from the state whose number it took, in nats; None if it took a
            number that was free.
        total_cost: Sum of these.
    """

    ids: tuple[int, ...]
    costs: tuple[float | None, ...]
    total_cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Emissions:
    """Mean and variance of each input (column) in each state (row), in the unit of the inputs."""

    means: FloatArray
    variances: FloatArray


def divergences(old: Emissions, new: Emissions) -> FloatArray:
    """Return the symmetric Kullback-Leibler divergence of every old state from every new one.

    Both directions are added, so the logarithms of the variances cancel.

    Example:
        >>> import numpy as np
        >>> old = Emissions(np.array([[0.0]]), np.array([[1.0]]))
        >>> divergences(old, Emissions(np.array([[2.0]]), np.array([[1.0]]))).tolist()
        [[4.0]]
    """
    a, b = old.variances[:, None, :], new.variances[None, :, :]
    gaps = (old.means[:, None, :] - new.means[None, :, :]) ** 2
    both: FloatArray = 0.5 * ((a + gaps) / b + (b + gaps) / a - 2.0).sum(axis=2)
    return both


def match(old: Emissions, ids: tuple[int, ...], new: Emissions, most_states: int) -> Match:
    """Give each new state the number of the old state it is nearest to, all together at least cost.

    A state without a partner takes the lowest number that nobody had, else one that is no longer
    used.
    """
    gaps = divergences(old, new)
    numbers: list[int | None] = [None] * len(new.means)
    costs: list[float | None] = [None] * len(new.means)
    for i, j in zip(*linear_sum_assignment(gaps), strict=True):
        numbers[j], costs[j] = ids[i], float(gaps[i, j])
    taken = {number for number in numbers if number is not None}
    unused = [n for n in range(most_states) if n not in taken]
    free = iter(sorted(unused, key=lambda n: (n in ids, n)))
    given = tuple(next(free) if number is None else number for number in numbers)
    return Match(given, tuple(costs), float(sum(cost for cost in costs if cost is not None)))
