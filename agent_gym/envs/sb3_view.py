"""The vector environment as Stable-Baselines3 wants it: resets within the step, lists of infos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices
from typing_extensions import override

from agent_gym.core.errors import ConfigError
from agent_gym.envs.exact import EnvState
from agent_gym.envs.market_env import episode_key
from agent_gym.envs.vector_env import MarketVectorEnv


class SB3VecEnv(VecEnv):
    """Wraps a MarketVectorEnv for Stable-Baselines3; implements ExactEnv.

    At an episode's end its info holds ``terminal_observation``, ``TimeLimit.truncated``, the
    account's ``growth`` and ``episode``: ``r`` is the sum of rewards, ``l`` the length and ``t``
    the steps of all accounts so far.

    The list of infos is made once; only the entries of ended lanes are filled in and emptied again,
    because a thousand fresh dictionaries cost more than the step itself.
    """

    def __init__(self, env: MarketVectorEnv) -> None:
        self._env = env
        self.render_mode = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self._infos: list[dict[str, Any]] = [{} for _ in range(env.num_envs)]
        self._touched: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._actions: NDArray[Any] = np.zeros(0)
        self._count = 0

    @override
    def reset(self) -> NDArray[np.float32]:
        seed = self._seeds[0] if self._seeds else None
        obs, _ = self._env.reset(seed=seed)
        self._reset_seeds()
        self._reset_options()
        return obs.copy()

    @override
    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    @override
    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        for i in self._touched:
            self._infos[i] = {}
        self._count += 1
        obs, rewards, terminated, truncated, _ = self._env.step(self._actions)
        paid = rewards.astype(np.float32)
        done = terminated | truncated
        self._touched = np.flatnonzero(done)
        if self._touched.size:
            self._close_episodes(obs, truncated & ~terminated)
        return self._env.look(), paid, done, self._infos

    def _close_episodes(self, obs: NDArray[np.float32], cut: NDArray[np.bool_]) -> None:
        lanes, steps = self._env.lanes, self._count * self.num_envs
        for i in self._touched:
            growth = float(lanes.state["growth"][i])  # every reward of the episode, summed
            length = int(lanes.state["t"][i] - lanes.state["end"][i]) + lanes.episode_bars
            self._infos[i] = {
                "terminal_observation": obs[i].copy(),
                "TimeLimit.truncated": bool(cut[i]),
                "growth": growth,
                "episode": {"r": growth, "l": length, "t": steps},
            }
        for i in self._touched:
            lanes.restart(int(i), int(i) + 1)

    def reset_lane(self, lane: int, seed: int) -> NDArray[np.float32]:
        """Begin an episode of its own seed in one lane and return the first observation.

        It is the episode that MarketEnv plays after ``reset(seed=seed)``, whatever the lane and
        however many there are.
        """
        lanes = self._env.lanes
        lanes.restart_as(lane, episode_key(np_random(seed)[0]))
        first: NDArray[np.float32] = self._env.look()[lane]
        return first

    def get_state(self) -> EnvState:
        """Return all that decides how the accounts go on."""
        arrays, values = self._env.get_state()
        return EnvState(arrays, values | {"count": self._count, "seeds": list(self._seeds)})

    def set_state(self, state: EnvState) -> None:
        """Go on where another environment of the same settings was."""
        self._env.set_state(state)
        self._count, self._seeds = int(state.values["count"]), list(state.values["seeds"])
        for i in self._touched:
            self._infos[i] = {}
        self._touched = np.empty(0, dtype=np.intp)

    @override
    def close(self) -> None:
        self._env.close()

    @override
    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self._env, attr_name)] * len(list(self._get_indices(indices)))

    @override
    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise ConfigError(
            "accounts of a vector environment share their settings",
            where=attr_name,
            remedy="Make a new environment with another config",
        )

    @override
    def env_method(
        self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        result = getattr(self._env, method_name)(*args, **kwargs)
        return [result] * len(list(self._get_indices(indices)))

    @override
    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))

    @override
    def get_images(self) -> Sequence[NDArray[Any] | None]:
        return [None] * self.num_envs
