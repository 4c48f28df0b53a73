"""How much better each trajectory did than the others of its group.

A group holds trajectories that began in the same state of the same snapshot under the same rules
and were played by the same policy; then the mean of the group is what one could expect there, and
luck that all had drops out. A group whose members are all equal says nothing: its advantages are
exactly zero, never a quotient of rounding errors. A lone trajectory has nobody to be compared with
and is refused. Plain numpy: a neural policy and a language model use the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

Scaling: TypeAlias = Literal["std", "none", "batch"]
BoolArray: TypeAlias = NDArray[np.bool_]

EQUAL_WITHIN = 1e-9
"""Returns of a group that differ by no more than this are equal."""


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """What became of the groups: trained on, dropped as all equal, refused as too small."""

    kept: int = 0
    dropped: int = 0
    refused: int = 0

    def __add__(self, other: GroupCounts) -> GroupCounts:
        return GroupCounts(
            self.kept + other.kept, self.dropped + other.dropped, self.refused + other.refused
        )

    @property
    def zero_share(self) -> float:
        """Return the share of groups, of those large enough, that were dropped as all equal."""
        compared = self.kept + self.dropped
        return self.dropped / compared if compared else 0.0


@dataclass(frozen=True, slots=True)
class Advantages:
    """One number a trajectory, or one a tick; zero wherever a group says nothing.

    ``trained`` marks the trajectories whose group is neither dropped nor refused.
    """

    values: FloatArray
    trained: BoolArray
    counts: GroupCounts


def group_advantages(
    returns: FloatArray, groups: NDArray[Any], scaling: Scaling = "std", eps: float = 1e-6
) -> Advantages:
    """Compare whole trajectories with their group.

    Args:
        returns: One return a trajectory.
        groups: The group of each, any labels.
        scaling: ``none``: return less the mean of the group. ``std``: that over the sample
            standard deviation of the group. ``batch``: over that of all returns together.
        eps: Added to the standard deviation.

    Example:
        >>> group_advantages(np.array([1.0, 3.0, 5.0, 5.0]), np.array([0, 0, 1, 1]), "none").values
        array([-1.,  1.,  0.,  0.])
    """
    values = np.asarray(returns, dtype=np.float64)
    labels, sizes = _labels(groups)
    _check(values, labels)
    compared = (sizes >= 2)[labels]
    advantages, says = _compare(values, labels, compared, scaling, eps)
    return Advantages(advantages, says[labels], _counts(sizes, says))


def tick_advantages(
    rewards: FloatArray,
    mask: BoolArray,
    groups: NDArray[Any],
    scaling: Scaling = "std",
    *,
    eps: float = 1e-6,
    discount: float = 1.0,
) -> Advantages:
    """Compare, tick by tick, what each trajectory still earned with the rest of its group.

    What came before a decision cannot be its merit, so the advantage of a tick is the reward from
    there on less the group's mean of it at the same tick. Ticks that only one member reached are
    zero. With a discount below one, rewards far ahead count for less.
    """
    alive = np.asarray(mask, dtype=np.bool_)
    earned = np.where(alive, rewards, 0.0)
    labels, sizes = _labels(groups)
    _check(earned, labels)
    ahead = np.zeros_like(earned)
    rest = np.zeros(len(earned))
    for t in range(earned.shape[1] - 1, -1, -1):
        rest = earned[:, t] + discount * rest
        ahead[:, t] = rest
    n_ticks = earned.shape[1]
    cells = (labels[:, np.newaxis] * n_ticks + np.arange(n_ticks)).ravel()
    reached = np.bincount(cells, weights=alive.ravel(), minlength=len(sizes) * n_ticks)
    compared = alive.ravel() & (reached >= 2)[cells]
    flat, says = _compare(ahead.ravel(), cells, compared, scaling, eps)
    says = np.asarray(says.reshape(-1, n_ticks).any(axis=1))
    return Advantages(flat.reshape(earned.shape), says[labels], _counts(sizes, says))


def _compare(
    values: FloatArray, labels: NDArray[np.intp], compared: BoolArray, scaling: Scaling, eps: float
) -> tuple[FloatArray, BoolArray]:
    """Return the advantage of each value and whether each label says anything."""
    n = int(labels.max(initial=-1)) + 1
    own, at = values[compared], labels[compared]
    counts = np.bincount(at, minlength=n)
    means = np.bincount(at, weights=own, minlength=n) / np.maximum(counts, 1)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, at, own)
    np.maximum.at(high, at, own)
    says = (counts >= 2) & (high > low + EQUAL_WITHIN)
    centred = np.where(says[at], own - means[at], 0.0)
    if scaling == "std":
        squares = np.bincount(at, weights=centred**2, minlength=n)
        spread = np.sqrt(squares / np.maximum(counts - 1, 1)) + eps
        centred /= np.where(says, spread, 1.0)[at]
    elif scaling == "batch" and says.any():
        centred /= own.std(ddof=1) + eps
    advantages = np.zeros_like(values)
    advantages[compared] = centred
    return advantages, says


def _labels(groups: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    _, labels, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    return labels.reshape(-1), sizes


def _counts(sizes: NDArray[np.intp], says: BoolArray) -> GroupCounts:
    large = sizes >= 2
    return GroupCounts(
        kept=int(says.sum()),
        dropped=int((large & ~says).sum()),
        refused=int((~large).sum()),
    )


def _check(values: FloatArray, labels: NDArray[np.intp]) -> None:
    if len(values) != len(labels):
        raise DataError("every trajectory needs its group", found=len(labels), expected=len(values))
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise DataError("a reward is not a number", where=f"trajectory {row}")
