"""From a claimed batch and the champion to a challenger in a folder, by prediction: UMC."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.agents.artifact import About
from agent_gym.agents.umc.snapshots.law import KINDS
from agent_gym.agents.umc.snapshots.policy import UMCMarketPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.manifest import fingerprint
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.learning import recorded
from agent_gym.rollouts.database import TrajectoryBatch
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.umc.prediction import distances, lessons_of


class Prediction:
    """Implements Learning: what markets did after what they showed; rewards are not looked at.

    It takes no steps, so there is nothing to go on from: done again, it is the same to the bit.
    """

    def learn(
        self,
        job: TrainingJob,
        files: JobFolder,
        model: Path,
        batch: TrajectoryBatch,
        config: GRPOConfig,
    ) -> dict[str, Any]:
        """Teach the policy of a folder the snapshots of a batch, in place of what it knew of them.

        Of the settings only the seed has a part in it, and only in a control.
        """
        policy = UMCMarketPolicy.load(model)
        rows, snapshots = finished(batch)
        shuffle = Seeds(config.seed).child("shuffled", job.job_id) if job.shuffle_rewards else None
        taught = policy.taught(lessons_of(rows, snapshots, policy.config, shuffle))
        ids = sorted(rows.ids)
        if not files.policy.exists():
            about = About(
                parents=(policy.version,),
                data_hash=fingerprint(ids),
                config={"seed": config.seed, "shuffle_rewards": job.shuffle_rewards},
            )
            taught.save(files.policy, about)
        return _told(policy, taught, rows, snapshots) | {
            "data_hash": fingerprint(ids),
            "trained_ids": ids,
            "refused": {"not finished": len(batch.ids) - len(ids)},
        }

    def distances(
        self, champion: Path, challenger: Path, rows: RolloutBatch
    ) -> tuple[float, float]:
        """Ask both what they would have done."""
        return distances(UMCMarketPolicy.load(champion), UMCMarketPolicy.load(challenger), rows)

    def version(self, model: Path) -> str:
        """Load a policy, and return its hash."""
        return UMCMarketPolicy.load(model).version


def finished(batch: TrajectoryBatch) -> tuple[RolloutBatch, tuple[str, ...]]:
    """Return the trajectories that ran to their end, and the snapshot of each."""
    rows = recorded(batch)
    members = [one.row for group in batch.groups for one in group.trajectories]
    named = {row.trajectory_id: row.snapshot_id for row in members}
    rows = rows.select(np.flatnonzero(rows.finished))
    if not len(rows) or any(named[name] is None for name in rows.ids):
        raise DataError(
            "what is learned from must have ended, and name its snapshot",
            where=f"batch {batch.batch_id}",
            found=f"{len(rows)} of {len(members)} ended",
        )
    return rows, tuple(str(named[name]) for name in rows.ids)


def _told(
    before: UMCMarketPolicy, after: UMCMarketPolicy, rows: RolloutBatch, snapshots: tuple[str, ...]
) -> dict[str, Any]:
    """Return how learning went, as it is kept with the job; the loss is what no law explains."""
    laws = {kind: after.laws[kind] for kind in KINDS}
    return {
        "changed": after.version != before.version,
        "model_before": before.version,
        "model_after": after.version,
        "groups": {"kept": len(set(snapshots)), "dropped": 0, "refused": 0},
        "steps": 0,
        "trajectories": len(rows),
        "return_mean": float(rows.returns.mean()),
        "loss": float(np.mean([law.unexplained() for law in laws.values()])),
        "laws": {kind: law.told(after.config.inputs) for kind, law in laws.items()},
    }
