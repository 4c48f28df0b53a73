"""Worlds that remember what was really done in them, whatever a training says of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.marl.network import Floats
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import Contract, Results, Senses
from agent_gym.envs.exact import EnvState
from agent_gym.training.marl.batch import Bools
from agent_gym.training.marl.worlds import TeamWorlds, living


class Moment(NamedTuple):
    """One step of all environments: what was seen, what was done, and what it brought."""

    observations: Floats
    legal: Bools
    actions: NDArray[np.int64]
    rewards: FloatArray
    ended: Bools


class SpiedWorlds:
    """Implements TeamWorlds on others, and keeps every step."""

    def __init__(self, worlds: TeamWorlds) -> None:
        self._worlds = worlds
        self.moments: list[Moment] = []
        self.env_steps = 0

    @property
    def n_envs(self) -> int:
        """Return how many environments there are."""
        return self._worlds.n_envs

    @property
    def n_agents(self) -> int:
        """Return how many agents are in a team."""
        return self._worlds.n_agents

    @property
    def contract(self) -> Contract:
        """Return what is seen and may be done."""
        return self._worlds.contract

    @property
    def senses(self) -> Senses:
        """Return what is seen now."""
        return self._worlds.senses

    def reset(self, seeds: Seeds) -> Senses:
        """Leave all episodes and begin others."""
        return self._worlds.reset(seeds)

    def step(self, actions: NDArray[np.integer[Any]]) -> Results:
        """Take a step and remember it."""
        seen, _, legal = self._worlds.senses
        before = seen.copy(), legal.copy(), np.array(actions, np.int64)
        found = self._worlds.step(actions)
        self.moments.append(Moment(*before, found.rewards.copy(), found.ended.copy()))
        self.env_steps += self.n_envs
        return found

    def get_state(self) -> EnvState:
        """Return what decides how they go on."""
        return self._worlds.get_state()

    def set_state(self, state: EnvState) -> None:
        """Go on where others stood."""
        self._worlds.set_state(state)


def strange_deeds(policy: TeamPolicy, moments: list[Moment]) -> list[float]:
    """Return by agent the share of deeds that were not the policy's likeliest.

    Only the living count, and only the first episode of every environment.
    """
    envs = len(moments[0].ended)
    memory, going = policy.memory(envs), np.ones(envs, np.bool_)
    wrong = np.zeros(policy.contract.agents)
    count = np.zeros(policy.contract.agents)
    for moment in moments:
        choice = policy.act(moment.observations, moment.legal, memory)
        memory = choice.memory
        asked = living(moment.legal) & going[:, None]
        wrong += (asked & (choice.actions != moment.actions)).sum(axis=0)
        count += asked.sum(axis=0)
        going &= ~moment.ended
    shares: list[float] = (wrong / np.maximum(count, 1.0)).tolist()
    return shares
