"""Windows of a single step whose every figure is known, and what a learner should make of them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from agent_gym.agents.marl import NetworkConfig, TeamContract, TeamPolicy
from agent_gym.agents.marl.policy import ACTION
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import Contract, Results, Senses
from agent_gym.envs.battle.contract import NO_OP
from agent_gym.envs.exact import EnvState
from agent_gym.training.marl.audit.subject import TeamSubject
from agent_gym.training.marl.batch import FRESH, TEAM, Batch, Bools
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.networks import masked
from agent_gym.training.marl.rows import actor_inputs
from agent_gym.training.marl.study import TEAM_ALONE, Heads, tensor
from agent_gym.training.marl.worlds import TeamWorlds

ARMS = 4
LEARNING_RATE = 1e-3
"""So that how far chances move in one update does not hang on how patient a config is."""
PAYS = np.array([0.0, 0.2, 1.0, 0.4])
CHOICES = ("no_op", *(f"play_{i}" for i in range(ARMS)))


class BanditWorlds:
    """Implements TeamWorlds: one agent plays one arm, is paid for it, and begins anew."""

    n_agents = 1

    def __init__(self, n_envs: int) -> None:
        self.n_envs = n_envs
        self.contract = Contract(CHOICES, ("one",), ("one",), (), False, False)
        legal = np.ones((n_envs, 1, len(CHOICES)), np.bool_)
        legal[..., NO_OP] = False
        seen = np.ones((n_envs, 1, 1), np.float32)
        self.senses = Senses(seen, np.ones((n_envs, 1), np.float32), legal)

    def reset(self, seeds: Seeds) -> Senses:
        """Begin; there is no chance in it."""
        return self.senses

    def step(self, actions: NDArray[np.integer]) -> Results:
        """Pay for the arm."""
        pay = PAYS[actions[:, 0] - 1]
        return Results(pay, np.ones(self.n_envs, np.bool_), pay == PAYS.max())

    def get_state(self) -> EnvState:
        """Return nothing but what it is: it never changes."""
        return EnvState({}, {"bandit": PAYS.tolist(), "n_envs": self.n_envs})

    def set_state(self, state: EnvState) -> None:
        """Go on as before."""


def bandit_worlds(config: TeamTrainConfig, n_envs: int) -> TeamWorlds:
    """Return bandits, whatever the config names."""
    return BanditWorlds(n_envs)


def bandit_learner(
    subject: TeamSubject, agents: int, heads: Heads = TEAM_ALONE, epochs: int = 1
) -> Learner:
    """Return the subject's learner for a bandit, with a critic that expects nothing."""
    contract = TeamContract(map="bandit", agents=agents, observation=("one",), actions=CHOICES)
    seeds = Seeds(subject.small.seed).child("audit", "bandit")
    policy = TeamPolicy.create(NetworkConfig(hidden=8, layers=1), contract, seeds)
    fixed = {"entropy": 0.0, "epochs": epochs, "learning_rate": LEARNING_RATE}
    config = subject.small.learn.model_copy(update=fixed)
    learner = subject.seams.learner(policy, 1, config, 1, seeds, heads)
    with torch.no_grad():
        for head in learner.parts.critic.heads.values():
            for parameter in head.parameters():
                parameter.zero_()
    return learner


def window(
    policy: TeamPolicy,
    actions: NDArray[np.int64],
    rewards: FloatArray,
    *,
    dead: Bools | None = None,
    source: str = FRESH,
) -> Batch:
    """Return one step in many environments.

    Args:
        policy: Whose chances are kept as those of the draws.
        actions: Arms from 1, ``[environments, agents]``.
        rewards: What the team was paid, ``[environments]``.
        dead: Who does nothing because it is dead, ``[environments, agents]``.
        source: Who is said to have played.
    """
    envs, agents = actions.shape
    gone = np.zeros(actions.shape, np.bool_) if dead is None else dead
    legal = np.ones((1, envs, agents, len(CHOICES)), np.bool_)
    legal[0, ..., NO_OP] = gone
    legal[0, ..., 1:] = ~gone[..., None]
    seen = np.ones((2, envs, agents, 1), np.float32)
    done = np.where(gone, NO_OP, actions)[None]
    logs, _ = policy.log_probs(seen[0], legal[0], policy.memory(envs))
    nothing = np.zeros((1, envs, agents, 0), np.float32)
    return Batch(
        source=source,
        weight=1.0,
        observations=seen,
        state=np.ones((2, envs, 1), np.float32),
        legal=legal,
        actions=done,
        log_probs=np.take_along_axis(logs[None], done[..., None], -1)[..., 0],
        rewards={TEAM: rewards[None].astype(np.float32)},
        ended=np.ones((1, envs), np.bool_),
        begun=np.ones((2, envs), np.bool_),
        actor_memory=nothing,
        critic_memory=nothing[0],
    )


def chances(policy: TeamPolicy) -> FloatArray:
    """Return the chance of every action by agent, ``[agents, actions]``."""
    agents = policy.contract.agents
    legal = np.ones((1, agents, len(CHOICES)), np.bool_)
    legal[..., NO_OP] = False
    logs, _ = policy.log_probs(np.ones((1, agents, 1), np.float32), legal, policy.memory(1))
    found: FloatArray = np.exp(logs[0].astype(np.float64))
    return found


def gradient_of(learner: Learner, batch: Batch) -> FloatArray:
    """Return the gradient that the learner's own loss has on a window."""
    return _flat(learner, learner.loss_on([batch], {}))


def gradient_by_row(learner: Learner, batch: Batch) -> FloatArray:
    """Return the gradient that it should have: row by row, of the living, in plain steps."""
    seen, alive = actor_inputs(batch)[0], batch.alive[0]
    paid = np.broadcast_to(batch.rewards[TEAM][0][:, None], alive.shape).astype(np.float64)
    advantages = (paid - paid[alive].mean()) / (paid[alive].std() + 1e-8)
    total = torch.zeros(())
    for e, i in np.argwhere(alive):
        answers = learner.parts.actor.answers(
            tensor(seen[None, e : e + 1, i]), torch.zeros(1, 0), torch.ones(1, 1, dtype=torch.bool)
        )
        logs = masked(answers.heads[ACTION], tensor(batch.legal[:, e : e + 1, i]))
        ratio = (logs[0, 0, int(batch.actions[0, e, i])] - float(batch.log_probs[0, e, i])).exp()
        total = total - ratio * float(advantages[e, i])
    return _flat(learner, total / int(alive.sum()))


def _flat(learner: Learner, loss: torch.Tensor) -> FloatArray:
    found = torch.autograd.grad([loss], list(learner.parts.actor.parameters()), allow_unused=True)
    sizes = [parameter.numel() for parameter in learner.parts.actor.parameters()]
    parts = [
        np.zeros(size) if each is None else each.numpy().ravel()
        for each, size in zip(found, sizes, strict=True)
    ]
    return np.concatenate(parts).astype(np.float64)


def apart(found: FloatArray, expected: FloatArray) -> float:
    """Return how far two gradients are apart, as a share of the one that is expected."""
    return float(np.linalg.norm(found - expected) / max(float(np.linalg.norm(expected)), 1e-12))
