"""One battle as a PettingZoo parallel environment."""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from typing_extensions import override

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Role
from agent_gym.envs.battle.world import BattleConfig, BattleWorld

Seen: TypeAlias = NDArray[np.float32]
Infos: TypeAlias = dict[str, dict[str, Any]]


class BattleParallelEnv(ParallelEnv[str, Seen, int]):
    """Every agent acts at once; ``info["action_mask"]`` says what each may do.

    Episodes after a ``reset(seed=...)`` are counted from it, so the same seed gives the same
    episodes. All agents leave when the battle ends; ``info["won"]`` says how it did.
    """

    metadata = {"name": "agent_gym_battle_v1", "render_modes": []}  # noqa: RUF012

    def __init__(self, config: BattleConfig | None = None) -> None:
        self.world = BattleWorld(config or BattleConfig())
        seen, state, actions = self.world.batch.contract.widths
        self.possible_agents: list[str] = [str(role) for role in self.world.roles]
        self.agents: list[str] = []
        self._seed, self._count = 0, 0
        self.observation_spaces: dict[str, gym.Space[Any]] = {
            name: gym.spaces.Box(-1.0, 1.0, (seen,), np.float32) for name in self.possible_agents
        }
        self.action_spaces: dict[str, gym.Space[Any]] = {
            name: gym.spaces.Discrete(actions) for name in self.possible_agents
        }
        self.state_space = gym.spaces.Box(-1.0, 1.0, (state,), np.float32)

    @override
    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self.observation_spaces[agent]

    @override
    def action_space(self, agent: str) -> gym.Space[Any]:
        return self.action_spaces[agent]

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Seen], Infos]:
        if seed is not None:
            self._seed, self._count = seed, 0
        self._count += 1
        self.world.reset(Seeds(self._seed).child("episode", self._count))
        self.agents = list(self.possible_agents)
        return self._seen(), self._infos({})

    @override
    def step(
        self, actions: dict[str, int]
    ) -> tuple[dict[str, Seen], dict[str, float], dict[str, bool], dict[str, bool], Infos]:
        out = self.world.step({Role(name): action for name, action in actions.items()})
        any_outcome = out[self.world.roles[0]]
        over = any_outcome.terminated
        if over:
            self.agents = []
        return (
            self._seen(),
            dict.fromkeys(self.possible_agents, any_outcome.reward),
            dict.fromkeys(self.possible_agents, over),
            dict.fromkeys(self.possible_agents, False),
            self._infos(dict(any_outcome.info or {})),
        )

    @override
    def state(self) -> Seen:
        """Return the whole battle, for who trains."""
        state: Seen = self.world.batch.senses.state[0].copy()
        return state

    def _seen(self) -> dict[str, Seen]:
        seen = self.world.batch.senses.observations[0]
        return {name: seen[i].copy() for i, name in enumerate(self.possible_agents)}

    def _infos(self, shared: dict[str, Any]) -> Infos:
        legal = self.world.batch.senses.legal[0].astype(np.int8)
        return {
            name: {"action_mask": legal[i], **shared} for i, name in enumerate(self.possible_agents)
        }
