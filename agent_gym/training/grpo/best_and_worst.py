"""Learning from records without log-probabilities: the best of each group, or best against worst.

GRPO cannot use such records, since it must know how likely each decision was. What can be done:
imitate the best trajectory of each group (SFT), or move towards it and away from the worst (DPO).
Neither is as good as recording again with a policy that draws; both are a start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from agent_gym.core.errors import DataError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.registry import Config
from agent_gym.training.grpo.advantages import EQUAL_WITHIN
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import AdamConfig
from agent_gym.training.grpo.optimizer import Optimizer
from agent_gym.training.grpo.result import GroupTotals, TrainingResult, UpdateMetrics
from agent_gym.training.grpo.trainable import TrainablePolicy
from agent_gym.training.threads import torch_threads


class SFTConfig(Config):
    """How the best trajectories are imitated."""

    epochs: int = Field(default=20, ge=1)
    adam: AdamConfig = Field(default_factory=AdamConfig)
    threads: int = Field(default=1, ge=1, le=1024, description="of torch")


class DPOConfig(Config):
    """How best is set against worst."""

    epochs: int = Field(default=20, ge=1)
    beta: float = Field(default=0.1, gt=0, description="how strongly it is held to where it began")
    adam: AdamConfig = Field(default_factory=AdamConfig)
    threads: int = Field(default=1, ge=1, le=1024, description="of torch")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The best and the worst finished trajectory of each group that has a difference."""

    best: NDArray[np.intp]
    worst: NDArray[np.intp]
    groups: GroupTotals


def imitate_best(policy: TrainablePolicy, batch: RolloutBatch, config: SFTConfig) -> TrainingResult:
    """Make the best trajectory of each group likelier; the policy is changed in place."""
    pairs = best_and_worst(batch)
    best = batch.select(pairs.best)
    mask = torch.as_tensor(best.mask)

    def loss() -> Tensor:
        return sft_loss(policy.evaluate(best).log_prob, mask)

    trained = tuple(sorted(best.ids))
    steps = _Steps("sft", config.epochs, config.adam)
    with torch_threads(config.threads):
        return steps.run(policy, loss, pairs.groups, batch, trained)


def prefer_best(policy: TrainablePolicy, batch: RolloutBatch, config: DPOConfig) -> TrainingResult:
    """Make the best of each group likelier than the worst, compared with how it began."""
    pairs = best_and_worst(batch)
    both = batch.select(np.concatenate([pairs.best, pairs.worst]))
    mask = torch.as_tensor(both.mask)

    def sums() -> tuple[Tensor, Tensor]:
        totals = (policy.evaluate(both).log_prob * mask).sum(-1)
        return totals[: len(pairs.best)], totals[len(pairs.best) :]

    with torch.no_grad(), torch_threads(config.threads):
        first_best, first_worst = sums()

    def loss() -> Tensor:
        best, worst = sums()
        return dpo_loss(best - first_best, worst - first_worst, config.beta)

    trained = tuple(sorted(both.ids))
    steps = _Steps("dpo", config.epochs, config.adam)
    with torch_threads(config.threads):
        return steps.run(policy, loss, pairs.groups, batch, trained)


def sft_loss(log_prob: Tensor, mask: Tensor) -> Tensor:
    """Return how unlikely the decisions are, on average."""
    weights = mask.to(log_prob.dtype)
    return -(log_prob * weights).sum() / weights.sum().clamp(min=1)


def dpo_loss(best: Tensor, worst: Tensor, beta: float) -> Tensor:
    """Return the loss of preferring best to worst; both are log-ratios to the reference."""
    return -torch.nn.functional.logsigmoid(beta * (best - worst)).mean()


def best_and_worst(batch: RolloutBatch) -> Pairs:
    """Find the best and the worst of each group; of equals the first by id is taken."""
    groups: dict[str, list[int]] = {}
    for row in sorted(range(len(batch)), key=lambda i: batch.ids[i]):
        rows = groups.setdefault(batch.group_keys[row], [])
        if batch.finished[row]:
            rows.append(row)
    best: list[int] = []
    worst: list[int] = []
    refused = 0
    for rows in groups.values():
        returns = batch.returns[rows]
        if len(rows) < 2:
            refused += 1
        elif returns.max() - returns.min() > EQUAL_WITHIN:
            best.append(rows[int(returns.argmax())])
            worst.append(rows[int(returns.argmin())])
    if not best:
        raise DataError(
            "no group has a best and a worst trajectory",
            found=f"{len(groups)} groups, {refused} of them with fewer than 2 that finished",
            remedy="Record several trajectories of the same snapshot by a policy that varies",
        )
    dropped = len(groups) - refused - len(best)
    totals = GroupTotals(kept=len(best), dropped=dropped, refused=refused)
    return Pairs(np.array(best, dtype=np.intp), np.array(worst, dtype=np.intp), totals)


@dataclass(frozen=True, slots=True)
class _Steps:
    """A number of steps down one loss."""

    method: str
    epochs: int
    adam: AdamConfig

    def run(
        self,
        policy: TrainablePolicy,
        loss: Callable[[], Tensor],
        groups: GroupTotals,
        batch: RolloutBatch,
        trained: tuple[str, ...],
    ) -> TrainingResult:
        before, optimizer = policy.version, Optimizer(policy, self.adam)
        updates: list[UpdateMetrics] = []
        for epoch in range(self.epochs):
            value = loss()
            norm = optimizer.step(value)
            updates.append(
                UpdateMetrics(
                    update=epoch,
                    trajectories=len(trained),
                    return_mean=float(batch.returns.mean()),
                    groups=groups,
                    zero_share=groups.dropped / (groups.kept + groups.dropped),
                    entropy_coefficient=0.0,
                    ess=None,
                    steps=1,
                    loss=float(value.detach()),
                    grad_norm=norm,
                )
            )
        return TrainingResult(
            method=self.method,
            model_before=before,
            model_after=policy.version,
            data_hash=fingerprint(list(trained)),
            trained_ids=trained,
            groups=groups,
            refused={},
            updates=tuple(updates),
        )
