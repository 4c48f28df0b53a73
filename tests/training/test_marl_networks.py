"""The networks: numpy and torch agree, and every parameter can be learned."""

import numpy as np
import pytest
import torch

from agent_gym.agents.marl import NetworkConfig
from agent_gym.agents.torch_parts import put_arrays
from agent_gym.core import Seeds
from agent_gym.training.marl import networks
from agent_gym.training.marl.learner import _Lesson
from agent_gym.training.marl.networks import TeamNetwork, masked
from agent_gym.training.marl.study import study
from tests.training.marl_samples import bonus, parts, shaken, small, with_deaths

SHAPES = [NetworkConfig(), NetworkConfig(hidden=16, layers=1), NetworkConfig(recurrent=True)]


def twins(shape, kind):
    """Return a shaken policy and its twin in torch, both in one precision."""
    learner, _ = parts(small(network=shape))
    base = shaken(learner.policy, scale=0.15)
    policy = base.with_weights({name: array.astype(kind) for name, array in base.weights.items()})
    twin = TeamNetwork(policy.contract.inputs, shape, policy.contract.heads)
    twin = twin.double() if kind == np.float64 else twin
    put_arrays(twin, policy.weights, "twin")
    return policy, twin


def both(policy, twin, kind, steps=12, rows=40):
    """Return chances by both, over steps in which some episodes begin anew."""
    rng, contract = Seeds(4).rng(), policy.contract
    n, width = contract.agents, len(contract.observation)
    seen = rng.uniform(-1.0, 1.0, (steps, rows, n, width)).astype(kind)
    legal = rng.random((steps, rows, n, len(contract.actions))) < 0.6
    legal[..., 1] = True
    begun = rng.random((steps, rows)) < 0.2
    memory, found = policy.memory(rows).astype(kind), []
    for t in range(steps):
        memory[begun[t]] = 0.0
        log_probs, memory = policy.log_probs(seen[t], legal[t], memory)
        found.append(log_probs)
    ids = np.broadcast_to(np.eye(n, dtype=kind), (steps, rows, n, n))
    inputs = torch.from_numpy(np.concatenate([seen, ids], axis=-1)).flatten(1, 2)
    start = torch.zeros(rows * n, policy.config.memory, dtype=inputs.dtype)
    fresh = torch.from_numpy(np.repeat(begun, n, axis=1))
    with torch.no_grad():
        answers = twin.answers(inputs, start, fresh)
        other = masked(answers.heads["action"], torch.from_numpy(legal).flatten(1, 2))
    return np.exp(np.stack(found)), np.exp(other.numpy().reshape(legal.shape)), legal


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "tolerance"), [(np.float32, 1e-6), (np.float64, 1e-14)])
def test_numpy_and_torch_give_the_same_chances(shape, kind, tolerance):
    policy, twin = twins(shape, kind)
    one, other, legal = both(policy, twin, kind)
    assert np.ptp(one[legal]) > 0.5, "chances that are all alike would prove nothing"
    np.testing.assert_allclose(one, other, rtol=0.0, atol=tolerance)
    assert (other[~legal] == 0.0).all()


@pytest.mark.parametrize("name", ["norm.bias", "norms.1.weight", "memory.bias_hh", "layers.0.bias"])
def test_one_changed_weight_breaks_the_agreement(name):
    policy, twin = twins(NetworkConfig(recurrent=True), np.float32)
    weights = {each: array.copy() for each, array in policy.weights.items()}
    weights[name] += 1e-3
    one, other, _ = both(policy.with_weights(weights), twin, np.float32)
    assert np.abs(one - other).max() > 1e-5


@pytest.mark.parametrize(
    "shape", [NetworkConfig(hidden=16), NetworkConfig(hidden=16, recurrent=True)]
)
@pytest.mark.parametrize("heads", [("team",), ("team", "news")])
def test_the_gradient_reaches_every_parameter(shape, heads):
    learner, collector = parts(small(network=shape), heads)
    batch, _ = collector.collect(learner.policy)
    batch = bonus(batch, **{name: batch.rewards["team"] + 1 for name in heads})
    rows = study(batch, learner.parts, learner.config, 10 if shape.recurrent else 1).rows
    lesson = _Lesson.of(rows, {}, learner.parts.norms)
    learner._policy_loss(lesson).loss.backward()
    learner._value_loss(lesson).backward()
    for network in (learner.parts.actor, learner.parts.critic):
        still = [n for n, p in network.named_parameters() if not float(p.grad.abs().max()) > 0.0]
        assert still == []


@pytest.mark.parametrize("recurrent", [False, True])
def test_what_acted_is_what_learns(recurrent):
    """The chances that were drawn from are those of the learner, in every row that was played."""
    shape = NetworkConfig(hidden=16, recurrent=recurrent)
    learner, batch = with_deaths(small(n_steps=60, n_envs=8, network=shape))
    rows = study(batch, learner.parts, learner.config, 10 if recurrent else 1).rows
    np.testing.assert_allclose(rows.ratios, 1.0, atol=2e-6)


def test_chunks_see_what_the_whole_window_sees():
    """A recurrent critic that is trained in chunks says what it says going through the window."""
    learner, collector = parts(small(network=NetworkConfig(hidden=16, recurrent=True)))
    batch, _ = collector.collect(learner.policy)
    rows = study(batch, learner.parts, learner.config, 10).rows
    lesson = _Lesson.of(rows, {}, learner.parts.norms)
    with torch.no_grad():
        told = learner.parts.critic.answers(lesson.critic_seen, lesson.critic_memory, lesson.begun)
    np.testing.assert_allclose(told.heads["team"].squeeze(-1), rows.before["team"], atol=1e-5)
    assert np.abs(rows.critic_memory).max() > 0.01


def first_values(monkeypatch, gain=None):
    """Return how large the values of an untrained critic are."""
    if gain is not None:
        monkeypatch.setattr(networks, "FIRST_VALUE_GAIN", gain)
    learner, collector = parts()
    batch, _ = collector.collect(learner.policy)
    return np.abs(study(batch, learner.parts, learner.config, 1).rows.before["team"]).max()


def test_an_untrained_critic_expects_nearly_nothing(monkeypatch):
    """Its noise would be the first advantages; larger than rewards, it drives teams from battle."""
    assert first_values(monkeypatch) < 0.1
    assert first_values(monkeypatch, 1.0) > 0.5
