"""Judging what a store holds: group by group, each written as soon as it is judged.

A judgment belongs to one trajectory in one set of members. If a group has grown since, it is judged
anew under another id; the same set is not judged twice by the same judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.errors import ConfigError
from agent_gym.core.manifest import fingerprint
from agent_gym.evaluation.judge.course import Course, candidate_of
from agent_gym.evaluation.judge.judge import RelativeJudge
from agent_gym.evaluation.judge.records import CandidateGroup, RecordConfig
from agent_gym.evaluation.judge.result import GroupJudgment
from agent_gym.evaluation.judge.truth import RETURN, measured
from agent_gym.rollouts.batch import Progress
from agent_gym.rollouts.database import (
    FEATURE_NAMES,
    JudgmentRecord,
    LlmCall,
    StoredTrajectory,
    TrajectoryFilter,
    TrajectoryStore,
)

PAGE = 1_000
ID_LETTERS = 16


@dataclass(frozen=True, slots=True)
class GroupOfIds:
    """The members of a group in a store; ``group_id`` names exactly this set of them."""

    group_key: str
    ids: tuple[str, ...]

    @property
    def group_id(self) -> str:
        """The key of the group and the hash of its members."""
        return f"{self.group_key}#{fingerprint(sorted(self.ids))[:ID_LETTERS]}"


@dataclass(frozen=True, slots=True)
class StoreScoring:
    """What came of judging a store.

    Attributes:
        judgments: Of groups that were judged now, or could not be.
        known: Groups that this judge had judged before.
        trajectories: Scores that were written now.
    """

    judgments: tuple[GroupJudgment, ...] = ()
    known: tuple[str, ...] = ()
    trajectories: int = 0

    @property
    def failed(self) -> tuple[GroupJudgment, ...]:
        """The groups without scores."""
        return tuple(one for one in self.judgments if not one.judged)


def groups_of(
    store: TrajectoryStore, chosen: TrajectoryFilter | None = None, batch_id: str | None = None
) -> tuple[list[GroupOfIds], int]:
    """Return the groups of a batch, or of all trainable trajectories, and how many are alone."""
    if batch_id is not None:
        if chosen is not None:
            raise ConfigError("a batch has its members already", where="chosen")
        batch = store.read_batch(batch_id)
        found = {
            group.group_key: [one.row.trajectory_id for one in group.trajectories]
            for group in batch.groups
        }
    else:
        found = {}
        for key, name in _listed(store, chosen or TrajectoryFilter(trainable=True)):
            found.setdefault(key, []).append(name)
    full = [GroupOfIds(key, tuple(ids)) for key, ids in found.items() if len(ids) > 1]
    return full, sum(len(ids) == 1 for ids in found.values())


def read_group(
    store: TrajectoryStore, group: GroupOfIds, record: RecordConfig, measure: str = RETURN
) -> CandidateGroup:
    """Return a group as a judge reads it."""
    members = store.read(group.ids)
    courses = [
        course_of(one, store.calls(one.row.trajectory_id), _outcome(one, measure, record))
        for one in members
    ]
    return CandidateGroup(
        group_id=group.group_id,
        candidates=tuple(candidate_of(one, record) for one in courses),
    )


def truth_of(
    store: TrajectoryStore, groups: Iterable[GroupOfIds], measure: str = RETURN
) -> dict[str, dict[str, float]]:
    """Return what every trajectory of some groups came to, by group and id."""
    return {
        group.group_id: {
            name: measured(row.total_reward, row.metrics, measure)
            for name, row in ((name, store.get(name)) for name in group.ids)
        }
        for group in groups
    }


def judge_groups(
    store: TrajectoryStore,
    judge: RelativeJudge,
    groups: Sequence[GroupOfIds],
    *,
    measure: str = RETURN,
    progress: Progress | None = None,
) -> StoreScoring:
    """Judge groups and write every score with the trajectory it belongs to.

    Args:
        store: Where the trajectories are and the judgments go.
        judge: Who judges.
        groups: What is judged.
        measure: The figure that a record with hindsight tells.
        progress: Is told of every group.
    """
    judgments, known, written = [], [], 0
    for place, group in enumerate(groups):
        status = "ok"
        if _is_known(store, judge, group):
            known.append(group.group_id)
        else:
            judgment = judge.judge(read_group(store, group, judge.config.record, measure))
            store.judgments.add(records_of(judge, judgment))
            judgments.append(judgment)
            written += len(judgment.scores)
            status = "ok" if judgment.judged else "failed"
        if progress is not None:
            progress(place + 1, len(groups), {"status": status})
    return StoreScoring(tuple(judgments), tuple(known), trajectories=written)


def records_of(judge: RelativeJudge, judgment: GroupJudgment) -> list[JudgmentRecord]:
    """Return what is written of a judgment: nothing if the group could not be judged."""
    ranks, normalized, good = judgment.ranks(), judgment.normalized(), judgment.good_passes
    criteria = {
        "rubric": judge.config.rubric.name,
        "rubric_version": judge.config.rubric.version,
        "hindsight": judge.knows_outcomes,
        "passes": len(judgment.passes),
        "good_passes": len(good),
        "members": len(judgment.scores),
    }
    return [
        JudgmentRecord(
            trajectory_id=name,
            group_id=judgment.group_id,
            judge_model=judge.model,
            judge_version=judge.version,
            overall_score=score,
            normalized_score=normalized[name],
            rank=ranks[name],
            component_scores={f"pass_{one.number}": one.scores[name] for one in good}
            | {"spread": float(np.std([one.scores[name] for one in good]))},
            reasoning=good[0].explanations[name],
            criteria=criteria,
        )
        for name, score in judgment.scores.items()
    ]


def course_of(
    one: StoredTrajectory, calls: Iterable[LlmCall], outcome: dict[str, Any] | None = None
) -> Course:
    """Return a stored trajectory; what a language model replied counts as said."""
    said = [[words] if words else [] for words in one.steps.rationale]
    for call in calls:
        if call.response and call.t < len(said):
            said[call.t].append(call.response)
    return Course(
        id=one.row.trajectory_id,
        feature_names=tuple(one.row.details.get(FEATURE_NAMES, ())),
        observations=one.steps.observation,
        actions=one.steps.action,
        texts=one.steps.text,
        said=["\n".join(words) for words in said],
        outcome=outcome or {},
    )


def _outcome(one: StoredTrajectory, measure: str, record: RecordConfig) -> dict[str, Any]:
    """Return how a trajectory ended, if records may tell; otherwise it is not even looked at."""
    if not record.hindsight:
        return {}
    row = one.row
    told: dict[str, Any] = {
        RETURN: row.total_reward,
        "final_pnl": row.final_pnl,
        "trades": row.trades_executed,
        measure: measured(row.total_reward, row.metrics, measure),
    }
    return {name: value for name, value in told.items() if value is not None}


def _listed(store: TrajectoryStore, chosen: TrajectoryFilter) -> Iterator[tuple[str, str]]:
    after: str | None = None
    while True:
        page = store.page(chosen, descending=False, limit=PAGE, after=after)
        for row in page.rows:
            if row.group_key is not None and row.n_steps:
                yield row.group_key, row.trajectory_id
        if page.next is None:
            return
        after = page.next


def _is_known(store: TrajectoryStore, judge: RelativeJudge, group: GroupOfIds) -> bool:
    """Say whether this very judge has judged this very set; a group is written whole."""
    return any(
        (one.group_id, one.judge_model, one.judge_version)
        == (group.group_id, judge.model, judge.version)
        for one in store.judgments.of(group.ids[0])
    )
