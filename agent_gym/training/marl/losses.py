"""The two losses, on tensors that are given; shapes are compared before anything is computed.

A log-probability of shape ``[B]`` times an advantage of shape ``[B, 1]`` is an outer product that
gives every action the same credit, silently. Here it is an error.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class PolicyTerms:
    """What the loss of a policy is computed from; all of one shape.

    Attributes:
        log_probs: Of what was done, with a gradient.
        entropy: Of each decision, with a gradient.
        drawn: Log-probabilities when the actions were drawn.
        ratios: Chance when this update began, over the chance when the action was drawn.
        advantages: How much better it was than expected.
        weights: What each row counts; 0 for the dead.
    """

    log_probs: Tensor
    entropy: Tensor
    drawn: Tensor
    ratios: Tensor
    advantages: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """The loss, and figures of the rows that count (without a gradient)."""

    loss: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


def policy_loss(terms: PolicyTerms, clip: float, entropy_weight: float) -> PolicyLoss:
    """Return the clipped loss of a policy, entropy taken off.

    The clip is centred on where each row's ratio was when the update began, and no wider than
    that ratio allows; for fresh rows, whose ratio is 1, it is the usual one.
    """
    same_shape(
        log_probs=terms.log_probs,
        entropy=terms.entropy,
        drawn=terms.drawn,
        ratios=terms.ratios,
        advantages=terms.advantages,
        weights=terms.weights,
    )
    ratio, start = (terms.log_probs - terms.drawn).exp(), terms.ratios
    reach = clip * start.clamp(max=1.0)
    cut = ratio.clamp(start - reach, start + reach)
    gain = torch.minimum(ratio * terms.advantages, cut * terms.advantages)
    entropy = weighted(terms.entropy, terms.weights)
    loss = -weighted(gain, terms.weights) - entropy_weight * entropy
    with torch.no_grad():
        counted = (terms.weights > 0).to(ratio.dtype)
        moved = (ratio / start).log()
        kl = weighted(moved.exp() - 1.0 - moved, counted)
        clipped = weighted(((ratio - start).abs() > reach).to(ratio.dtype), counted)
    return PolicyLoss(loss, entropy.detach(), kl, clipped)


def imitation_loss(log_probs: Tensor, merits: Tensor, weights: Tensor) -> Tensor:
    """Return how far the policy is from doing what turned out well, by merit.

    Args:
        log_probs: Of what was done, with a gradient.
        merits: By how much it was better than expected, 0 where it is not to be copied.
        weights: What each row counts in the loss of the policy; the sum is the same unit.
    """
    same_shape(log_probs=log_probs, merits=merits, weights=weights)
    return -(log_probs * merits).sum() / weights.sum().clamp(min=1e-8)


def value_loss(
    values: Tensor, before: Tensor, targets: Tensor, weights: Tensor, clip: float, huber: float
) -> Tensor:
    """Return the loss of a critic: the worse of its value and of that value held near the old one.

    Args:
        values: What it says, scaled, with a gradient.
        before: What it said when this update began.
        targets: What it should have said, scaled.
        weights: What each row counts; the dead count too.
        clip: How far from the old value it may be rewarded for going.
        huber: Error from which the loss is straight.
    """
    same_shape(values=values, before=before, targets=targets, weights=weights)
    near = before + (values - before).clamp(-clip, clip)
    errors = (
        functional.huber_loss(each, targets, reduction="none", delta=huber)
        for each in (values, near)
    )
    return weighted(torch.maximum(*errors), weights)


def same_shape(**tensors: Tensor) -> None:
    """Raise unless all tensors have one shape: broadcasting would mix rows that do not belong."""
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if len(set(shapes.values())) != 1:
        raise ValueError(f"tensors of a loss must have one shape, found {shapes}")


def weighted(values: Tensor, weights: Tensor) -> Tensor:
    """Return a mean in which every row counts by its weight."""
    return (values * weights).sum() / weights.sum().clamp(min=1e-8)
