"""Games stepped in C++ by EnvPool, as Stable-Baselines3 wants them; needs ``agent-gym[fast]``.

The same games, not the same episodes: EnvPool draws from generators of its own, so a seed leads to
other episodes than in Gymnasium. Only the ids below were compared, by the returns and lengths of
many episodes under a fixed policy. Its state cannot be kept, so there is no exact resume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import envpool
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices
from typing_extensions import override

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.gym_catalog import find_spec, make_gym

COMPARED = ("CartPole-v1", "LunarLander-v3", "LunarLanderContinuous-v3", "Pendulum-v1")
LIMIT = "max_episode_steps"


def check_recipe(env: str, params: Mapping[str, Any]) -> None:
    """Raise ConfigError unless EnvPool plays this very game."""
    if env not in COMPARED:
        raise ConfigError(
            "backend envpool has not been compared with Gymnasium in this environment",
            where="backend",
            found=env,
            expected=", ".join(COMPARED),
            remedy="Use backend: gymnasium",
        )
    odd = sorted(set(params) - {LIMIT})
    if odd:
        raise ConfigError(
            "backend envpool cannot change this of a game",
            where="env_params",
            found=", ".join(odd),
            expected=LIMIT,
            remedy="Leave it out, or use backend: gymnasium",
        )


class EnvPoolVecEnv(VecEnv):
    """Episodes that end are reset within the step; infos are as those of GymVecEnv.

    EnvPool itself resets on the step after an end, so ended lanes are reset at once by hand. Its
    declared bounds are wrong: the spaces are those of Gymnasium.

    Args:
        env: One of the ids that were compared.
        params: At most ``max_episode_steps``.
        n: How many lanes.
        seeds: Lane k begins with the seed of the child ``lane, k``.
    """

    def __init__(self, env: str, params: Mapping[str, Any], n: int, seeds: Seeds) -> None:
        check_recipe(env, params)
        self._id, self._limit = env, params.get(LIMIT, find_spec(env).max_episode_steps)
        single = make_gym(env, params)
        self.render_mode = None
        super().__init__(n, single.observation_space, single.action_space)
        single.close()
        self._pool: Any = None
        self._seeds = [seeds.child("lane", k).as_int() for k in range(n)]
        self._actions: NDArray[Any] = np.zeros(0)
        self._infos: list[dict[str, Any]] = [{} for _ in range(n)]
        self._touched: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._returns, self._begun = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._count = 0

    @override
    def reset(self) -> NDArray[Any]:
        if self._pool is None or self._seeds[0] is not None:
            self._open_pool([seed or 0 for seed in self._seeds])
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._begun[:] = 0.0, self._count
        return self._ordered(*self._pool.reset())

    def _open_pool(self, seeds: list[int]) -> None:
        """Make the pool; seeds can only be given then."""
        self.close()
        self._pool = envpool.make(
            self._id,
            env_type="gymnasium",
            num_envs=self.num_envs,
            num_threads=1,
            seed=[seed % 2**31 for seed in seeds],
            **({} if self._limit is None else {LIMIT: self._limit}),
        )

    def _ordered(self, seen: NDArray[Any], info: Mapping[str, Any]) -> NDArray[Any]:
        order = np.argsort(info["env_id"], kind="stable")
        ordered: NDArray[Any] = seen[order]
        return ordered

    @override
    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    @override
    def step_wait(
        self,
    ) -> tuple[NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        for i in self._touched:
            self._infos[i] = {}
        out, rewards, terminated, truncated, info = self._pool.step(self._actions)
        if (np.diff(info["env_id"]) < 0).any():
            raise ConfigError("envpool handed lanes over out of order", found=info["env_id"])
        self._count += 1
        self._returns += rewards
        seen, done = out.copy(), terminated | truncated
        self._touched = np.flatnonzero(done)
        if self._touched.size:
            self._close_episodes(seen, terminated)
        return seen, rewards.astype(np.float32), done, self._infos

    def _close_episodes(self, seen: NDArray[Any], terminated: NDArray[np.bool_]) -> None:
        ended, steps = self._touched, self._count * self.num_envs
        for i in ended:
            length = int(self._count - self._begun[i])
            self._infos[i] = {
                "terminal_observation": seen[i].copy(),
                "TimeLimit.truncated": not terminated[i],
                "episode": {"r": float(self._returns[i]), "l": length, "t": steps},
            }
        seen[ended] = self._ordered(*self._pool.reset(ended.astype(np.int32)))
        self._returns[ended], self._begun[ended] = 0.0, self._count

    @override
    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    @override
    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    @override
    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise ConfigError(
            "lanes of envpool share their settings",
            where=attr_name,
            remedy="Make a new environment",
        )

    @override
    def env_method(
        self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        raise ConfigError(
            "lanes of envpool have no methods of their own",
            where=method_name,
            remedy="Use backend: gymnasium",
        )

    @override
    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))

    @override
    def get_images(self) -> Sequence[NDArray[Any] | None]:
        return [None] * self.num_envs
