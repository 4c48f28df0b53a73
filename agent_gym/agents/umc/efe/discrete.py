"""Expected free energy of a small world of discrete states, exactly; the yardstick of the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlogy

from agent_gym.agents.umc.efe.free_energy import FreeEnergy
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteWorld:
    """A partially observed world.

    Attributes:
        likelihood: A: ``(observations, states)``; a column is what one state shows.
        transition: B: ``(actions, next states, states)``; a column is where one state leads to.
        preference: C: preferred chances of the observations, all above 0.
    """

    likelihood: FloatArray
    transition: FloatArray
    preference: FloatArray

    def __post_init__(self) -> None:
        shown, states = self.likelihood.shape
        if self.transition.shape[1:] != (states, states) or self.preference.shape != (shown,):
            raise DataError(
                "the parts of a discrete world do not fit together",
                found=(self.likelihood.shape, self.transition.shape, self.preference.shape),
                expected="(observations, states), (actions, states, states), (observations,)",
            )
        for name, table, axis in (
            ("likelihood", self.likelihood, 0),
            ("transition", self.transition, 1),
            ("preference", self.preference, 0),
        ):
            _check_chances(table, axis, name)
        if not (self.preference > 0.0).all():
            raise DataError("no observation is preferred with a chance of 0", where="preference")


def discrete_efe(
    world: DiscreteWorld, belief: ArrayLike, policies: NDArray[np.int64]
) -> FreeEnergy:
    """Return the free energy of policies, summed over their steps.

    Args:
        world: The world.
        belief: Chances of the states now.
        policies: One row a policy, one action a step.
    """
    start = np.asarray(belief, np.float64)
    _check_chances(start, 0, "belief")
    terms = np.zeros((4, len(policies)))
    noise = -xlogy(world.likelihood, world.likelihood).sum(0)
    states = np.repeat(start[None, :], len(policies), axis=0)
    for chosen in policies.T:
        states = np.einsum("pij,pj->pi", world.transition[chosen], states)
        shown = states @ world.likelihood.T
        spread = rel_entr(world.likelihood[None], shown[:, :, None]).sum(1)
        spread[states <= 0.0] = 0.0  # a state that cannot be may show what nothing else shows
        terms += np.stack(
            [
                rel_entr(shown, world.preference).sum(1),
                states @ noise,
                -shown @ np.log(world.preference),
                (states * spread).sum(1),
            ]
        )
    risk, ambiguity, pragmatic, gained = terms
    return FreeEnergy(risk, ambiguity, np.zeros(len(policies)), pragmatic, gained, 0.0)


def kl_contraction(transition: ArrayLike, belief: ArrayLike, other: ArrayLike) -> float:
    """Return the share of the KL divergence of two beliefs that one step of a chain leaves.

    It is a statement about distributions: 1 means that nothing is forgotten, and never is it more.

    Args:
        transition: ``(next states, states)``.
        belief: Chances of the states.
        other: Chances to compare them with.

    Example:
        >>> kl_contraction([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.1], [0.5, 0.5])
        1.0
    """
    step, p, q = (np.asarray(part, np.float64) for part in (transition, belief, other))
    _check_chances(step, 0, "transition")
    before = float(rel_entr(p, q).sum())
    if not (np.isfinite(before) and before > 0.0):
        raise DataError(
            "only beliefs that differ, and share their support, can come closer", found=before
        )
    return float(rel_entr(step @ p, step @ q).sum()) / before


def dobrushin(transition: ArrayLike) -> float:
    """Return the largest total variation between two columns; it bounds every contraction.

    Example:
        >>> round(dobrushin([[0.9, 0.2], [0.1, 0.8]]), 12)
        0.7
    """
    step = np.asarray(transition, np.float64)
    return float(0.5 * np.abs(step[:, :, None] - step[:, None, :]).sum(0).max())


def _check_chances(table: FloatArray, axis: int, where: str) -> None:
    sums = table.sum(axis)
    if not ((table >= 0.0).all() and np.allclose(sums, 1.0, rtol=0.0, atol=SUM_TOLERANCE)):
        raise DataError("chances are at least 0 and sum to 1", where=where, found=sums.tolist())
