"""How far a policy may follow what others taught it: so far that it still is nearly the same.

The mixture of two policies is that of their logits. The KL divergence of the mixture from the
policy that saw no others never falls on the way from it to the other one (its slope is the share
times a variance), so bisection finds the largest share that keeps a bound, and the bound holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

HALVINGS = 60  # beyond them no number lies between the two ends


@dataclass(frozen=True, slots=True)
class Projection:
    """What a projection found.

    Attributes:
        alpha: Largest share of the policy that saw others, 0 to 1.
        divergence: Mean KL from the policy that did not, at this share, in nats; within the bound.
        full_divergence: The same at share 1, which is what there was to hold back.
        bound: The bound that it keeps.
    """

    alpha: float
    divergence: float
    full_divergence: float
    bound: float

    def apply(self, without: FloatArray, with_others: FloatArray) -> FloatArray:
        """Return logits for states met later, each with no more than the share.

        The mean over the states of the projection says nothing about a single new one, so a state
        in which the share is too much gets its own; the bound holds in every state.
        """

        def spread(share: FloatArray) -> FloatArray:
            return divergences(mix_logits(without, with_others, share), without)

        own = _largest(spread, self.bound, np.full(without.shape[:-1], self.alpha))
        return mix_logits(without, with_others, own)


def project(without: FloatArray, with_others: FloatArray, bound: float) -> Projection:
    """Return the largest share whose mean divergence over the states keeps the bound.

    Example:
        >>> found = project(np.array([[0.0, 0.0]]), np.array([[0.0, 4.0]]), 0.01)
        >>> round(found.alpha, 4), round(found.divergence, 6), round(found.full_divergence, 3)
        (0.0711, 0.01, 0.603)
    """
    if without.size == 0:
        raise DataError("a policy is projected on at least one state", found=without.shape)

    def mean_at(share: FloatArray) -> FloatArray:
        every = np.broadcast_to(share, without.shape[:-1])
        found = divergences(mix_logits(without, with_others, every), without)
        return np.asarray(found.mean(), np.float64)

    share = _largest(mean_at, bound, np.asarray(1.0))
    full = float(mean_at(np.asarray(1.0)))
    return Projection(float(share), float(mean_at(share)), full, bound)


def mix_logits(without: FloatArray, with_others: FloatArray, share: FloatArray) -> FloatArray:
    """Return logits between two policies, one share a state; -inf is an action not allowed."""
    if without.shape != with_others.shape or share.shape != without.shape[:-1]:
        raise DataError(
            "logits of two policies and shares are of the same states",
            found=f"{without.shape}, {with_others.shape} and {share.shape}",
        )
    barred = np.isneginf(without)
    if not (barred == np.isneginf(with_others)).all():
        raise DataError("two policies do not allow the same actions")
    first, second = np.where(barred, 0.0, without), np.where(barred, 0.0, with_others)
    if not (np.isfinite(first).all() and np.isfinite(second).all()) or barred.all(-1).any():
        raise DataError("a logit is not a number, or a state allows nothing")
    mixed: FloatArray = first + share[..., None] * (second - first)
    return np.where(barred, -np.inf, mixed)


def divergences(logits: FloatArray, reference: FloatArray) -> FloatArray:
    """Return KL of softmax(logits) from softmax(reference) in each state, in nats."""
    mine, other = _log_softmax(logits), _log_softmax(reference)
    gap = np.where(np.isneginf(mine), 0.0, mine) - np.where(np.isneginf(other), 0.0, other)
    total: FloatArray = (np.exp(mine) * gap).sum(-1)
    return total


def _largest(
    divergence: Callable[[FloatArray], FloatArray], bound: float, most: FloatArray
) -> FloatArray:
    """Return the largest shares up to ``most`` whose divergences keep the bound."""
    keeps = divergence(most) <= bound
    low, high = np.where(keeps, most, 0.0), most
    for _ in range(0 if keeps.all() else HALVINGS):
        middle = 0.5 * (low + high)
        keeps = divergence(middle) <= bound
        low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
    return low


def _log_softmax(logits: FloatArray) -> FloatArray:
    shifted = logits - logits.max(-1, keepdims=True)
    scaled: FloatArray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return scaled
