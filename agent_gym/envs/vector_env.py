"""Many accounts as one Gymnasium vector environment: one compiled call steps them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

from agent_gym.core.errors import AgentError, StoreError
from agent_gym.core.registry import unknown
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import EpisodeStart, FloatArray, Role
from agent_gym.envs.config import MarketConfig
from agent_gym.envs.exact import EnvState, generator_state, set_generator_state
from agent_gym.envs.market_env import (
    episode_key,
    make_action_space,
    make_observation_space,
    resolve_config,
)
from agent_gym.envs.stage import build_stage
from agent_gym.exchange.lanes import Lanes
from agent_gym.markets.bars import PRICE_COLUMNS, Bars

FORMAT = "agent_gym.market_lanes/1"


class MarketVectorEnv(VectorEnv[NDArray[np.float32], NDArray[Any], NDArray[Any]]):
    """N accounts on one market, with random start windows and the NEXT_STEP autoreset rule.

    Args:
        num_envs: How many accounts.
        bars: The series to trade; without it the market that the config names.
        config: What the environment is made of; keyword overrides replace single fields.
        threads: Threads to step on; more than one pays only for thousands of accounts.
        copy: Hand out copies; without, arrays are overwritten by the next step.
        overrides: Fields of MarketConfig.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        bars: Bars | None = None,
        config: MarketConfig | None = None,
        threads: int = 1,
        copy: bool = True,
        **overrides: Any,
    ) -> None:
        overrides.pop("render_mode", None)
        self.config = resolve_config(config, overrides)
        self.num_envs, self._copy = num_envs, copy
        self.stage = build_stage(self.config, bars)
        setup = self.config.setup(threads=threads)
        self.lanes = Lanes(self.stage.tape, self.stage.slim(), num_envs, setup)
        self.single_action_space = make_action_space(self.config)
        self._columns = self.stage.slim_columns
        self.single_observation_space = make_observation_space(len(self.stage.slim_names))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        spec = self.config.actions.spec()
        self._bounds = (spec.low, spec.high) if spec.levels is None else None
        self._seeded = False

    @override
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None or not self._seeded:
            self.lanes.seed(episode_key(self.np_random))
            self._seeded = True
        self.lanes.restart()
        return self.look() if self._copy else self._view(), {}

    @override
    def step(
        self, actions: NDArray[Any]
    ) -> tuple[
        NDArray[np.float32], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
    ]:
        lanes = self.lanes
        chosen = np.asarray(actions)
        if self._bounds is not None:
            chosen = np.clip(chosen.reshape(-1), *self._bounds, dtype=np.float64)
        elif chosen.dtype.kind not in "iu":
            raise AgentError("discrete actions are whole numbers", found=chosen.dtype.name)
        if chosen.shape != lanes.actions.shape:
            raise AgentError(
                "actions have the wrong shape", found=chosen.shape, expected=lanes.actions.shape
            )
        np.copyto(lanes.actions, chosen)
        lanes.step()
        if self._copy:
            return (
                self.look(),
                lanes.rewards.copy(),
                lanes.terminated.copy(),
                lanes.truncated.copy(),
                {},
            )
        return self._view(), lanes.rewards, lanes.terminated, lanes.truncated, {}

    def look(self) -> NDArray[np.float32]:
        """Return a copy of what all accounts see now."""
        obs, columns = self.lanes.obs, self._columns
        seen: NDArray[np.float32] = obs.copy() if columns is None else obs.take(columns, axis=1)
        return seen

    def _view(self) -> NDArray[np.float32]:
        return self.lanes.obs if self._columns is None else self.look()

    def get_state(self) -> EnvState:
        """Return all that decides how the accounts go on."""
        values = {
            "format": FORMAT,
            "bars": self.stage.tape.bars.fingerprint,
            "seeded": self._seeded,
            "rng": generator_state(self.np_random),
        }
        return EnvState(self.lanes.kept(), values)

    def set_state(self, state: EnvState) -> None:
        """Go on where another environment of the same settings was."""
        bars = self.stage.tape.bars.fingerprint
        if state.values.get("format") != FORMAT or state.values.get("bars") != bars:
            raise StoreError(
                "the state is not one of this market",
                found=f"{state.values.get('format')}, bars {state.values.get('bars')}",
                expected=f"{FORMAT}, bars {bars}",
            )
        self.lanes.put_back(state.arrays)
        set_generator_state(self.np_random, state.values["rng"])
        self._seeded = bool(state.values["seeded"])

    def start(self, seeds: Seeds) -> EpisodeStart:
        """Describe an account before its episode, for a rule that drives all of them."""
        names, spec = self.stage.slim_names, self.config.actions.spec()
        return EpisodeStart(Role(self.config.roles[0]), names, spec, seeds, self.stage.period_ns)

    def columns(self, names: Sequence[str]) -> dict[str, FloatArray]:
        """Return exact bar columns (open, high, low, close, volume) of the bar each account saw.

        Observations are float32 for learners; a rule that compares prices needs all the digits.
        """
        bars, t = self.stage.tape.bars, self.lanes.state["t"]
        unknown_names = set(names) - set(PRICE_COLUMNS)
        if unknown_names:
            raise unknown("bar column", min(unknown_names), PRICE_COLUMNS)
        return {name: getattr(bars, name)[t] for name in names}
