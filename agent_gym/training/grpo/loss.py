"""The loss of GRPO and its relatives, on log-probabilities that are given.

Three policies, never two: the *behaviour* policy that recorded, the *proximal* policy this update
began with, and the *current* one that is being changed. The ratio current/proximal is what is
clipped; the ratio behaviour -> proximal only weights (cut, without a gradient) what was recorded
by another policy than the one the update began with. All tensors are ``[trajectories, decisions]``
and a decision is whatever has a log-probability: an action of a tick, or a token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from agent_gym.training.grpo.loss_config import (
    ClipSurrogate,
    ImportanceConfig,
    LossConfig,
)


@dataclass(frozen=True, slots=True)
class LossInputs:
    """What a loss is computed from.

    Args:
        current: Log-probabilities of what was done, with a gradient.
        behaviour: The same, as recorded.
        advantages: One a trajectory, or one a decision.
        mask: True where there is a decision.
        proximal: Log-probabilities by the policy the update began with; without them that policy
            is the one that recorded.
        reference: Log-probabilities by the policy to stay near to.
        exact_kl: Distance to the reference, summed over all that could have been done; it takes
            the place of the estimate from ``reference``.
        entropy: Entropy of each decision, exact, with a gradient.
        n_items: What ``dapo`` divides by; without it, the decisions of this batch.
        n_sequences: What ``dr_grpo`` multiplies its length by; without it, the trajectories here.
    """

    current: Tensor
    behaviour: Tensor
    advantages: Tensor
    mask: Tensor
    proximal: Tensor | None = None
    reference: Tensor | None = None
    exact_kl: Tensor | None = None
    entropy: Tensor | None = None
    n_items: float | None = None
    n_sequences: float | None = None


@dataclass(frozen=True, slots=True)
class LossFigures:
    """What one batch looked like; alarms read these."""

    loss: float
    clip_share: float
    approx_kl: float
    ratio_max: float
    entropy: float | None
    kl: float | None


@dataclass(frozen=True, slots=True)
class LossReport:
    """The loss, with its gradient, and the figures of the batch."""

    loss: Tensor
    figures: LossFigures


def policy_loss(
    inputs: LossInputs, config: LossConfig, entropy_coefficient: float = 0.0
) -> LossReport:
    """Return the loss of a batch; entropy, times its coefficient, is taken off."""
    current, mask = inputs.current, inputs.mask.to(inputs.current.dtype)
    advantages = inputs.advantages
    advantages = advantages.unsqueeze(1) if advantages.dim() == 1 else advantages
    proximal = inputs.behaviour if inputs.proximal is None else inputs.proximal
    log_ratio = torch.where(inputs.mask.bool(), current - proximal, 0.0)
    if config.level == "sequence":
        log_ratio = _mean_of_each(log_ratio, mask)
    ratio = log_ratio.exp()
    terms, clipped = _surrogate(ratio, current, advantages, config)
    if inputs.proximal is not None:
        weights = importance_weights(inputs.behaviour, proximal, inputs.mask, config.importance)
        terms = terms * weights
    kl = _distance(inputs, ratio, config)
    if config.kl:
        if kl is None:
            raise ValueError("kl > 0 needs the log-probabilities of a reference, or exact_kl")
        terms = terms + config.kl * kl
    loss = _aggregate(terms * mask, mask, inputs, config)
    entropy = None if inputs.entropy is None else _mean(inputs.entropy, mask)
    if entropy_coefficient:
        if entropy is None:
            raise ValueError("an entropy coefficient needs the entropy of each decision")
        loss = loss - entropy_coefficient * entropy
    return LossReport(loss, _figures(loss, log_ratio, clipped, mask, (entropy, kl)))


def importance_weights(
    behaviour: Tensor, proximal: Tensor, mask: Tensor, config: ImportanceConfig
) -> Tensor:
    """Return the cut weight of each decision or trajectory, without a gradient."""
    with torch.no_grad():
        log_ratio = torch.where(mask.bool(), proximal - behaviour, 0.0)
        total = log_ratio.sum(-1, keepdim=True)
        level = log_ratio if config.level == "token" else total
        weights = level.exp().clamp(max=config.cap)
        if config.band is not None:
            mean = _mean_of_each(log_ratio, mask.to(log_ratio.dtype)).exp()
            weights = weights * ((mean <= config.band) & (mean >= 1 / config.band))
        return weights


def effective_sample_share(behaviour: Tensor, proximal: Tensor, mask: Tensor) -> float:
    """Return how many of the trajectories still count, as a share: 1 if the policies are equal.

    It is the effective sample size of the ratios of whole trajectories over their number.
    """
    with torch.no_grad():
        log_ratio = torch.where(mask.bool(), proximal - behaviour, 0.0).sum(-1).double()
        weights = (log_ratio - log_ratio.max()).exp()
        return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))


def categorical_entropy(log_probs: Tensor) -> Tensor:
    """Return the entropy of each distribution along the last axis."""
    return -(log_probs.exp() * log_probs).sum(-1)


def categorical_kl(current: Tensor, reference: Tensor) -> Tensor:
    """Return the exact distance of each distribution to its reference, along the last axis."""
    return (current.exp() * (current - reference)).sum(-1)


def _surrogate(
    ratio: Tensor, current: Tensor, advantages: Tensor, config: LossConfig
) -> tuple[Tensor, Tensor]:
    """Return the loss of each decision and where the clip holds it."""
    kind = config.surrogate
    if not isinstance(kind, ClipSurrogate):
        weight = ratio.clamp(max=kind.maximum).detach()
        return -weight * advantages * current, (ratio > kind.maximum) & (advantages > 0)
    cut = ratio.clamp(1 - kind.low, 1 + kind.high)
    gain = torch.minimum(ratio * advantages, cut * advantages)
    if kind.dual is not None:
        gain = torch.where(advantages < 0, torch.maximum(gain, kind.dual * advantages), gain)
    low = (ratio < 1 - kind.low) & (advantages < 0)
    high = (ratio > 1 + kind.high) & (advantages > 0)
    return -gain, low | high


def _distance(inputs: LossInputs, ratio: Tensor, config: LossConfig) -> Tensor | None:
    """Return the distance to the reference of each decision: exact, or estimated without bias.

    The estimate exp(d) - d - 1 is that of the current policy only on its own samples; times the
    ratio it is so on those of the proximal policy too, in value and in gradient.
    """
    if inputs.exact_kl is not None:
        return inputs.exact_kl
    if inputs.reference is None:
        return None
    difference = torch.where(inputs.mask.bool(), inputs.reference - inputs.current, 0.0)
    estimate = difference.exp() - difference - 1
    return estimate * ratio if config.kl_times_ratio else estimate


def _aggregate(terms: Tensor, mask: Tensor, inputs: LossInputs, config: LossConfig) -> Tensor:
    """Make one number of the losses of all decisions.

    Only ``dr_grpo`` (and ``luspo``) give every decision the same weight whatever the length of
    its trajectory and of the others; ``grpo`` divides by each length and so favours long failures.
    """
    if config.aggregation == "grpo":
        return (terms.sum(-1) / mask.sum(-1).clamp(min=1)).mean()
    if config.aggregation == "bnpo":
        return terms.sum() / mask.sum().clamp(min=1)
    if config.aggregation == "dapo":
        items = mask.sum() if inputs.n_items is None else mask.new_tensor(inputs.n_items)
        return terms.sum() / items.clamp(min=1)
    if config.aggregation == "luspo":
        return terms.sum(-1).mean()
    n = len(mask) if inputs.n_sequences is None else inputs.n_sequences
    return terms.sum() / (n * (config.length or mask.shape[1]))


def _figures(
    loss: Tensor,
    log_ratio: Tensor,
    clipped: Tensor,
    mask: Tensor,
    entropy_and_kl: tuple[Tensor | None, Tensor | None],
) -> LossFigures:
    """Read the figures off in one go: each single read would wait for the device."""
    entropy, kl = entropy_and_kl
    with torch.no_grad():
        nothing = loss.new_zeros(())
        values = torch.stack(
            [
                loss,
                _mean(clipped.to(mask.dtype).expand_as(mask), mask),
                _mean((log_ratio.exp() - log_ratio - 1).expand_as(mask), mask),
                log_ratio.max().exp(),
                nothing if entropy is None else entropy,
                nothing if kl is None else _mean(kl.expand_as(mask), mask),
            ]
        ).tolist()
    return LossFigures(
        loss=values[0],
        clip_share=values[1],
        approx_kl=values[2],
        ratio_max=values[3],
        entropy=None if entropy is None else values[4],
        kl=None if kl is None else values[5],
    )


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum() / mask.sum().clamp(min=1)


def _mean_of_each(values: Tensor, mask: Tensor) -> Tensor:
    return (values * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
