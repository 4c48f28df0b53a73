"""From a claimed batch and the champion to a challenger in a folder, by GRPO."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from agent_gym.agents.artifact import About
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.rollouts.database import FEATURE_NAMES, TrajectoryBatch
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.result import TrainingResult
from agent_gym.training.grpo.service import GRPOTrainingService
from agent_gym.training.grpo.stored import batch_of
from agent_gym.training.grpo.trainable import TrainablePolicy


class SavedPolicy(Protocol):
    """A policy that can be put into a folder."""

    def save(self, folder: Path, about: About | None = None) -> Any: ...


class Learner(TrainablePolicy, Protocol):
    """A policy that learns, and what it has become."""

    @property
    def policy(self) -> SavedPolicy: ...


def learn(
    job: TrainingJob,
    folder: JobFolder,
    learner: Learner,
    batch: TrajectoryBatch,
    config: GRPOConfig,
) -> dict[str, Any]:
    """Train a policy on exactly this batch, and keep it in the folder of the job.

    Interrupted, it goes on from its last checkpoint to the same bits.
    """
    parent = learner.version
    rollouts = recorded(batch, judged=config.reward == "judge")
    if job.shuffle_rewards:
        rollouts = shuffled(rollouts, Seeds(config.seed).child("shuffled", job.job_id))
    result = GRPOTrainingService(config).train(
        learner, lambda update, policy: rollouts, folder=folder.checkpoints
    )
    if not folder.policy.exists():
        about = About(
            parents=(parent,),
            data_hash=result.data_hash,
            config=config.model_dump(mode="json") | {"shuffle_rewards": job.shuffle_rewards},
        )
        learner.policy.save(folder.policy, about)
    return told(result)


def recorded(batch: TrajectoryBatch, *, judged: bool = False) -> RolloutBatch:
    """Return the members of a batch side by side, in their order; ``judged``: with their scores."""
    members = [one for group in batch.groups for one in group.trajectories]
    named = {tuple(one.row.details.get(FEATURE_NAMES, ())) for one in members}
    if len(named) != 1 or () in named:
        raise DataError(
            "the trajectories of a batch must all say which features they show",
            where=f"batch {batch.batch_id}",
            found=f"{len(named)} different lists of names",
            remedy=f"Record with the names of the world's features in details[{FEATURE_NAMES!r}]",
        )
    return batch_of(members, named.pop(), judged=judged)


def shuffled(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    """Return the batch with the rewards of other trajectories: nothing can be learned from it."""
    order = seeds.rng().permutation(len(batch))
    lengths = batch.mask.sum(axis=1)
    rewards = np.where(batch.mask, batch.rewards[order], 0.0)
    same = bool((lengths == lengths[order]).all())
    returns = batch.returns[order] if same or batch.scored else rewards.sum(axis=1)
    return replace(batch, rewards=rewards, returns=returns)


def told(result: TrainingResult) -> dict[str, Any]:
    """Return how training went, as it is kept with the job."""
    last = result.updates[-1]
    return {
        "changed": result.changed,
        "model_before": result.model_before,
        "model_after": result.model_after,
        "data_hash": result.data_hash,
        "trained_ids": list(result.trained_ids),
        "groups": result.groups.model_dump(),
        "refused": result.refused,
        "stops": result.stops,
        "updates": len(result.updates),
        "steps": sum(update.steps for update in result.updates),
        "trajectories": result.updates[0].trajectories,
        "return_mean": result.updates[0].return_mean,
        "loss": last.loss,
        "entropy": last.entropy,
        "approx_kl": last.approx_kl,
    }
