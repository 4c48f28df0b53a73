"""From the trajectory store to a batch; the store itself is not needed to know its shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.training.grpo.batch import Recorded, RolloutBatch, stack


class StoredRow(Protocol):
    """What is asked of the row of a stored trajectory."""

    trajectory_id: Any
    group_key: Any
    agent_version: Any
    status: Any
    truncated: Any
    judge_score: Any


class StoredSteps(Protocol):
    """What is asked of the steps of a stored trajectory."""

    @property
    def observation(self) -> FloatArray | None: ...
    @property
    def action(self) -> FloatArray: ...
    @property
    def reward(self) -> FloatArray: ...
    @property
    def log_prob(self) -> FloatArray: ...
    @property
    def text(self) -> tuple[str | None, ...]: ...


class StoredTrajectory(Protocol):
    """A stored trajectory: its row and its steps."""

    @property
    def row(self) -> StoredRow: ...
    @property
    def steps(self) -> StoredSteps: ...


def batch_of(
    trajectories: Iterable[StoredTrajectory],
    feature_names: tuple[str, ...],
    *,
    judged: bool = False,
) -> RolloutBatch:
    """Put stored trajectories side by side.

    Args:
        trajectories: As the store reads them.
        feature_names: What the columns of their observations are called.
        judged: Learn from the judge's score in the place of the sum of rewards.
    """
    return stack([_recorded(one, feature_names, judged=judged) for one in trajectories])


def _recorded(one: StoredTrajectory, feature_names: tuple[str, ...], *, judged: bool) -> Recorded:
    row, steps = one.row, one.steps
    where = f"trajectory {row.trajectory_id}"
    if steps.observation is None:
        raise DataError(
            "a trajectory was recorded without its observations",
            where=where,
            remedy="Record with observations",
        )
    if row.group_key is None or row.agent_version is None:
        raise DataError("a trajectory without a group or a policy version", where=where)
    if judged and row.judge_score is None:
        raise DataError("a trajectory was never judged", where=where)
    drawn = bool(np.isfinite(steps.log_prob).all())
    texts = steps.text if all(text is not None for text in steps.text) else None
    return Recorded(
        id=str(row.trajectory_id),
        group_key=str(row.group_key),
        version=str(row.agent_version),
        feature_names=feature_names,
        observations=steps.observation,
        actions=steps.action,
        rewards=steps.reward,
        log_probs=steps.log_prob if drawn else None,
        finished=row.status == "completed" and not row.truncated,
        score=float(row.judge_score) if judged else None,
        texts=None if texts is None else tuple(str(text) for text in texts),
    )
