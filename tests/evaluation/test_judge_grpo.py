"""GRPO learns from what a judge wrote into the store: up with a good one, down with a bad one."""

import json

import numpy as np
import pytest
from judge_samples import Scripted, answer_of, constant
from pydantic import ValidationError

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.judge import JudgeConfig, RelativeJudge, TruthBackend
from agent_gym.evaluation.judge.scoring import groups_of, judge_groups, truth_of
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.learning import learn, recorded
from agent_gym.rollouts.database import BatchRequest, TrajectoryStore
from agent_gym.training.grpo import AdamConfig, GRPOConfig, GRPOTrainingService, NeuralLearner
from agent_gym.training.grpo.config import AlarmLimits
from tests.pipeline.automation_samples import MARKET, POLICY, record

JUDGED = GRPOConfig(
    reward="judge",
    epochs=20,
    adam=AdamConfig(learning_rate=0.02),
    alarms=AlarmLimits(max_kl=None, max_clip_share=None),
)
UNSEEN = MARKET.snapshots(Seeds(5), 200)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A store with a batch of 12 groups of 8, and its groups."""
    with TrajectoryStore.open(folder=tmp_path_factory.mktemp("store")) as store:
        record(store, groups=12, size=8)
        store.batches.claim(BatchRequest(batch_id="b"))
        yield store, groups_of(store, batch_id="b")[0]


def upside_down(truth):
    def say(request):
        said = json.loads(TruthBackend(truth).answer(request))["scores"]
        return answer_of({one["id"]: 1 - one["score"] for one in said})

    return Scripted(say, model="upside-down")


def learned(filled, backend, config=JUDGED):
    store, groups = filled
    done = judge_groups(store, RelativeJudge(backend, JudgeConfig(passes=1)), groups)
    assert not done.failed
    batch = recorded(store.read_batch("b"), judged=True)
    own = NeuralLearner(POLICY)
    result = GRPOTrainingService(config).train_on(own, batch)
    return own.policy, result, batch


def test_a_policy_follows_the_judge_and_not_the_return(filled):
    store, groups = filled
    truth = truth_of(store, groups)
    start = MARKET.expected(POLICY, UNSEEN)
    good, result, batch = learned(filled, TruthBackend(truth))
    assert batch.scored
    assert (batch.returns.min(), batch.returns.max()) == (0.0, 1.0)
    assert result.changed
    assert MARKET.expected(good, UNSEEN) > start + 0.5
    bad, _, turned = learned(filled, upside_down(truth))
    assert MARKET.expected(bad, UNSEEN) < start - 0.5
    assert np.allclose(turned.returns, 1 - batch.returns)


def test_a_judge_who_finds_all_equal_changes_no_bit(filled):
    policy, result, _ = learned(filled, constant())
    assert not result.changed
    assert policy.version == POLICY.version
    assert result.groups.dropped == 12


def test_the_pipeline_learns_from_scores_when_it_is_told_to(filled, tmp_path):
    store, groups = filled
    judge_groups(store, RelativeJudge(constant(), JudgeConfig(passes=2)), groups)
    batch = store.read_batch("b")
    job = TrainingJob(job_id="by-judge")
    told = learn(job, JobFolder(tmp_path / "judge"), NeuralLearner(POLICY), batch, JUDGED)
    assert not told["changed"]  # a constant judge: the returns were not looked at
    by_return = JUDGED.model_copy(update={"reward": "return"})
    assert learn(job, JobFolder(tmp_path / "return"), NeuralLearner(POLICY), batch, by_return)[
        "changed"
    ]


def test_what_was_never_judged_is_not_learned_from(tmp_path):
    with TrajectoryStore.open(folder=tmp_path) as store:
        record(store, groups=1)
        store.batches.claim(BatchRequest(batch_id="b"))
        batch = store.read_batch("b")
    with pytest.raises(DataError, match="never judged"):
        learn(
            TrainingJob(job_id="j"), JobFolder(tmp_path / "j"), NeuralLearner(POLICY), batch, JUDGED
        )
    with pytest.raises(ConfigError, match="has none"):
        GRPOTrainingService(JUDGED).train_on(NeuralLearner(POLICY), recorded(batch))


def test_one_score_a_trajectory_has_no_reward_to_go():
    with pytest.raises(ValidationError, match="one score a trajectory"):
        GRPOConfig(reward="judge", credit="reward_to_go")
