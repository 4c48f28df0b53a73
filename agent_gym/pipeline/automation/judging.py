"""The judge inside a job: it scores what is learned from, and has no say in what is promoted."""

from __future__ import annotations

from agent_gym.core.errors import DataError
from agent_gym.evaluation.judge import RelativeJudge, TruthBackend
from agent_gym.evaluation.judge.scoring import groups_of, judge_groups, truth_of
from agent_gym.rollouts.database import TrajectoryStore


def judge_batch(store: TrajectoryStore, batch_id: str) -> int:
    """Score a batch by what was recorded; what has its score already keeps it.

    Scores of another judge are written beforehand, with ``agent-gym judge score``.

    Returns:
        How many trajectories were scored now.
    """
    groups, _ = groups_of(store, batch_id=batch_id)
    judged = _scored(store, batch_id)
    groups = [group for group in groups if not judged.issuperset(group.ids)]
    judge = RelativeJudge(TruthBackend(truth_of(store, groups)))
    found = judge_groups(store, judge, groups)
    failed = [one for one in found.judgments if not one.judged]
    if failed:
        raise DataError(
            "a group could not be judged",
            where=f"batch {batch_id}, group {failed[0].group_id}",
            found=failed[0].reason,
        )
    return found.trajectories


def _scored(store: TrajectoryStore, batch_id: str) -> set[str]:
    members = [one.row for group in store.read_batch(batch_id).groups for one in group.trajectories]
    return {row.trajectory_id for row in members if row.judge_score is not None}
