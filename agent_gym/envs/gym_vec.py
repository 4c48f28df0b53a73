"""Environments of Gymnasium side by side in this process, as Stable-Baselines3 wants them.

Made for speed and for exact resume: no layer that only watches, no copies of what nobody changes,
and a state that can be kept although the worlds behind it cannot be copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices
from typing_extensions import override

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.envs.exact import EnvState, generator_state, same_bits, set_generator_state

SingleEnv: TypeAlias = gym.Env[Any, Any]
StepReturn: TypeAlias = tuple[
    NDArray[Any], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]
]

FORMAT = "agent_gym.gym_lanes/1"
NEVER = 1 << 62
FORGET_AT = 4096  # so many batches of actions are kept before the useless ones are dropped


class GymVecEnv(VecEnv):
    """Implements ExactEnv; lane k is an environment of its own, seeded once, at its first reset.

    The limit of time is kept here, not by a wrapper. At an episode's end the lane is reset within
    the step and its info holds ``terminal_observation``, ``TimeLimit.truncated`` and ``episode``:
    ``r`` is the sum of rewards, ``l`` the length and ``t`` the steps of all lanes so far.

    A world of Box2D cannot be copied (``deepcopy`` gives an empty one and says nothing). So the
    state holds how each lane's episode began and its actions since, and ``set_state`` plays them
    again; the result is checked against the kept observation and return.

    Args:
        make: Makes one environment, as ``gymnasium.make`` does.
        n: How many of them.
        seeds: Lane k begins with the seed of the child ``lane, k``.
    """

    def __init__(self, make: Callable[[], SingleEnv], n: int, seeds: Seeds) -> None:
        if n < 1:
            raise ConfigError("there must be at least one lane", found=n)
        peeled = [_peel(make()) for _ in range(n)]
        self.envs: list[SingleEnv] = [env for env, _ in peeled]
        self._limit = peeled[0][1]
        space, actions = self.envs[0].observation_space, self.envs[0].action_space
        _check_spaces(space, actions)
        super().__init__(n, space, actions)
        self._seeds = [seeds.child("lane", k).as_int() for k in range(n)]
        self._shape, self._dtype = (n, *(space.shape or ())), space.dtype
        self._whole = isinstance(actions, gym.spaces.Discrete)
        self._action_dtype: Any = actions.dtype
        self._steps = [env.step for env in self.envs]
        self._actions: NDArray[Any] = np.zeros(0)
        self._count = 0  # steps of each lane so far
        self._history: list[NDArray[Any]] = []  # the actions of all lanes, a batch a step
        self._forgotten = 0  # how many batches were dropped from its front
        self._origins: list[dict[str, Any] | None] = [None] * n
        self._begun, self._due = [0] * n, [NEVER] * n
        self._returns = [0.0] * n
        self._seen: NDArray[Any] = np.zeros(self._shape, self._dtype)

    @override
    def reset(self) -> NDArray[Any]:
        seen = np.empty(self._shape, self._dtype)
        for k in range(self.num_envs):
            seen[k] = self._open(k, self._seeds[k], self._options[k])
        self._reset_seeds()
        self._reset_options()
        self._seen = seen
        return seen.copy()

    def reset_lane(self, lane: int, seed: int) -> NDArray[Any]:
        """Begin an episode of its own seed in one lane and return the first observation.

        The episode is the one that the plain environment plays after ``reset(seed=seed)``, whatever
        the lane and however many there are.
        """
        self._seen[lane] = self._open(lane, seed)
        first: NDArray[Any] = self._seen[lane].copy()
        return first

    def _open(self, k: int, seed: int | None, options: dict[str, Any] | None = None) -> Any:
        env = self.envs[k]
        if seed is not None:
            self._origins[k] = {"seed": seed}
        else:
            self._origins[k] = {"rng": generator_state(env.unwrapped.np_random)}
        if options:
            self._origins[k]["options"] = options  # type: ignore[index]
        seen, self.reset_infos[k] = env.reset(seed=seed, options=options or None)
        self._begun[k] = self._count
        self._due[k] = NEVER if self._limit is None else self._count + self._limit
        self._returns[k] = 0.0
        return seen

    @override
    def step_async(self, actions: NDArray[Any]) -> None:
        # In the space's own precision, so that what is kept and played again is the same number.
        self._actions = actions.astype(self._action_dtype, casting="same_kind", copy=False)

    @override
    def step_wait(self) -> StepReturn:
        actions = self._actions
        self._history.append(actions.copy())
        self._count = count = self._count + 1
        n, due, returns = self.num_envs, self._due, self._returns
        batch = np.empty(self._shape, self._dtype)
        rewards, dones = np.empty(n, np.float32), np.zeros(n, np.bool_)
        infos: list[dict[str, Any]] = []
        chosen = actions.tolist() if self._whole else actions
        for k, step in enumerate(self._steps):
            seen, reward, terminated, truncated, info = step(chosen[k])
            rewards[k] = reward
            returns[k] += reward  # type: ignore[operator]
            if terminated or truncated or count >= due[k]:
                dones[k] = True
                info = self._closing_info(k, seen, info, cut=not terminated)
                seen = self._open(k, None)
            batch[k] = seen
            infos.append(info)
        if len(self._history) > FORGET_AT:
            self._forget()
        self._seen = batch
        return batch.copy(), rewards, dones, infos

    def _closing_info(
        self, k: int, seen: Any, info: dict[str, Any], *, cut: bool
    ) -> dict[str, Any]:
        length, steps = self._count - self._begun[k], self._count * self.num_envs
        return info | {
            "terminal_observation": np.array(seen, dtype=self._dtype),
            "TimeLimit.truncated": cut,
            "episode": {"r": float(self._returns[k]), "l": length, "t": steps},
        }

    def _forget(self) -> None:
        useless = min(self._begun) - self._forgotten
        if 2 * useless > len(self._history):  # so that dropping costs little in the long run
            del self._history[:useless]
            self._forgotten += useless

    def get_state(self) -> EnvState:
        """Return how each lane's episode began and what was done since."""
        arrays: dict[str, NDArray[Any]] = {"seen": self._seen.copy()}
        for k in range(self.num_envs):
            since = [batch[k] for batch in self._history[self._begun[k] - self._forgotten :]]
            done = np.array(since, dtype=self._action_dtype)
            arrays[f"actions_{k}"] = done.reshape(len(since), *(self.action_space.shape or ()))
        values = {
            "format": FORMAT,
            "lanes": self.num_envs,
            "count": self._count,
            "seeds": list(self._seeds),
            "origins": list(self._origins),
            "returns": [float(value) for value in self._returns],
        }
        return EnvState(arrays, values)

    def set_state(self, state: EnvState) -> None:
        """Play each lane's episode again, up to where it was."""
        values, arrays = state.values, state.arrays
        if values.get("format") != FORMAT or values.get("lanes") != self.num_envs:
            raise StoreError(
                "the state is not one of this environment",
                found=f"{values.get('format')}, {values.get('lanes')} lanes",
                expected=f"{FORMAT}, {self.num_envs} lanes",
            )
        past = [arrays[f"actions_{k}"] for k in range(self.num_envs)]
        longest = max(map(len, past))
        count = int(values["count"])
        self._history = _batches(past, longest)
        self._forgotten = count - longest
        seen = np.zeros(self._shape, self._dtype)
        for k, actions in enumerate(past):
            origin = values["origins"][k]
            if origin is not None:
                self._count = count - len(actions)
                seen[k] = self._replay(k, origin, actions)
        self._count = count
        self._origins = list(values["origins"])
        self._seeds = list(values["seeds"])
        self._check_replay(seen, state)
        self._seen = seen

    def _replay(self, k: int, origin: dict[str, Any], actions: NDArray[Any]) -> Any:
        if "rng" in origin:
            set_generator_state(self.envs[k].unwrapped.np_random, origin["rng"])
        seen = self._open(k, origin.get("seed"), origin.get("options"))
        total, step = 0.0, self._steps[k]
        for action in actions.tolist() if self._whole else actions.copy():
            seen, reward, terminated, truncated, _ = step(action)
            total += reward  # type: ignore[operator]
            if terminated or truncated:
                break
        self._returns[k] = total
        return seen

    def _check_replay(self, seen: NDArray[Any], state: EnvState) -> None:
        kept = state.arrays["seen"]
        for k in range(self.num_envs):
            returned = float(state.values["returns"][k])
            if not same_bits(seen[k], kept[k]) or float(self._returns[k]) != returned:
                raise StoreError(
                    "playing the episode again led elsewhere",
                    where=f"lane {k}, after {len(state.arrays[f'actions_{k}'])} steps",
                    found=f"return {self._returns[k]}",
                    expected=f"return {returned}",
                    remedy="The environment must draw all it draws from its np_random, and be of "
                    "the same settings and version",
                )

    @override
    def close(self) -> None:
        for env in self.envs:
            env.close()

    @override
    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [env.get_wrapper_attr(attr_name) for env in self._chosen(indices)]

    @override
    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        for env in self._chosen(indices):
            env.set_wrapper_attr(attr_name, value)

    @override
    def env_method(
        self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        return [env.get_wrapper_attr(method_name)(*args, **kwargs) for env in self._chosen(indices)]

    @override
    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return [_has_wrapper(env, wrapper_class) for env in self._chosen(indices)]

    @override
    def get_images(self) -> Sequence[NDArray[Any] | None]:
        return [None] * self.num_envs

    def _chosen(self, indices: VecEnvIndices) -> list[SingleEnv]:
        return [self.envs[k] for k in self._get_indices(indices)]


def _peel(env: SingleEnv) -> tuple[SingleEnv, int | None]:
    """Return the environment without the layers that only watch, and its limit of time."""
    limit: int | None = None
    while isinstance(env, TimeLimit | OrderEnforcing | PassiveEnvChecker):
        if isinstance(env, TimeLimit):
            own = int(env._max_episode_steps)
            limit = own if limit is None else min(limit, own)
        env = env.env
    return env, limit


def _check_spaces(space: gym.Space[Any], actions: gym.Space[Any]) -> None:
    if not isinstance(space, gym.spaces.Box | gym.spaces.Discrete):
        raise ConfigError(
            "observations of this kind are not supported",
            found=type(space).__name__,
            expected="Box or Discrete",
            remedy="Wrap the environment so that it shows one array (FlattenObservation)",
        )
    if isinstance(actions, gym.spaces.Dict | gym.spaces.Tuple):
        raise ConfigError(
            "actions of this kind are not supported",
            found=type(actions).__name__,
            expected="Box, Discrete or MultiDiscrete",
        )


def _has_wrapper(env: SingleEnv, wrapper_class: type[Any]) -> bool:
    while isinstance(env, gym.Wrapper):
        if isinstance(env, wrapper_class):
            return True
        env = env.env
    return False


def _batches(past: list[NDArray[Any]], longest: int) -> list[NDArray[Any]]:
    """Return the actions of all lanes as batches; before an episode's beginning they are 0."""
    batches = np.zeros((longest, len(past), *past[0].shape[1:]), past[0].dtype)
    for k, actions in enumerate(past):
        batches[longest - len(actions) :, k] = actions
    return list(batches)
