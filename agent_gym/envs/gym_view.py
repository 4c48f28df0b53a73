"""One role of any World as a Gymnasium environment, for learners that know nothing of worlds."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Action, ActionSpec, Role, World


def action_space_of(spec: ActionSpec) -> gym.Space[Any]:
    """Return the Gymnasium space of what a role may do."""
    if spec.n is not None:
        return gym.spaces.Discrete(spec.n)
    return gym.spaces.Box(spec.low, spec.high, shape=(1,), dtype=np.float32)


class GymView(gym.Env[NDArray[np.float64], Any]):
    """Seen from one role; the world must have no other roles."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's contract)

    def __init__(self, world: World) -> None:
        if len(world.roles) != 1:
            raise ConfigError(
                "a Gymnasium environment has one role",
                found=world.roles,
                remedy="Use ParallelView for a world with several roles",
            )
        self._role: Role = world.roles[0]
        self._world = world
        start = world.start(self._role, Seeds(0))
        shape = (len(start.feature_names),)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, shape=shape, dtype=np.float64)
        self.action_space = action_space_of(start.actions)

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        root = int(self.np_random.integers(2**62))
        return self._world.reset(Seeds(root))[self._role].features, {}

    @override
    def step(
        self, action: Any
    ) -> tuple[NDArray[np.float64], SupportsFloat, bool, bool, dict[str, Any]]:
        chosen: Action = int(action) if self.action_space.shape == () else action
        out = self._world.step({self._role: chosen})[self._role]
        info = dict(out.info) if out.info else {}
        return out.observation.features, out.reward, out.terminated, out.truncated, info
