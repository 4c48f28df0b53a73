from dataclasses import dataclass, replace

import numpy as np
import pytest

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo import (
    AdamConfig,
    DPOConfig,
    GRPOTrainingService,
    Recorded,
    SFTConfig,
    batch_of,
    imitate_best,
    prefer_best,
    stack,
)
from agent_gym.training.grpo.best_and_worst import best_and_worst
from tests.training.grpo_samples import MARKET, QUICK, learner, played, without_log_probs


def one(name="t", ticks=3, **more):
    rng = Seeds(len(name)).rng()
    fields = {
        "id": name,
        "group_key": "g",
        "version": "v",
        "feature_names": ("a/x", "account/y"),
        "observations": rng.normal(size=(ticks, 2)),
        "actions": np.ones((ticks, 1)),
        "rewards": np.arange(ticks, dtype=float),
        "log_probs": np.full(ticks, -1.0),
    }
    return Recorded(**fields | more)


def test_trajectories_of_different_length_are_padded():
    batch = stack([one("a", 2), one("b", 4, log_probs=None), one("c", 3, score=9.0)])
    assert batch.mask.sum(axis=1).tolist() == [2, 4, 3]
    assert batch.observations.shape == (3, 4, 2)
    assert (batch.observations[0, 2:] == 0).all()
    assert batch.returns.tolist() == [1.0, 6.0, 9.0]
    assert batch.scored
    assert batch.drawn.tolist() == [True, False, True]
    assert np.isnan(batch.log_probs[1]).all()


def test_the_data_hash_is_that_of_the_ids_alone():
    a, b = stack([one("a"), one("b")]), stack([one("b"), one("a", 5)])
    assert a.data_hash == b.data_hash
    assert a.data_hash != stack([one("a"), one("c")]).data_hash


def test_selecting_keeps_rows_together():
    batch = stack([one("a", 2), one("b", 4), one("c", 3)])
    some = batch.select(np.array([2, 0]))
    assert some.ids == ("c", "a")
    assert some.mask.sum(axis=1).tolist() == [3, 2]
    assert some.returns.tolist() == batch.returns[[2, 0]].tolist()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rewards": np.array([0.0, np.nan, 1.0])}, "rewards hold"),
        ({"observations": np.full((3, 2), np.inf)}, "observations hold"),
        ({"observations": np.zeros((2, 2))}, "odd shape"),
        ({"actions": np.ones((3, 2))}, "odd shape"),
        ({"log_probs": np.array([-1.0, 0.1, -1.0])}, "above 0"),
        ({"feature_names": ("a/x", "account/z")}, "same features"),
        ({"id": "good"}, "twice"),
    ],
)
def test_records_that_cannot_be_true_are_refused(wrong, words):
    with pytest.raises(DataError, match=words):
        stack([one("good"), one("bad", **wrong)])
    with pytest.raises(DataError, match="no trajectory"):
        stack([])
    with pytest.raises(DataError, match="without a step"):
        stack([one("empty", 0)])


def test_an_action_of_another_policy_is_refused():
    own = learner()
    batch = played(own)
    odd = batch.actions.copy()
    odd[3, 2, 0] = 0.5
    with pytest.raises(DataError, match=r"tick 2, market 0; found 0\.5"):
        GRPOTrainingService(QUICK).train_on(own, replace(batch, actions=odd))


@dataclass
class Row:
    trajectory_id: str
    group_key: str | None = "g"
    agent_version: str | None = "v"
    status: str = "completed"
    truncated: bool = False
    judge_score: float | None = None


@dataclass
class Steps:
    observation: np.ndarray | None
    action: np.ndarray
    reward: np.ndarray
    log_prob: np.ndarray
    text: tuple[str | None, ...]


@dataclass
class Stored:
    row: Row
    steps: Steps


def stored(name, *, log_prob=-1.0, text=None, observed=True, **row):
    steps = Steps(
        observation=np.ones((2, 1)) if observed else None,
        action=np.zeros((2, 1)),
        reward=np.array([1.0, 2.0]),
        log_prob=np.array([-1.0, log_prob]),
        text=(text, text),
    )
    return Stored(Row(name, **row), steps)


def test_stored_trajectories_become_a_batch():
    batch = batch_of(
        [
            stored("a"),
            stored("b", log_prob=np.nan),
            stored("c", status="timeout"),
            stored("d", truncated=True),
        ],
        ("m/x",),
    )
    assert batch.ids == ("a", "b", "c", "d")
    assert batch.drawn.tolist() == [True, False, True, True]
    assert batch.finished.tolist() == [True, True, False, False]
    assert batch.returns.tolist() == [3.0] * 4
    assert not batch.scored
    words = batch_of([stored("a", text="up"), stored("b", text="down")], ("m/x",))
    assert words.texts == (("up", "up"), ("down", "down"))
    judged = batch_of([stored("a", judge_score=0.5)], ("m/x",), judged=True)
    assert judged.returns.tolist() == [0.5]
    assert judged.scored


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"observed": False}, "without its observations"),
        ({"group_key": None}, "without a group"),
        ({"agent_version": None}, "without a group or a policy"),
        ({}, "never judged"),
    ],
)
def test_stored_trajectories_that_lack_something_are_named(wrong, words):
    with pytest.raises(DataError, match=words):
        batch_of([stored("a", **wrong)], ("m/x",), judged=not wrong)


def test_the_best_and_the_worst_of_each_group():
    returns = np.array([1.0, 3.0, 2.0, 3.0, 5.0, 5.0, 9.0, 1.0])
    keys = ["a"] * 4 + ["b"] * 2 + ["c"] * 2
    made = [one(f"t{i}", group_key=key) for i, key in enumerate(keys)]
    batch = replace(stack(made), returns=returns)
    batch = replace(batch, finished=np.array([True] * 7 + [False]))
    pairs = best_and_worst(batch)
    assert pairs.best.tolist() == [1]  # of equals the first by id
    assert pairs.worst.tolist() == [0]
    assert pairs.groups.model_dump() == {"kept": 1, "dropped": 1, "refused": 1}
    with pytest.raises(DataError, match="no group has a best"):
        best_and_worst(replace(batch, returns=np.zeros(8)))


@pytest.mark.parametrize(("method", "least"), [("sft", 0.5), ("dpo", 2.0)])
def test_best_against_worst_learns_without_log_probs(method, least):
    """The same with flipped returns goes the other way; SFT gets no further than its teachers."""
    held_out = MARKET.snapshots(Seeds(77), 200)

    def after(sign):
        own = learner()
        batch = without_log_probs(played(own, groups=64, members=8))
        batch = replace(batch, returns=sign * batch.returns)
        adam = AdamConfig(learning_rate=0.01)
        if method == "sft":
            result = imitate_best(own, batch, SFTConfig(epochs=60, adam=adam))
        else:
            result = prefer_best(own, batch, DPOConfig(epochs=60, beta=0.5, adam=adam))
        assert result.method == method
        assert result.changed
        assert result.updates[-1].loss < result.updates[0].loss
        assert len(result.trained_ids) == result.groups.kept * (2 if method == "dpo" else 1)
        return MARKET.expected(own.policy, held_out)

    start = MARKET.expected(learner().policy, held_out)
    assert after(1) > start + least
    assert after(-1) < start - least


def test_dpo_holds_on_to_the_start_by_beta():
    def distance(beta):
        own = learner()
        batch = played(own, groups=16)
        adam = AdamConfig(learning_rate=0.01)
        prefer_best(own, batch, DPOConfig(epochs=80, beta=beta, adam=adam))
        now = own.policy.log_probs(batch.observations)
        before = learner().policy.log_probs(batch.observations)
        return (np.exp(now) * (now - before)).sum(-1).mean()

    assert distance(5.0) < distance(0.2)
