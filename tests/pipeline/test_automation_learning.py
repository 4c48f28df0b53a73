"""Training from a claimed batch: what is learned, from exactly what, again to the same bits."""

import json

import numpy as np
import pytest
from automation_samples import MARKET, POLICY, opened, record

from agent_gym.agents.artifact import read_artifact
from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.pipeline.automation.job import JobFolder, TrainingJob
from agent_gym.pipeline.automation.learning import learn, recorded, shuffled
from agent_gym.rollouts.database import BatchRequest
from agent_gym.training.grpo.config import GRPOConfig
from agent_gym.training.grpo.neural import NeuralLearner

CONFIG = GRPOConfig(updates=30, epochs=1, credit="reward_to_go", max_staleness=30)
HELD_OUT = MARKET.snapshots(Seeds(9).child("held out"), 200)


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("store")) as store:
        record(store, groups=16, size=8)
        store.batches.claim(BatchRequest(batch_id="b1"))
        yield store.read_batch("b1")


def trained(tmp_path, batch, **changes):
    job = TrainingJob(job_id="j1", **changes)
    folder = JobFolder(tmp_path / "j1")
    told = learn(job, folder, NeuralLearner(POLICY), batch, CONFIG)
    return told, NeuralPolicy.load(folder.policy), folder


def gain(policy):
    """What the policy is expected to earn more than the one that recorded, on other snapshots."""
    return MARKET.expected(policy, HELD_OUT) - MARKET.expected(POLICY, HELD_OUT)


def test_it_learns_from_the_batch_and_says_from_what(tmp_path, batch):
    told, policy, folder = trained(tmp_path, batch)
    assert set(told["trained_ids"]) <= set(batch.ids)
    assert told["changed"]
    assert told["model_after"] == policy.version != POLICY.version
    manifest, _ = read_artifact(folder.policy, "neural/market")
    assert manifest.parents == (POLICY.version,)
    assert manifest.data_hash == told["data_hash"]
    assert gain(policy) > 1.0
    assert json.dumps(told)
    again, same, _ = trained(tmp_path / "again", batch)
    assert again == told
    assert same.version == policy.version


def test_done_twice_it_is_one_model(tmp_path, batch):
    told, policy, folder = trained(tmp_path, batch)
    files = {path: path.read_bytes() for path in folder.policy.iterdir()}
    assert trained(tmp_path, batch)[0] == told
    assert {path: path.read_bytes() for path in folder.policy.iterdir()} == files
    assert NeuralPolicy.load(folder.policy).version == policy.version


def test_the_control_has_the_rewards_of_others(batch):
    rollouts = recorded(batch)
    mixed = shuffled(rollouts, Seeds(1))
    assert mixed.ids == rollouts.ids
    assert not np.array_equal(mixed.returns, rollouts.returns)
    assert sorted(mixed.returns) == sorted(rollouts.returns)
    assert np.array_equal(mixed.actions, rollouts.actions)
    assert shuffled(rollouts, Seeds(1)).returns.tolist() == mixed.returns.tolist()


def test_the_control_learns_nothing_of_use(tmp_path, batch):
    gains = []
    for k in range(4):
        job = TrainingJob(job_id=f"control-{k}", shuffle_rewards=True)
        folder = JobFolder(tmp_path / job.job_id)
        learn(job, folder, NeuralLearner(POLICY), batch, CONFIG)
        gains.append(gain(NeuralPolicy.load(folder.policy)))
    told, policy, _ = trained(tmp_path, batch)
    assert told["changed"]
    assert np.mean(gains) < 0.5 * gain(policy)


def test_trajectories_must_say_what_they_show(batch):
    one = batch.groups[0].trajectories[0]
    kept, one.row.details = one.row.details, {}
    try:
        with pytest.raises(DataError, match="feature_names"):
            recorded(batch)
    finally:
        one.row.details = kept


def test_what_a_stage_left_is_read_and_not_made_again(tmp_path):
    folder = JobFolder(tmp_path / "j2")
    calls = []

    def make():
        calls.append(1)
        return {"n": len(calls)}

    assert folder.once("claim", make) == {"n": 1}
    assert folder.once("claim", make) == {"n": 1}
    (folder.path / "claim.json").write_text("{")
    with pytest.raises(DataError, match=r"claim\.json"):
        folder.once("claim", make)


@pytest.mark.parametrize("name", ["", "../x", "A", "a b", "a" * 65])
def test_a_job_cannot_name_another_folder(name):
    with pytest.raises(ValueError, match="job_id"):
        TrainingJob(job_id=name)
