"""Games of a single step for teams, and small trainings."""

from dataclasses import replace

import numpy as np

from agent_gym.agents.marl import NetworkConfig, TeamPolicy
from agent_gym.core import Seeds
from agent_gym.envs.battle import Contract, Results, Senses
from agent_gym.envs.exact import EnvState, generator_state, set_generator_state
from agent_gym.training.marl import EvaluationConfig, LearnConfig, TeamTrainConfig, TeamTrainer
from agent_gym.training.marl.collection import Collector
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.study import Heads
from agent_gym.training.marl.worlds import battle_worlds, contract_for

BANDIT = np.array([0.0, 0.2, 1.0, 0.4])
CLIMBING = np.array([[11.0, -30.0, 0.0], [-30.0, 7.0, 6.0], [0.0, 0.0, 5.0]])


def penalty(k):
    """Return the penalty game: two good plans that are dear to mix up, and a poor safe one."""
    return np.array([[10.0, 0.0, k], [0.0, 2.0, 0.0], [k, 0.0, 10.0]])


class MatrixWorlds:
    """Implements TeamWorlds: all act once, are paid by the matrix, and begin anew.

    Action 0 is that of the dead, so the first column of the matrix is action 1. A step is won if it
    paid the most there is. ``shuffled`` pays any entry of the matrix, whatever was done.
    """

    def __init__(self, payoff, n_envs, *, shuffled=False):
        self.payoff, self.n_envs, self.n_agents = payoff, n_envs, payoff.ndim
        choices = ("no_op", *(f"play_{i}" for i in range(len(payoff))))
        self.contract = Contract(choices, ("one",), ("one",), (), False, False)
        legal = np.ones((n_envs, self.n_agents, len(choices)), np.bool_)
        legal[..., 0] = False
        seen = np.ones((n_envs, self.n_agents, 1), np.float32)
        self.senses = Senses(seen, np.ones((n_envs, 1), np.float32), legal)
        self._shuffled, self._rng = shuffled, Seeds(0).rng()

    def reset(self, seeds):
        self._rng = seeds.rng()
        return self.senses

    def step(self, actions):
        assert (actions > 0).all(), "an action that was not legal"
        pay = self.payoff[tuple((actions - 1).T)]
        won = pay == self.payoff.max()
        rewards = self._rng.choice(self.payoff.ravel(), len(pay)) if self._shuffled else pay
        return Results(rewards, np.ones(self.n_envs, np.bool_), won)

    def get_state(self):
        values = {"payoff": self.payoff.tolist(), "n_envs": self.n_envs}
        return EnvState({}, values | {"rng": generator_state(self._rng)})

    def set_state(self, state):
        set_generator_state(self._rng, state.values["rng"])


def game(folder, payoff, *, seed=0, shuffled=False, steps=4_800, amal=None, **learn):
    """Train on a matrix and return the record."""
    config = TeamTrainConfig(
        seed=seed,
        env_steps=steps,
        n_envs=32,
        n_steps=10,
        network=NetworkConfig(hidden=16, layers=1),
        learn=LearnConfig(learning_rate=3e-3, last_rate=1.0, epochs=5, **learn),
        amal=amal,
        evaluation=EvaluationConfig(every=steps, episodes=4, final_episodes=4),
    )

    def make_worlds(config, n_envs):
        judge = n_envs != config.n_envs
        return MatrixWorlds(payoff, n_envs, shuffled=shuffled and not judge)

    return TeamTrainer(config, folder, make_worlds=make_worlds).train()


def small(**changes):
    """Return a training of seconds on 3m."""
    given = {
        "env_steps": 800,
        "n_envs": 4,
        "n_steps": 20,
        "network": NetworkConfig(hidden=16),
        "learn": LearnConfig(epochs=2),
        "evaluation": EvaluationConfig(every=240, episodes=8, final_episodes=16),
        "checkpoint_every": 160,
    }
    return TeamTrainConfig(**(given | changes))


def parts(config=None, heads=("team",)):
    """Return a learner and a collector as a session has them."""
    config = config or small()
    seeds = Seeds(config.seed).child("marl")
    worlds = battle_worlds(config, config.n_envs)
    contract = contract_for(worlds, config.world.map)
    policy = TeamPolicy.create(config.network, contract, seeds.child("actor"))
    chunk, memory = config.chunk_length, config.network.memory
    learner = Learner(policy, worlds.contract.widths[1], config.learn, chunk, seeds, Heads(heads))
    return learner, Collector(worlds, config.n_steps, chunk, memory, seeds.child("play"))


def shaken(policy, seed=0, scale=0.3):
    """Return a policy far from where it began, so that nothing in it is nearly 0 or 1."""
    rng = Seeds(seed).rng()
    weights = {
        name: (array + scale * rng.standard_normal(array.shape)).astype(array.dtype)
        for name, array in policy.weights.items()
    }
    return policy.with_weights(weights)


def with_deaths(config=None):
    """Return a learner and a window in which some agents have died and some live."""
    learner, collector = parts(config or small(n_steps=60, n_envs=8))
    batch, _ = collector.collect(learner.policy)
    assert 0.05 < batch.alive.mean() < 0.95
    return learner, batch


def bonus(batch, **rewards):
    """Return a batch that pays more than one kind of reward."""
    return replace(batch, rewards={**batch.rewards, **rewards})
