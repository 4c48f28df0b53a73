"""Worlds that remember what was really done in them, whatever a training says of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from agent_gym.agents.marl import TeamPolicy
from agent_gym.agents.marl.network import Floats
from agent_gym.core.types import FloatArray
from agent_gym.envs.battle import Results
from agent_gym.training.marl.batch import Bools
from agent_gym.training.marl.worlds import AroundWorlds, TeamWorlds, living


class Moment(NamedTuple):
    """One step of all environments: what was seen, what was done, and what it brought."""

    observations: Floats
    legal: Bools
    actions: NDArray[np.int64]
    rewards: FloatArray
    ended: Bools


class SpiedWorlds(AroundWorlds):
    """Keeps every step."""

    def __init__(self, worlds: TeamWorlds) -> None:
        super().__init__(worlds)
        self.moments: list[Moment] = []
        self.env_steps = 0

    @override
    def step(self, actions: NDArray[np.integer[Any]]) -> Results:
        """Take a step and remember it."""
        seen, _, legal = self._worlds.senses
        before = seen.copy(), legal.copy(), np.array(actions, np.int64)
        found = self._worlds.step(actions)
        self.moments.append(Moment(*before, found.rewards.copy(), found.ended.copy()))
        self.env_steps += self.n_envs
        return found


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
