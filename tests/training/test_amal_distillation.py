"""Random network distillation: what was met often is no longer new, what was not stays so."""

import numpy as np

from agent_gym.core import Seeds
from agent_gym.training.marl.amal.buffers import PrimaryBuffer
from agent_gym.training.marl.amal.distillation import Distillation
from agent_gym.training.marl.amal.transitions import Transitions
from agent_gym.training.marl.batch import FRESH
from tests.training.amal_samples import tiny_model

FEATURES = 3


def met(around, rows=200, seed=0):
    """Return steps that lead to states around a place."""
    rng = Seeds(seed).rng()
    before = rng.standard_normal((rows, FEATURES)).astype(np.float32)
    after = (around + 0.3 * rng.standard_normal((rows, FEATURES))).astype(np.float32)
    ended = np.zeros(rows, np.bool_)
    return Transitions(before, after - before, np.zeros(rows, np.float32), ended, FRESH)


def taught(rows, rounds):
    buffer = PrimaryBuffer(10_000, 10, n_envs=1)
    buffer.add(rows)
    learner = Distillation(FEATURES, tiny_model(updates=20), Seeds(1))
    for _ in range(rounds):
        learner.learn(buffer.view())
    return learner


def test_what_was_met_is_no_longer_new_and_the_rest_is():
    known, strange = (
        [taught(met(0.0), rounds).novelty(met(place, seed=2)).mean() for rounds in (1, 30)]
        for place in (0.0, 3.0)
    )
    assert known[1] < 0.2 * known[0]
    assert strange[1] > 10.0 * known[1]


def test_it_looks_at_where_a_step_leads():
    learner, rows = taught(met(0.0), 1), met(0.0)
    elsewhere = rows._replace(seen=rows.seen + 1.0, change=rows.change - 1.0)
    assert np.allclose(learner.novelty(elsewhere), learner.novelty(rows), atol=1e-5)
    further = rows._replace(change=rows.change + 1.0)
    assert not np.allclose(learner.novelty(further), learner.novelty(rows))


def test_what_is_restored_goes_on_to_the_bit():
    buffer = PrimaryBuffer(10_000, 10, n_envs=1)
    buffer.add(met(0.0))
    one = Distillation(FEATURES, tiny_model(), Seeds(1))
    one.learn(buffer.view())
    other = Distillation(FEATURES, tiny_model(), Seeds(1))
    other.restore({name: array.copy() for name, array in one.state().items()})
    for each in (one, other):
        each.learn(buffer.view())
    assert np.array_equal(one.novelty(met(1.0)), other.novelty(met(1.0)))
