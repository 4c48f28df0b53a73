"""What a team is trained in: many battles at once, or anything that speaks like them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl import TeamContract
from agent_gym.core.seeds import Seeds
from agent_gym.envs.battle import BattleBatch, Contract, Results, Senses
from agent_gym.envs.battle.contract import NO_OP
from agent_gym.envs.exact import EnvState
from agent_gym.training.marl.config import TeamTrainConfig


class TeamWorlds(Protocol):
    """Environments of one team that are stepped together and begin anew by themselves.

    Action 0 is that of the dead, and theirs alone.
    """

    @property
    def n_envs(self) -> int: ...
    @property
    def n_agents(self) -> int: ...
    @property
    def contract(self) -> Contract: ...
    @property
    def senses(self) -> Senses: ...
    def reset(self, seeds: Seeds) -> Senses: ...
    def step(self, actions: NDArray[np.integer[Any]]) -> Results: ...
    def get_state(self) -> EnvState: ...
    def set_state(self, state: EnvState) -> None: ...


class AroundWorlds:
    """Implements TeamWorlds on others, as they are; who changes something overrides it."""

    def __init__(self, worlds: TeamWorlds) -> None:
        self._worlds = worlds

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
        """Take a step."""
        return self._worlds.step(actions)

    def get_state(self) -> EnvState:
        """Return what decides how they go on."""
        return self._worlds.get_state()

    def set_state(self, state: EnvState) -> None:
        """Go on where others stood."""
        self._worlds.set_state(state)


MakeWorlds: TypeAlias = Callable[[TeamTrainConfig, int], TeamWorlds]
"""Makes so many environments of what a config names."""


def battle_worlds(config: TeamTrainConfig, n_envs: int) -> TeamWorlds:
    """Return battles."""
    return BattleBatch(config.world.battle(), n_envs)


def living(legal: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which agents live, from what they may do."""
    alive: NDArray[np.bool_] = ~legal[..., NO_OP]
    return alive


def contract_for(worlds: TeamWorlds, name: str) -> TeamContract:
    """Return what a policy for these worlds has to know of them."""
    contract = worlds.contract
    return TeamContract(
        map=name,
        agents=worlds.n_agents,
        observation=contract.observation,
        actions=contract.actions,
    )
