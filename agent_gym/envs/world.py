"""The market as a World: every role has an account of its own on the same bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError, ConfigError, VenueError
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Action, EpisodeStart, Nanos, Observation, Outcome, Role, World
from agent_gym.envs.config import MarketConfig, refuse_fields
from agent_gym.envs.stage import Stage, build_stage
from agent_gym.exchange.kernel.lanes import INVALID
from agent_gym.exchange.lanes import Lanes
from agent_gym.markets.bars import Bars
from agent_gym.markets.source import open_market


class MarketWorld:
    """Implements SoloWorld on the compiled lanes; the step-by-step door.

    An observation holds the bar (open, high, low, close, volume), the causal features and the
    account, all as float64 and in the order of ``EpisodeStart.feature_names``.
    """

    def __init__(self, config: MarketConfig, bars: Bars | None = None) -> None:
        if bars is not None and config.fresh_market:
            raise ConfigError(
                "fresh_market needs a market to draw from, not given bars",
                remedy="Leave the bars out, or fresh_market",
            )
        if len(set(config.roles)) != len(config.roles):
            raise ConfigError("two roles have the same name", found=config.roles)
        refuse_fields(
            config,
            ("account_features",),
            what="a world shows all columns of an account",
            remedy="Leave it out: agents find the columns they need by name",
        )
        self.config = config
        self.roles = tuple(Role(role) for role in config.roles)
        self._spec = config.actions.spec()
        self._low, self._high = self._spec.low, self._spec.high
        self._discrete = self._spec.levels is not None
        self._bind(build_stage(config, bars))

    def _bind(self, stage: Stage) -> None:
        self.stage = stage
        setup = self.config.setup(together=True, autoreset=False)
        lanes = self.lanes = Lanes(stage.tape, stage.full(), len(self.roles), setup)
        self._names = stage.full_names
        bars = stage.tape.bars
        self._times: list[Nanos] = (bars.ts + bars.period_ns).tolist()
        self._action, self._reward = lanes.action_slots, lanes.reward_slots
        self._terminated, self._truncated = lanes.terminated_slots, lanes.truncated_slots
        self._kernel_step, self._address = lanes.kernel_step, lanes.address
        self._rows = [lanes.obs[i] for i in range(len(self.roles))]
        self._row = self._rows[0]
        self._n = len(self.roles)
        self._t = self._last = self._solo_last = 0
        self._over: set[Role] = set()
        self._lane_of = {role: i for i, role in enumerate(self.roles)}

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe the role before the episode."""
        return EpisodeStart(role, self._names, self._spec, seeds, self.stage.period_ns)

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Open the accounts at the start of a window."""
        if self.config.fresh_market:
            bars = open_market(self.config.market, seeds.child("market"))
            self._bind(build_stage(self.config, bars))
        self.lanes.seed(seeds.child("window").as_uint64())
        self.lanes.restart()
        self._t = int(self.lanes.state["t"][0])
        self._last = int(self.lanes.state["end"][0])
        self._solo_last = self._last if self._n == 1 else 0
        self._over.clear()
        ts = self._times[self._t]
        return {
            role: Observation(ts, row.copy())
            for role, row in zip(self.roles, self._rows, strict=True)
        }

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Let every role that acts trade through the next bar."""
        if self._t >= self._last or not self._over.isdisjoint(actions):
            self._refuse_step(actions)
        for role, action in actions.items():
            self._place(self._lane_of.get(role), role, action)
        if self._kernel_step(self._address, 0, self._n) >= INVALID:
            self.lanes.refuse()
        self._t += 1
        ts = self._times[self._t]
        return {role: self._outcome(self._lane_of[role], ts) for role in actions}

    def advance(self, action: Action) -> Outcome:
        """Do the same for a world of one role, with as little Python as can be."""
        t = self._t + 1
        if t > self._solo_last:
            self._refuse_step(())
        try:
            self._action[0] = action if self._discrete else self._clip(action)
        except (TypeError, ValueError):
            self._place(0, self.roles[0], action)
        events = self._kernel_step(self._address, 0, 1)
        if events >= INVALID:
            self.lanes.refuse()
        self._t = t
        if events:
            return self._outcome(0, self._times[t])
        return Outcome(Observation(self._times[t], self._row.copy()), self._reward[0])

    def _place(self, lane: int | None, role: Role, action: Any) -> None:
        """Hand an action to its lane; an array of one number counts as that number."""
        if lane is None:
            raise AgentError("no such role trades here", found=role, expected=", ".join(self.roles))
        value = action.item() if isinstance(action, np.ndarray) and action.size == 1 else action
        try:
            self._action[lane] = value if self._discrete else self._clip(value)
        except (TypeError, ValueError) as error:
            n = self._spec.n
            raise AgentError(
                "an action is not legal",
                where=f"role {role}",
                found=repr(action),
                expected="one number" if n is None else f"a whole number from 0 to {n - 1}",
            ) from error

    def _refuse_step(self, acting: Iterable[Role]) -> NoReturn:
        done = sorted(self._over.intersection(acting))
        if self._t < self._last and self._n > 1 and not done:
            raise VenueError(
                "this world has several roles, so an action needs a role",
                found=self._n,
                remedy="Call step() with one action for each role",
            )
        raise VenueError(
            "the episode is over",
            where=f"bar {self._t}" + (f", role {', '.join(done)}" if done else ""),
            remedy="Call reset() for a new one",
        )

    def _outcome(self, lane: int, ts: Nanos) -> Outcome:
        ended, cut = self._terminated[lane], self._truncated[lane]
        if ended or cut:
            self._over.add(self.roles[lane])
            self._solo_last = 0
        return Outcome(Observation(ts, self._rows[lane].copy()), self._reward[lane], ended, cut)

    def _clip(self, action: Action) -> float:
        value = action.item() if isinstance(action, np.ndarray) else float(action)
        if self._low <= value <= self._high:
            return value
        return min(max(value, self._low), self._high)

    def ledger(self, role: Role) -> NDArray[np.void]:
        """Return a copy of a role's account record."""
        record: NDArray[np.void] = self.lanes.state[self._lane_of[role]].copy()
        return record


@register("world", "market", MarketConfig)
def market_world(config: MarketConfig) -> World:
    """Build a market world."""
    return MarketWorld(config)
