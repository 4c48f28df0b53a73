"""The policy of a team: what it may not do has no chance, and its files are all there is to it."""

import json

import numpy as np
import pytest

from agent_gym.agents.marl import NetworkConfig, TeamContract, TeamPolicy
from agent_gym.agents.marl.network import first_weights, masked_log_probs
from agent_gym.agents.marl.policy import CARD, WEIGHTS
from agent_gym.core import AgentError, DataError, Seeds

CONTRACT = TeamContract(
    map="3m", agents=3, observation=("a", "b", "c", "d"), actions=("no_op", "stop", "go", "hit")
)
SHAPES = [NetworkConfig(), NetworkConfig(hidden=8, layers=3), NetworkConfig(recurrent=True)]


def policy(shape=SHAPES[0], seed=0):
    made = TeamPolicy.create(shape, CONTRACT, Seeds(seed))
    rng = Seeds(seed).child("shake").rng()
    weights = {name: array.copy() for name, array in made.weights.items()}
    weights["heads.action.weight"] += rng.standard_normal((4, shape.hidden)).astype(np.float32)
    return made.with_weights(weights)


def questions(rows=500, seed=0):
    rng = Seeds(seed).rng()
    seen = rng.standard_normal((rows, 3, 4)).astype(np.float32)
    legal = rng.random((rows, 3, 4)) < 0.5
    legal[..., 1] |= ~legal.any(axis=-1)
    return seen, legal, rng.random((rows, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_not_legal_has_no_chance_and_is_never_drawn(shape):
    made, (seen, legal, draws) = policy(shape), questions()
    memory = made.memory(len(seen))
    log_probs, _ = made.log_probs(seen, legal, memory)
    chances = np.exp(log_probs)
    assert (chances[~legal] == 0.0).all()
    assert (chances[legal] > 0.0).all()
    np.testing.assert_allclose(chances.sum(axis=-1), 1.0, atol=1e-6)
    ends = np.zeros_like(draws), np.full_like(draws, np.nextafter(1.0, 0.0))
    for how in (draws, *ends, None):
        actions = made.act(seen, legal, memory, how).actions
        assert np.take_along_axis(legal, actions[..., None], -1).all()


def test_without_the_mask_something_illegal_would_be_drawn():
    made, (seen, legal, draws) = policy(), questions()
    actions = made.act(seen, np.ones_like(legal), made.memory(len(seen)), draws).actions
    assert not np.take_along_axis(legal, actions[..., None], -1).all()


def test_draws_follow_the_chances_whose_logs_are_told():
    made = policy()
    one, mask, _ = questions(1)
    rows = 60_000
    seen, legal = np.repeat(one, rows, axis=0), np.repeat(mask, rows, axis=0)
    draws = Seeds(5).rng().random((rows, 3))
    choice = made.act(seen, legal, made.memory(rows), draws)
    log_probs, _ = made.log_probs(one, mask, made.memory(1))
    for agent in range(3):
        found = np.bincount(choice.actions[:, agent], minlength=4) / rows
        np.testing.assert_allclose(found, np.exp(log_probs[0, agent]), atol=0.01)
    told = np.take_along_axis(log_probs.repeat(rows, axis=0), choice.actions[..., None], -1)[..., 0]
    np.testing.assert_allclose(choice.log_probs, told, atol=1e-5)


def test_greedy_is_the_likeliest_legal_action():
    made, (seen, legal, _) = policy(), questions()
    log_probs, _ = made.log_probs(seen, legal, made.memory(len(seen)))
    best = np.where(legal, log_probs, -np.inf).argmax(axis=-1)
    np.testing.assert_array_equal(made.act(seen, legal, made.memory(len(seen))).actions, best)


def test_agents_differ_by_who_they_are_and_not_by_what_others_see():
    made, (seen, legal, _) = policy(), questions(20)
    seen[:], legal[:] = seen[:, :1], True
    log_probs, _ = made.log_probs(seen, legal, made.memory(20))
    assert (np.abs(log_probs[:, 0] - log_probs[:, 1]) > 1e-4).any()
    seen[:, 2] = 9.0
    again, _ = made.log_probs(seen, legal, made.memory(20))
    np.testing.assert_array_equal(again[:, :2], log_probs[:, :2])


def test_a_memory_changes_what_is_done_and_a_plain_network_has_none():
    seen, legal, _ = questions(10)
    keeps, plain = policy(NetworkConfig(recurrent=True)), policy()
    first, kept = keeps.log_probs(seen, legal, keeps.memory(10))
    later, _ = keeps.log_probs(seen, legal, kept)
    assert np.abs(np.exp(first) - np.exp(later)).max() > 1e-3
    assert plain.memory(10).shape == (10, 3, 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_first_weights_are_orthogonal_and_chances_nearly_equal(shape):
    made = TeamPolicy.create(shape, CONTRACT, Seeds(3))
    first = made.weights["layers.0.weight"].astype(np.float64)
    np.testing.assert_allclose(first.T @ first, 2.0 * np.eye(7), atol=1e-5)
    assert np.linalg.norm(made.weights["heads.action.weight"]) < 0.03
    seen, legal, _ = questions()
    log_probs, _ = made.log_probs(seen, legal, made.memory(len(seen)))
    even = masked_log_probs(np.zeros_like(log_probs), legal)
    assert np.abs(np.exp(log_probs) - np.exp(even)).max() < 0.05


def test_another_head_changes_no_weight_of_the_first():
    heads = CONTRACT.heads
    one = first_weights(7, NetworkConfig(), heads, Seeds(1))
    two = first_weights(7, NetworkConfig(), heads | {"more": heads["action"]}, Seeds(1))
    assert all(np.array_equal(array, two[name]) for name, array in one.items())
    assert not np.array_equal(two["heads.more.weight"], two["heads.action.weight"])


@pytest.mark.parametrize("shape", SHAPES)
def test_saved_and_read_back_it_does_the_same(shape, tmp_path):
    made, (seen, legal, draws) = policy(shape), questions()
    made.save(tmp_path / "p")
    read = TeamPolicy.load(tmp_path / "p")
    assert read.version == made.version
    assert read.contract == made.contract
    for how in (draws, None):
        one, other = (p.act(seen, legal, p.memory(len(seen)), how) for p in (made, read))
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_version_is_the_content():
    assert policy(seed=1).version == policy(seed=1).version
    assert policy(seed=1).version != policy(seed=2).version
    other = CONTRACT.model_copy(update={"map": "8m"})
    made = policy(seed=1)
    assert TeamPolicy(made.config, other, made.weights).version != made.version


def test_damaged_files_are_refused(tmp_path):
    folder = tmp_path / "p"
    policy().save(folder)
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    with pytest.raises(DataError, match="damaged"):
        TeamPolicy.load(folder)
    card = json.loads((folder / CARD).read_text())
    assert card["contract"]["map"] == "3m"


def test_weights_that_do_not_fit_are_refused():
    made = policy()
    with pytest.raises(AgentError, match="do not fit"):
        made.with_weights({**made.weights, "extra": np.zeros(1, np.float32)})
    broken = {name: array * np.nan for name, array in made.weights.items()}
    with pytest.raises(AgentError, match="not a number"):
        made.with_weights(broken)
