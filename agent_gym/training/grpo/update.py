"""One update: a batch in, a few steps of the optimiser, its figures out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo.advantages import (
    Advantages,
    GroupCounts,
    group_advantages,
    tick_advantages,
)
from agent_gym.training.grpo.alarms import alarm
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.loss import (
    LossFigures,
    LossInputs,
    categorical_kl,
    effective_sample_share,
    policy_loss,
)
from agent_gym.training.grpo.optimizer import Optimizer
from agent_gym.training.grpo.screening import Screened
from agent_gym.training.grpo.trainable import Evaluation, TrainablePolicy


@dataclass(frozen=True, slots=True)
class Learners:
    """Who takes part: the policy that learns, its optimiser, and the policy to stay near to."""

    policy: TrainablePolicy
    optimizer: Optimizer
    reference: TrainablePolicy | None


@dataclass(slots=True)
class Progress:
    """What one update has come to so far."""

    counts: GroupCounts
    trained_ids: dict[str, None] = field(default_factory=dict)  # in the order of the steps
    ess: float | None = None
    steps: int = 0
    figures: LossFigures | None = None
    grad_norm: float | None = None
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """Some groups of a batch, with what was computed of them once."""

    batch: RolloutBatch
    advantages: Tensor
    behaviour: Tensor
    proximal: Tensor
    mask: Tensor
    reference: Evaluation | None
    n_sequences: float


def advantages_of(batch: RolloutBatch, config: GRPOConfig) -> Advantages:
    """Return the advantages of a batch by the settings."""
    groups = np.array(batch.group_keys)
    if config.credit == "trajectory":
        return group_advantages(batch.returns, groups, config.scaling, config.advantage_eps)
    if batch.scored:
        raise ConfigError(
            "reward_to_go needs the reward of each tick, and these trajectories have one score",
            where="credit",
            remedy="Set credit to trajectory",
        )
    return tick_advantages(
        batch.rewards,
        batch.mask,
        groups,
        config.scaling,
        eps=config.advantage_eps,
        discount=config.discount,
    )


def run_update(learners: Learners, screened: Screened, config: GRPOConfig, update: int) -> Progress:
    """Learn from one batch; without a group that says anything, nothing is touched."""
    batch = screened.batch
    found = advantages_of(batch, config)
    refused = screened.refused_groups + found.counts.refused
    progress = Progress(replace(found.counts, refused=refused))
    rows = np.flatnonzero(found.trained)
    if not len(rows):
        progress.stopped = "no group: all are equal or refused"
        return progress
    if config.equal_groups == "regularise":
        rows = np.arange(len(batch))
    share = len(batch) / len(rows)
    parts = [
        _prepare(learners, batch, found, one, share)
        for one in _minibatches(batch, rows, config, Seeds(config.seed).child("update", update))
    ]
    progress.ess = effective_sample_share(
        *(torch.cat(tensors) for tensors in _behaviour_proximal_mask(parts))
    )
    if progress.ess < config.min_ess:
        progress.stopped = f"effective sample: {progress.ess:.4g} < {config.min_ess:g}"
        return progress
    coefficient = config.entropy.at(update)
    for _ in range(config.epochs):
        for part in parts:
            if not _step(learners, part, config, coefficient, progress):
                return progress
    return progress


def _step(
    learners: Learners, part: _Part, config: GRPOConfig, coefficient: float, progress: Progress
) -> bool:
    """Take one step, unless an alarm says that the update is over."""
    seen = learners.policy.evaluate(part.batch)
    inputs = LossInputs(
        current=seen.log_prob,
        behaviour=part.behaviour,
        advantages=part.advantages,
        mask=part.mask,
        proximal=part.proximal,
        reference=None if part.reference is None else part.reference.log_prob,
        exact_kl=_exact_kl(seen, part.reference),
        entropy=seen.entropy,
        n_sequences=part.n_sequences,
    )
    report = policy_loss(inputs, config.loss, coefficient)
    progress.figures = report.figures
    progress.stopped = alarm(report.figures, config.alarms)
    if progress.stopped is not None:
        return False
    progress.grad_norm = learners.optimizer.step(report.loss)
    progress.steps += 1
    progress.trained_ids.update(dict.fromkeys(part.batch.ids))
    return True


def _minibatches(
    batch: RolloutBatch, rows: NDArray[np.intp], config: GRPOConfig, seeds: Seeds
) -> list[NDArray[np.intp]]:
    """Split the rows by whole groups, in an order that the seed decides."""
    if config.minibatches == 1:
        return [rows]
    keys = sorted({batch.group_keys[i] for i in rows})
    order = seeds.rng().permutation(len(keys))
    part = {keys[j]: place % config.minibatches for place, j in enumerate(order)}
    of_row = np.array([part[batch.group_keys[i]] for i in rows])
    split = [rows[of_row == number] for number in range(config.minibatches)]
    return [one for one in split if len(one)]


def _prepare(
    learners: Learners,
    batch: RolloutBatch,
    found: Advantages,
    rows: NDArray[np.intp],
    share: float,
) -> _Part:
    own = batch if len(rows) == len(batch) else batch.select(rows)
    with torch.no_grad():
        proximal = learners.policy.evaluate(own).log_prob
        reference = None if learners.reference is None else learners.reference.evaluate(own)
    return _Part(
        batch=own,
        advantages=torch.as_tensor(found.values[rows]).to(proximal),
        behaviour=torch.as_tensor(own.log_probs).to(proximal),
        proximal=proximal,
        mask=torch.as_tensor(own.mask, device=proximal.device),
        reference=reference,
        n_sequences=len(rows) * share,
    )


def _behaviour_proximal_mask(parts: Sequence[_Part]) -> tuple[list[Tensor], ...]:
    return tuple(
        [getattr(part, name) for part in parts] for name in ("behaviour", "proximal", "mask")
    )


def _exact_kl(seen: Evaluation, reference: Evaluation | None) -> Tensor | None:
    """Return the exact distance where both policies give all their chances."""
    if reference is None or seen.log_probs is None or reference.log_probs is None:
        return None
    distance = categorical_kl(seen.log_probs, reference.log_probs)
    return distance.flatten(2).sum(-1) if distance.dim() > 2 else distance
