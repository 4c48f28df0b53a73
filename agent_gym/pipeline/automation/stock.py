"""What the store holds for the next training, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from agent_gym.core.errors import StoreError
from agent_gym.pipeline.automation.readiness import ReadinessPolicy, Stock
from agent_gym.rollouts.database import StoredTrajectory, TrajectoryFilter, TrajectoryStore

UNUSED = TrajectoryFilter(purpose="training", used_in_training=False)
ROUNDING = 1e-9


def _whole(one: StoredTrajectory) -> bool:
    return len(one.steps) == one.row.n_steps and bool((np.diff(one.steps.t) == 1).all())


def _seen(one: StoredTrajectory) -> bool:
    seen = one.steps.observation
    return seen is not None and bool(np.isfinite(seen).all())


def _acted(one: StoredTrajectory) -> bool:
    return bool(np.isfinite(one.steps.action).all())


def _drawn(one: StoredTrajectory) -> bool:
    return bool(np.isfinite(one.steps.log_prob).all())


def _paid(one: StoredTrajectory) -> bool:
    """Say whether the steps were paid what the row says they were paid."""
    said, total = one.row.total_reward, float(one.steps.reward.sum())
    return said is not None and math.isclose(total, said, rel_tol=ROUNDING, abs_tol=ROUNDING)


CHECKS: Mapping[str, Callable[[StoredTrajectory], bool]] = {
    "steps follow each other": _whole,
    "observations are numbers": _seen,
    "actions are numbers": _acted,
    "every decision has its log-probability": _drawn,
    "rewards add up to the total": _paid,
}


def data_quality(
    store: TrajectoryStore, sample: int, chosen: TrajectoryFilter = UNUSED
) -> float | None:
    """Return the share of checks that the newest unused trajectories pass; None if there are none.

    A trajectory without steps, or whose steps cannot be read, passes none.
    """
    rows = store.page(chosen, limit=sample).rows
    if not rows:
        return None
    passed = _passed(store, [row.trajectory_id for row in rows if row.n_steps > 0])
    return passed / (len(rows) * len(CHECKS))


def stock_of(store: TrajectoryStore, policy: ReadinessPolicy, champion: str | None = None) -> Stock:
    """Return what readiness asks of the store.

    Args:
        store: Where trajectories are.
        policy: What is asked.
        champion: Who serves; a job learns from what it recorded alone, so nothing else counts.
    """
    chosen = UNUSED if champion is None else UNUSED.model_copy(update={"agent_version": champion})
    counts = store.counts(chosen, min_group_size=policy.min_group_size)
    last = store.batches.newest(status="completed", limit=1)
    return Stock(
        unused=counts.unused,
        full_groups=counts.full_groups,
        quality=data_quality(store, policy.quality_sample, chosen),
        last_training_ns=last[0].completed_ns if last else None,
    )


def _passed(store: TrajectoryStore, ids: list[str]) -> int:
    """Return how many checks are passed; all are read together, unless one cannot be read."""
    try:
        stored = store.read(ids)
    except StoreError:
        return sum(_passed(store, [one]) for one in ids) if len(ids) > 1 else 0
    return sum(check(one) for one in stored for check in CHECKS.values())
