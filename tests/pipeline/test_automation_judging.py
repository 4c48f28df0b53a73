"""A batch is judged before it is learned from, once, and as exactly its members."""

import pytest
from automation_samples import opened, record

from agent_gym.core.errors import AgentGymError
from agent_gym.pipeline.automation.judging import judge_batch
from agent_gym.pipeline.automation.learning import recorded
from agent_gym.rollouts.database import BatchRequest, JudgmentRecord


@pytest.fixture
def store(tmp_path):
    with opened(tmp_path) as store:
        record(store, groups=3, size=4)
        yield store


def test_every_member_gets_a_score_once(store):
    store.batches.claim(BatchRequest(batch_id="b1"))
    with pytest.raises(AgentGymError, match="never judged"):
        recorded(store.read_batch("b1"), judged=True)
    assert judge_batch(store, "b1") == 12
    batch = store.read_batch("b1")
    rows = [one.row for group in batch.groups for one in group.trajectories]
    assert all(0.0 <= row.judge_score <= 1.0 for row in rows)
    assert judge_batch(store, "b1") == 0
    scored = recorded(batch, judged=True)
    assert scored.returns.tolist() == [row.judge_score for row in rows]


def test_scores_of_another_judge_are_kept(store):
    store.batches.claim(BatchRequest(batch_id="b1"))
    ids = store.batches.ids("b1")
    store.judgments.add(
        [
            JudgmentRecord(
                trajectory_id=name,
                judge_model="other",
                judge_version="1",
                overall_score=0.25,
                group_id="g",
            )
            for name in ids
        ]
    )
    assert judge_batch(store, "b1") == 0
    rows = [one.row for group in store.read_batch("b1").groups for one in group.trajectories]
    assert {row.judge_score for row in rows} == {0.25}


def test_the_best_of_a_group_has_the_best_score(store):
    store.batches.claim(BatchRequest(batch_id="b1"))
    judge_batch(store, "b1")
    for group in store.read_batch("b1").groups:
        rows = [one.row for one in group.trajectories]
        if len({row.total_reward for row in rows}) > 1:
            best = max(rows, key=lambda row: row.total_reward)
            worst = min(rows, key=lambda row: row.total_reward)
            assert best.judge_score == 1.0
            assert worst.judge_score == 0.0
