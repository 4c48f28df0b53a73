"""A batch as the networks see it now: ratios, advantages and targets, before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agent_gym.agents.marl.network import Floats
from agent_gym.agents.marl.policy import ACTION
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.batch import FRESH, TEAM, Batch, Bools, from_chunks, in_chunks
from agent_gym.training.marl.config import LearnConfig
from agent_gym.training.marl.networks import TeamNetwork, masked
from agent_gym.training.marl.returns import traced
from agent_gym.training.marl.rows import Rows, actor_inputs, critic_inputs, for_agents
from agent_gym.training.marl.value_norm import ValueNorm


class Study(NamedTuple):
    """The rows of a batch, and what the critic remembers where it ends, ``[E, N, memory]``."""

    rows: Rows
    critic_memory: Floats


class Heads(NamedTuple):
    """What a critic expects, by the name of the reward; the first is the team's own.

    For ``endless`` ones the end of an episode is no end.
    """

    names: tuple[str, ...]
    endless: frozenset[str] = frozenset()


TEAM_ALONE = Heads((TEAM,))


class Parts(NamedTuple):
    """What a learner is made of: both networks, and the scale of each kind of value."""

    actor: TeamNetwork
    critic: TeamNetwork
    norms: Mapping[str, ValueNorm]
    endless: frozenset[str]


def study(batch: Batch, by: Parts, config: LearnConfig, chunk: int) -> Study:
    """Return the rows of a batch.

    Args:
        batch: What was played.
        by: Networks and scales as they are.
        config: How advantages are made, and which rows are too far off.
        chunk: How many steps a chunk has.
    """
    shape = batch.actions.shape
    begun = for_agents(batch.begun, shape[-1])
    seen = in_chunks(actor_inputs(batch), chunk)
    legal, actions = in_chunks(batch.legal, chunk), in_chunks(batch.actions, chunk)
    actor_memory = in_chunks(batch.actor_memory, 1)
    now = _taken(by.actor, seen, actor_memory, in_chunks(begun[:-1], chunk), legal, actions)
    taken = from_chunks(now, shape)
    drawn = batch.log_probs if _corrected(batch, config) else taken.astype(np.float32)
    ratios = np.exp(taken - drawn.astype(np.float64))
    looked, critic_seen, memory = _expected(by.critic, batch, begun, config)
    values = {name: by.norms[name].denormalize(value) for name, value in looked.items()}
    returns = {
        name: traced(
            batch.rewards[name],
            value,
            batch.ended & (name not in by.endless),
            ratios,
            config.gamma,
            config.trace,
        )
        for name, value in values.items()
    }
    rows = Rows(
        seen=seen,
        legal=legal,
        actions=actions,
        drawn=in_chunks(drawn, chunk),
        ratios=in_chunks(ratios, chunk),
        used=in_chunks(batch.alive & _near(ratios, config), chunk),
        merits=in_chunks(_merits(batch, ratios, values[TEAM], config), chunk),
        weights=np.full(actions.shape, batch.weight, np.float32),
        begun=in_chunks(begun[:-1], chunk),
        actor_memory=actor_memory,
        critic_seen=in_chunks(critic_seen[:-1], chunk),
        critic_memory=in_chunks(memory[: shape[0] : chunk], 1),
        advantages={name: in_chunks(each.advantages, chunk) for name, each in returns.items()},
        targets={name: in_chunks(each.targets, chunk) for name, each in returns.items()},
        before={name: in_chunks(value[:-1], chunk) for name, value in looked.items()},
    )
    return Study(rows, memory[shape[0]])


def chosen(log_probs: Tensor, actions: Tensor) -> Tensor:
    """Return the log-probability of what was done, without the axis of actions."""
    return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def tensor(array: NDArray[Any]) -> Tensor:
    """Return a copy of an array as a tensor; numbers become those of the networks."""
    kind = np.float32 if array.dtype.kind == "f" else array.dtype
    return torch.from_numpy(np.array(array, dtype=kind, order="C"))


def _taken(
    actor: TeamNetwork, seen: Floats, memory: Floats, begun: Bools, legal: Bools, actions: Any
) -> FloatArray:
    with torch.no_grad():
        answers = actor.answers(tensor(seen), tensor(memory[0]), tensor(begun))
        log_probs = masked(answers.heads[ACTION], tensor(legal))
        found: FloatArray = chosen(log_probs, tensor(actions)).numpy().astype(np.float64)
    return found


def _expected(
    critic: TeamNetwork, batch: Batch, begun: Bools, config: LearnConfig
) -> tuple[dict[str, Floats], Floats, Floats]:
    """Return what the critic says at every step, what it saw, and what it remembered before it."""
    steps, envs, agents = begun.shape
    seen = critic_inputs(batch, with_state=config.critic == "state")
    with torch.no_grad():
        heads, memory = critic.answers(
            tensor(in_chunks(seen, steps)),
            tensor(in_chunks(batch.critic_memory[None], 1)[0]),
            tensor(in_chunks(begun, steps)),
        )
    values = {name: head.numpy().reshape(begun.shape) for name, head in heads.items()}
    width = batch.critic_memory.shape[-1]
    return values, seen, memory.numpy().reshape(steps + 1, envs, agents, width)


def _corrected(batch: Batch, config: LearnConfig) -> bool:
    """Return whether it counts who played then; a control asks what happens if it does not."""
    return batch.source == FRESH or config.reuse is None or config.reuse.corrected


def _near(ratios: FloatArray, config: LearnConfig) -> Bools:
    """Return which rows are near enough to what would be done now."""
    reuse = config.reuse
    if reuse is None:
        return np.ones(ratios.shape, np.bool_)
    near: Bools = (ratios >= reuse.smallest_ratio) & (ratios <= reuse.largest_ratio)
    return near


def _merits(
    batch: Batch, ratios: FloatArray, expected: FloatArray, config: LearnConfig
) -> FloatArray:
    """Return by how much rows that are too unlikely now were better than expected.

    What came after them counts as it was played: cut by how likely it is now, nothing would be left
    of a way that the present team does not take.
    """
    reuse = config.reuse
    if reuse is None or reuse.imitation == 0.0:
        return np.zeros(ratios.shape)
    played = traced(
        batch.rewards[TEAM],
        expected,
        batch.ended,
        np.ones_like(ratios),
        config.gamma,
        config.trace,
    )
    forgotten = batch.alive & (ratios < reuse.smallest_ratio)
    return np.where(forgotten, np.maximum(played.advantages, 0.0), 0.0)
