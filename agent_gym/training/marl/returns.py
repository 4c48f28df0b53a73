"""Advantages and targets, corrected for who played.

With ``ratio`` the chance of an action now over its chance when it was drawn, cut at 1,

    A_t = r_t + gamma V_t+1 - V_t + gamma lambda ratio_t+1 A_t+1,    target_t = V_t + ratio_t A_t.

These are the targets of V-trace with c = lambda min(1, ratio). Where the policies are equal it is
GAE. An action's own ratio is not part of its advantage; it is part of the loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray


class Returns(NamedTuple):
    """For every agent at every step, ``[T, E, N]``."""

    advantages: FloatArray
    targets: FloatArray


def traced(
    rewards: NDArray[np.floating],
    values: FloatArray,
    ended: NDArray[np.bool_],
    ratios: FloatArray,
    gamma: float,
    trace: float,
) -> Returns:
    """Return advantages and targets.

    Args:
        rewards: What the team was paid, ``[T, E]``.
        values: What was expected, in units of the reward, ``[T+1, E, N]``.
        ended: After which steps nothing comes, ``[T, E]``.
        ratios: Chance of each action now over its chance then, ``[T, E, N]``.
        gamma: Worth of the next step.
        trace: How far surprises reach back.
    """
    if values[:-1].shape != ratios.shape or ratios.shape[:2] != rewards.shape:
        raise ValueError(f"shapes {rewards.shape}, {values.shape}, {ratios.shape} do not fit")
    cut = np.minimum(ratios, 1.0)
    onward = gamma * ~ended[..., None]
    surprise = rewards[..., None] + onward * values[1:] - values[:-1]
    advantages = np.empty_like(surprise)
    after = np.zeros_like(surprise[0])
    for t in reversed(range(len(surprise))):
        advantages[t] = surprise[t] + onward[t] * trace * after
        after = cut[t] * advantages[t]
    return Returns(advantages, values[:-1] + cut * advantages)


def normalized(advantages: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Return advantages with mean 0 and deviation 1 over the rows that are used; others are 0."""
    of_use = advantages[used]
    if not of_use.size:
        return np.zeros_like(advantages)
    scaled = (advantages - of_use.mean()) / (of_use.std() + 1e-8)
    return np.where(used, scaled, 0.0)


def effective_share(ratios: FloatArray, used: NDArray[np.bool_]) -> float:
    """Return the effective sample size over the number of rows: 1 if the policies are equal.

    Example:
        >>> effective_share(np.array([2.0, 0.0]), np.array([True, True]))
        0.5
    """
    each = ratios[used]
    square = float(np.square(each).sum())
    return float(each.sum()) ** 2 / (each.size * square) if square > 0.0 else 0.0
