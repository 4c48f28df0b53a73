"""Any World as a PettingZoo parallel environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from pettingzoo import ParallelEnv
from typing_extensions import override

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Action, Role, World
from agent_gym.envs.gym_view import action_space_of


class ParallelView(ParallelEnv[str, NDArray[np.float64], Any]):
    """Every role of a world acts at once; a role whose episode ended leaves."""

    metadata = {"name": "agent_gym_world_v1", "render_modes": []}  # noqa: RUF012

    def __init__(self, world: World) -> None:
        self._world = world
        self.possible_agents: list[str] = [str(role) for role in world.roles]
        self.agents: list[str] = []
        self._count = 0
        self._root = 0
        starts = {str(role): world.start(role, Seeds(0)) for role in world.roles}
        self.observation_spaces: dict[str, gym.Space[Any]] = {
            name: gym.spaces.Box(
                -np.inf, np.inf, shape=(len(start.feature_names),), dtype=np.float64
            )
            for name, start in starts.items()
        }
        self.action_spaces: dict[str, gym.Space[Any]] = {
            name: action_space_of(start.actions) for name, start in starts.items()
        }

    @override
    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self.observation_spaces[agent]

    @override
    def action_space(self, agent: str) -> gym.Space[Any]:
        return self.action_spaces[agent]

    @override
    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float64]], dict[str, dict[str, Any]]]:
        if seed is not None:
            self._root, self._count = seed, 0
        self._count += 1
        self.agents = list(self.possible_agents)
        seen = self._world.reset(Seeds(self._root).child("episode", self._count))
        return {str(r): o.features for r, o in seen.items()}, {name: {} for name in self.agents}

    @override
    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, NDArray[np.float64]],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        chosen: dict[Role, Action] = {
            Role(name): int(action) if self.action_spaces[name].shape == () else action
            for name, action in actions.items()
        }
        out = {str(role): outcome for role, outcome in self._world.step(chosen).items()}
        self.agents = [n for n in self.agents if not (out[n].terminated or out[n].truncated)]
        return (
            {n: o.observation.features for n, o in out.items()},
            {n: o.reward for n, o in out.items()},
            {n: o.terminated for n, o in out.items()},
            {n: o.truncated for n, o in out.items()},
            {n: dict(o.info) if o.info else {} for n, o in out.items()},
        )
