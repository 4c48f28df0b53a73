"""Whether the bonus is paid with the right sign: what says more must be done more often."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.marl import NetworkConfig, TeamContract, TeamPolicy
from agent_gym.core.seeds import Seeds
from agent_gym.training.marl.amal.agent import INFORMATION
from agent_gym.training.marl.batch import FRESH, TEAM, Batch
from agent_gym.training.marl.config import LearnConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.study import Heads

ARMS, ROUNDS = 4, 8


def signs(share: float = 0.5) -> list[bool]:
    """Return for every arm of a bandit whether a bonus on it made it likelier in one update.

    Every arm is played equally often and pays 1 and -1 equally often, so that the reward itself
    favours none.
    """
    contract = TeamContract(
        map="bandit",
        agents=1,
        observation=("one",),
        actions=("no_op", *(f"play_{i}" for i in range(ARMS))),
    )
    return [_rises(contract, arm, share) for arm in range(1, ARMS + 1)]


def _rises(contract: TeamContract, arm: int, share: float) -> bool:
    seeds = Seeds(0).child("sign")
    policy = TeamPolicy.create(NetworkConfig(hidden=8, layers=1), contract, seeds)
    config = LearnConfig(epochs=1, entropy=0.0)
    learner = Learner(policy, 1, config, 1, seeds, Heads((TEAM, INFORMATION)))
    batch = _window(policy, arm)
    before = np.exp(batch.log_probs[0, batch.actions[0, :, 0] == arm, 0][0])
    learner.learn([batch], 0.0, {INFORMATION: share})
    seen, legal = batch.observations[0, :1], batch.legal[0, :1]
    after, _ = learner.policy.log_probs(seen, legal, learner.policy.memory(1))
    return bool(np.exp(after[0, 0, arm]) > before)


def _window(policy: TeamPolicy, arm: int) -> Batch:
    """Return one step in many environments, with a bonus on one arm."""
    actions = np.tile(np.arange(1, ARMS + 1), 2 * ROUNDS)[None, :, None]
    paid = np.repeat([1.0, -1.0], ARMS * ROUNDS)[None].astype(np.float32)
    envs = actions.shape[1]
    seen = np.ones((2, envs, 1, 1), np.float32)
    legal = np.ones((1, envs, 1, ARMS + 1), np.bool_)
    legal[..., 0] = False
    logs, _ = policy.log_probs(seen[0], legal[0], policy.memory(envs))
    nothing = np.zeros((1, envs, 1, 0), np.float32)
    return Batch(
        source=FRESH,
        weight=1.0,
        observations=seen,
        state=np.ones((2, envs, 1), np.float32),
        legal=legal,
        actions=actions,
        log_probs=np.take_along_axis(logs[None], actions[..., None], -1)[..., 0],
        rewards={TEAM: paid, INFORMATION: (actions[..., 0] == arm).astype(np.float32)},
        ended=np.ones((1, envs), np.bool_),
        begun=np.ones((2, envs), np.bool_),
        actor_memory=nothing,
        critic_memory=nothing[0],
    )
