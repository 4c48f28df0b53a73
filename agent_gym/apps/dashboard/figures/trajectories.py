"""Trajectories: found by filter, page by page, and one of them step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_gym.apps.api.service import Service
from agent_gym.rollouts.database import (
    FEATURE_NAMES,
    RewardJudgment,
    StepColumns,
    Trajectory,
    TrajectoryFilter,
)
from agent_gym.rollouts.database.curves import RewardCurve

SIZE = 50
COUNTED = 10_000
AROUND = 5


@dataclass(frozen=True, slots=True)
class TrajectoryPage:
    """Some trajectories, where the next page begins, and how many there are.

    Beyond COUNTED nobody counts: ``total`` is then one more than that.
    """

    rows: tuple[Trajectory, ...]
    after: str | None
    total: int


@dataclass(frozen=True, slots=True)
class ReplayFigures:
    """One step of a trajectory, and what lies around it.

    Attributes:
        row: The trajectory.
        step: Which step is shown, counted from 0.
        first: The first of the steps that were read.
        steps: The steps from there on.
        names: What the columns of the observation are.
        curve: The reward so far, thinned.
        judgments: What judges said, the newest first.
    """

    row: Trajectory
    step: int
    first: int
    steps: StepColumns
    names: tuple[str, ...]
    curve: RewardCurve
    judgments: tuple[RewardJudgment, ...]

    @property
    def at(self) -> int:
        """The place of the shown step among those that were read."""
        return self.step - self.first


def trajectory_page(
    service: Service, chosen: Mapping[str, object], sort: str, after: str | None
) -> TrajectoryPage:
    """Return some trajectories, the newest or largest first."""
    asked, store = TrajectoryFilter.model_validate(dict(chosen)), service.stages.store
    found = store.page(asked, sort=sort, limit=SIZE, after=after)
    return TrajectoryPage(found.rows, found.next, store.count(asked, at_most=COUNTED + 1))


def replay_figures(service: Service, trajectory_id: str, step: int) -> ReplayFigures:
    """Return a step of a trajectory with its neighbours; one behind the last is the last."""
    store = service.stages.store
    row = store.get(trajectory_id)
    step = min(step, max(row.n_steps - 1, 0))
    first = max(0, step - AROUND)
    steps = store.steps_part(trajectory_id, first, 2 * AROUND + 1)
    width = 0 if steps.observation is None else steps.observation.shape[1]
    said = row.details.get(FEATURE_NAMES) or []
    names = tuple(str(each) for each in said) if len(said) == width else ()
    return ReplayFigures(
        row=row,
        step=step,
        first=first,
        steps=steps,
        names=names or tuple(f"feature {number}" for number in range(width)),
        curve=store.reward_curve(trajectory_id),
        judgments=store.judgments.of(trajectory_id)[::-1],
    )
