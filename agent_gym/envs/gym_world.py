"""Any environment of Gymnasium as a World, so that what plays worlds can play games too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from pydantic import Field

from agent_gym.core.errors import AgentError, ConfigError, VenueError
from agent_gym.core.registry import Config, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    EpisodeStart,
    FloatArray,
    Nanos,
    Observation,
    Outcome,
    Role,
    World,
)
from agent_gym.envs.gym_catalog import make_gym

PLAYER = Role("player")


class GymWorldConfig(Config):
    """Which game, and what it is made with."""

    id: str = Field(description="as Gymnasium knows it, such as LunarLander-v3")
    params: dict[str, Any] = Field(default_factory=dict, description="what the environment takes")


class GymWorld:
    """Implements SoloWorld on one environment of Gymnasium.

    An observation is laid out as one row of float64, ``obs_0`` and on; time is the number of steps
    since the reset, in nanoseconds. Where an action has several numbers it is an array of them;
    one number counts for each of them.

    Args:
        config: Which game.
        render_mode: For who wants pictures from ``env``.
    """

    roles = (PLAYER,)

    def __init__(self, config: GymWorldConfig, *, render_mode: str | None = None) -> None:
        self.config = config
        self.env = make_gym(config.id, config.params, render_mode=render_mode)
        self._space = self.env.action_space
        self._spec = action_spec_of(self._space, config.id)
        size = int(np.prod(self.env.observation_space.shape or (1,)))
        if self.env.observation_space.shape is None:
            raise ConfigError(
                "observations of this kind are not supported",
                where=f"env {config.id}",
                found=type(self.env.observation_space).__name__,
                expected="Box or Discrete",
            )
        self._names = tuple(f"obs_{i}" for i in range(size))
        self._t = 0
        self._over = True

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe the role before the episode."""
        return EpisodeStart(role, self._names, self._spec, seeds)

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Begin an episode."""
        return {PLAYER: self.begin(seeds.child("env").as_int())}

    def begin(self, seed: int) -> Observation:
        """Begin the episode that the environment itself plays under this seed."""
        seen, _ = self.env.reset(seed=seed)
        self._t, self._over = 0, False
        return Observation(Nanos(0), _row(seen))

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Let the player act."""
        if set(actions) != {PLAYER}:
            raise AgentError("one role plays here", found=sorted(actions), expected=PLAYER)
        return {PLAYER: self.advance(actions[PLAYER])}

    def advance(self, action: Action) -> Outcome:
        """Do the same without naming the player."""
        if self._over:
            raise VenueError(
                "the episode is over", where=f"step {self._t}", remedy="Call reset() for a new one"
            )
        seen, reward, terminated, truncated, info = self.env.step(self._legal(action))
        self._t += 1
        self._over = terminated or truncated
        now = Observation(Nanos(self._t), _row(seen))
        return Outcome(now, float(reward), bool(terminated), bool(truncated), info or None)

    def _legal(self, action: Any) -> Any:
        """Return the action as the environment takes it."""
        space = self._space
        if isinstance(space, gym.spaces.Discrete):
            value = action.item() if isinstance(action, np.ndarray | np.generic) else action
            whole = isinstance(value, int) and not isinstance(value, bool)
            if whole and 0 <= value < space.n:
                return value + int(space.start)
            raise AgentError(
                "an action is not legal", found=repr(action), expected=f"0 to {int(space.n) - 1}"
            )
        shape = space.shape or ()
        values = np.asarray(action, dtype=np.float64)
        if values.size not in (1, int(np.prod(shape))) or not np.isfinite(values).all():
            raise AgentError(
                "an action is not legal",
                found=repr(action),
                expected=f"{int(np.prod(shape))} finite numbers, or one for all",
            )
        if values.size == 1:
            values = np.broadcast_to(values.reshape(()), shape)
        low, high = space.low, space.high  # type: ignore[attr-defined]
        return np.clip(values.reshape(shape), low, high).astype(space.dtype)


def action_spec_of(space: gym.Space[Any], env: str) -> ActionSpec:
    """Return what a player may do; bounds that differ between numbers become the widest."""
    if isinstance(space, gym.spaces.Discrete):
        return ActionSpec(n=int(space.n))
    if isinstance(space, gym.spaces.Box):
        return ActionSpec(low=float(space.low.min()), high=float(space.high.max()))
    raise ConfigError(
        "actions of this kind are not supported",
        where=f"env {env}",
        found=type(space).__name__,
        expected="Box or Discrete",
    )


def _row(seen: Any) -> FloatArray:
    return np.array(seen, dtype=np.float64).reshape(-1)


@register("world", "gym", GymWorldConfig)
def gym_world(config: GymWorldConfig) -> World:
    """Build a world of one game."""
    return GymWorld(config)
