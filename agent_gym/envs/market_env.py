"""One account as a Gymnasium environment: the compiled step with as little Python as can be."""

from __future__ import annotations

from functools import partial
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from agent_gym.core.registry import configure
from agent_gym.envs.config import ContinuousTargets, MarketConfig, refuse_fields
from agent_gym.envs.stage import build_stage
from agent_gym.exchange.kernel.lanes import INVALID
from agent_gym.exchange.kernel.layout import LANE
from agent_gym.exchange.lanes import Lanes
from agent_gym.markets.bars import Bars


def resolve_config(config: MarketConfig | None, overrides: dict[str, Any]) -> MarketConfig:
    """Return the config with single fields replaced, as ``gym.make`` hands them over."""
    base = config or MarketConfig()
    fields = base.model_dump(include=set(MarketConfig.model_fields))
    resolved = configure(MarketConfig, fields | overrides, where="agent_gym/Market-v1")
    refuse_fields(
        resolved,
        ("roles", "fresh_market"),
        what="only a world has roles and draws fresh markets",
        remedy="Use MarketWorld, and GymView or ParallelView to see it as an environment",
    )
    return resolved


def make_action_space(config: MarketConfig) -> gym.Space[Any]:
    """Return the action space of one account."""
    if isinstance(config.actions, ContinuousTargets):
        low, high = config.actions.low, config.actions.high
        return gym.spaces.Box(low, high, shape=(1,), dtype=np.float32)
    return gym.spaces.Discrete(len(config.actions.levels))


def make_observation_space(width: int) -> gym.Space[Any]:
    """Return the observation space of one account."""
    return gym.spaces.Box(-np.inf, np.inf, shape=(width,), dtype=np.float32)


def episode_key(rng: np.random.Generator) -> int:
    """Return the key under which lanes draw their windows."""
    return int(rng.integers(2**62))


class MarketEnv(gym.Env[NDArray[np.float32], Any]):
    """Trade one account through bars; the reward is the change of log equity.

    Args:
        bars: The series to trade; without it the market that the config names.
        config: What the environment is made of; keyword overrides replace single fields.
        render_mode: ``"ansi"`` for a line of text about the account.
        overrides: Fields of MarketConfig.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (Gymnasium's contract)

    def __init__(
        self,
        bars: Bars | None = None,
        config: MarketConfig | None = None,
        render_mode: str | None = None,
        **overrides: Any,
    ) -> None:
        self.config = resolve_config(config, overrides)
        self.render_mode = render_mode
        self.stage = build_stage(self.config, bars)
        lanes = Lanes(self.stage.tape, self.stage.slim(), 1, self.config.setup(autoreset=False))
        self.lanes = lanes
        self.action_space = make_action_space(self.config)
        self.observation_space = make_observation_space(len(self.stage.slim_names))
        spec = self.config.actions.spec()
        self._discrete, self._low, self._high = spec.n is not None, spec.low, spec.high
        row, columns = lanes.obs[0], self.stage.slim_columns
        self._look = row.copy if columns is None else partial(row.take, columns)
        self._action, self._reward = lanes.action_slots, lanes.reward_slots
        self._kernel_step, self._address = lanes.kernel_step, lanes.address
        self._seeded = False
        self._over = True

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self.lanes.seed(episode_key(self.np_random))
            self._seeded = True
        self.lanes.restart()
        self._over = False
        return self._look(), self.account()

    @override
    def step(
        self, action: Any
    ) -> tuple[NDArray[np.float32], SupportsFloat, bool, bool, dict[str, Any]]:
        if self._over:
            raise gym.error.ResetNeeded("the episode is over or was never begun: call reset()")
        if self._discrete:
            self._action[0] = action
        else:
            self._action[0] = min(max(float(action[0]), self._low), self._high)
        events = self._kernel_step(self._address, 0, 1)
        if not events:
            return self._look(), self._reward[0], False, False, {}
        if events >= INVALID:
            self.lanes.refuse()
        self._over = True
        ended, cut = self.lanes.terminated_slots[0], self.lanes.truncated_slots[0]
        return self._look(), self._reward[0], ended, cut, self.account()

    def account(self) -> dict[str, Any]:
        """Return the account as plain numbers."""
        record = self.lanes.state[0]
        return {name: record[name].item() for name in LANE.names or ()}

    @override
    def render(self) -> Any:
        if self.render_mode != "ansi":
            return None
        now = self.account()
        return (
            f"bar {now['t']}  equity {now['eq']:,.2f}  position {now['pos']:.6g}  "
            f"fees {now['fees']:.2f}"
        )
