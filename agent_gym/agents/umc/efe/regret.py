"""What curiosity costs: regret as a function of lambda, and the most that a budget allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.agents.umc.efe.free_energy import least
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

MANTISSA_BITS = 53


@dataclass(frozen=True, slots=True, eq=False)
class RegretSteps:
    """Regret as lambda grows: from each start on, one action is best.

    Attributes:
        start: Lambda from which the action is best; the first is 0.
        regret: What it costs more than the best action without lambda, in nats; never falls.
        action: Which one it is.
    """

    start: FloatArray
    regret: FloatArray
    action: tuple[int, ...]


def regret_steps(pragmatic: FloatArray, information: FloatArray) -> RegretSteps:
    """Return regret as a function of lambda, exactly: it is a step function.

    Each action is a line that falls with lambda as fast as it informs, and the lowest line wins. So
    the next winner is the one that informs more and is met first; of those met together, the most
    informing, which stays.
    """
    cheapest = np.flatnonzero(pragmatic == pragmatic.min())
    now = int(cheapest[np.argmax(information[cheapest])])
    starts, actions = [0.0], [now]
    while (more := np.flatnonzero(information > information[now])).size:
        with np.errstate(over="ignore"):  # a break that is too far to be a number is never met
            breaks = (pragmatic[more] - pragmatic[now]) / (information[more] - information[now])
        first = more[breaks == breaks.min()]
        now = int(first[np.argmax(information[first])])
        starts.append(max(float(breaks.min()), starts[-1]))
        actions.append(now)
    return RegretSteps(np.array(starts), pragmatic[actions] - pragmatic.min(), tuple(actions))


def affordable_lambda(
    pragmatic: FloatArray,
    information: FloatArray,
    budget: float,
    lowest: float = 0.1,
    highest: float = 0.46,
) -> float:
    """Return the largest lambda whose choice costs at most a budget; 0 if the lowest is too dear.

    Args:
        pragmatic: Free energy of each action without lambda, in nats: ``FreeEnergy.base``.
        information: What each teaches about parameters, in nats.
        budget: Nats that the choice may cost more than the best without lambda.
        lowest: Smallest lambda that counts as one.
        highest: Largest lambda, such as that of the outer loop.

    Example:
        >>> cost, taught = np.array([0.0, 0.02, 0.5]), np.array([0.0, 0.1, 0.9])
        >>> affordable_lambda(cost, taught, budget=0.1)
        0.46
        >>> round(affordable_lambda(cost, taught, budget=0.01), 12)
        0.2
        >>> affordable_lambda(cost, taught, budget=0.01, lowest=0.25)
        0.0
    """
    _check_affordable(pragmatic, information, budget)
    steps = regret_steps(pragmatic, information)
    dear = np.flatnonzero(steps.regret > budget)
    wanted = min(highest, float(steps.start[dear[0]])) if dear.size else highest
    # At a break two actions are equal but for rounding, which may choose the dearer one. Then the
    # lambda gives way, by a rounding error at first, until what it chooses is affordable.
    for bit in range(MANTISSA_BITS, -1, -1):
        if regret(pragmatic, information, wanted) <= budget:
            break
        wanted *= 1.0 - 2.0**-bit
    return wanted if wanted >= lowest else 0.0


def regret(pragmatic: FloatArray, information: FloatArray, lam: float) -> float:
    """Return what the choice under a lambda costs more than that without one, in nats."""
    return float(pragmatic[least(pragmatic, information, lam)] - pragmatic.min())


def _check_affordable(pragmatic: FloatArray, information: FloatArray, budget: float) -> None:
    if pragmatic.ndim != 1 or pragmatic.shape != information.shape or not pragmatic.size:
        raise DataError(
            "every action has one cost and one information",
            found=f"{pragmatic.shape} and {information.shape}",
        )
    if not (np.isfinite(pragmatic).all() and np.isfinite(information).all() and budget >= 0.0):
        raise DataError("costs and information are finite, the budget at least 0", found=budget)
