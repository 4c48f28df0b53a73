"""The reflexive market as a World: the trader's own order moves the price that it pays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError, VenueError
from agent_gym.core.registry import register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    EpisodeStart,
    FloatArray,
    Nanos,
    Observation,
    Outcome,
    Role,
    World,
)
from agent_gym.envs.reflexive.config import ReflexiveConfig
from agent_gym.envs.reflexive.crowd import Crowd
from agent_gym.envs.reflexive.kernel import Formed
from agent_gym.envs.reflexive.market import ReflexiveMarket
from agent_gym.envs.reflexive.sight import NO_FILL, OwnFill, Sight
from agent_gym.envs.reflexive.tape import GrowingTape
from agent_gym.exchange.kernel.lanes import INVALID
from agent_gym.exchange.kernel.layout import BAR_CLOSE, BAR_VOLUME, LANE_LIQUIDATED
from agent_gym.exchange.lanes import Lanes
from agent_gym.markets.bars import Bars

TRADER = Role("trader")
BASIS_POINTS = 1e4
MOST_PASSES = 6


class ReflexiveWorld:
    """Implements SoloWorld: one trader, one account on the compiled lanes, a crowd around it.

    The venue alone decides how much of an order fills and what is paid. It is asked for each bar
    first with the bar as it would be without the trader; what it filled there moves the bar, and
    it is asked again, until the order that moves the bar is the one that is filled in it. A
    liquidation happens inside a bar, so its flow moves the next one; what is bought and liquidated
    within one bar leaves no flow.
    """

    def __init__(self, config: ReflexiveConfig) -> None:
        self.config, self.roles = config, (TRADER,)
        self._spec = config.actions.spec()
        self._market, self._sight = ReflexiveMarket(config), Sight(config)
        self._growing = GrowingTape(config)
        blank = np.empty((config.length, 0))
        self.lanes = Lanes(self._growing.tape, blank, 1, config.setup())
        self._t = self._last = 0
        self._forced = 0.0
        self.flow: FloatArray = np.zeros(config.length)

    @property
    def crowd(self) -> Crowd:
        """Return who trades beside the trader."""
        return self._market.crowd

    def bars(self) -> Bars:
        """Return a copy of all bars so far, those before the first decision too."""
        return self._growing.bars(0, self._t + 1)

    def ledger(self, role: Role = TRADER) -> NDArray[np.void]:
        """Return a copy of the trader's account record."""
        if role != TRADER:
            raise AgentError("no such role trades here", found=role, expected=TRADER)
        record: NDArray[np.void] = self.lanes.state[0].copy()
        return record

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Describe the role before the episode."""
        period = Nanos(self.config.period_ns)
        return EpisodeStart(role, self._sight.names, self._spec, seeds, period)

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Let the market live through its warm-up and open the account."""
        self._growing.clear()
        self._sight.begin()
        self._market.begin(seeds.child("market"))
        self._forced, self.flow[:] = 0.0, 0.0
        for t in range(self.config.warmup_bars + 1):
            self._market.ask()
            self._keep(t, self._market.form(0.0), 0.0)
        self.lanes.restart()
        self._t = int(self.lanes.state["t"][0])
        self._last = int(self.lanes.state["end"][0])
        return {TRADER: self._observation(NO_FILL)}

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Let the trader trade through the next bar."""
        if set(actions) != {TRADER}:
            raise AgentError("no such role trades here", found=sorted(actions), expected=TRADER)
        return {TRADER: self.advance(actions[TRADER])}

    def advance(self, action: Action) -> Outcome:
        """Do the same without naming the role."""
        if self._t >= self._last:
            raise VenueError(
                "the episode is over",
                where=f"bar {self._t}",
                remedy="Call reset() for a new one",
            )
        self._place(action)
        self._market.ask()
        fill = self._trade(self._t + 1)
        self._t += 1
        ended, cut = bool(self.lanes.terminated[0]), bool(self.lanes.truncated[0])
        if ended or cut:
            self._last = 0
        return Outcome(self._observation(fill), float(self.lanes.rewards[0]), ended, cut)

    def _place(self, action: Action) -> None:
        """Hand a legal action to the venue; an array of one number counts as that number."""
        value = action.item() if isinstance(action, np.ndarray) and action.size == 1 else action
        spec, n = self._spec, self._spec.n
        try:
            number = float(value)
            legal = math.isfinite(number) and (n is None or number in range(n))
        except (TypeError, ValueError):
            number, legal = 0.0, False
        if not legal:
            raise AgentError(
                "an action is not legal",
                where=f"role {TRADER}",
                found=repr(action),
                expected="one number" if n is None else f"a whole number from 0 to {n - 1}",
            )
        clipped = min(max(number, spec.low), spec.high)
        self.lanes.action_slots[0] = clipped if n is None else int(number)

    def _trade(self, t: int) -> OwnFill:
        """Find the bar and the fill that belong together, and let both happen."""
        before = self.lanes.state.copy()
        moved, passes = 0.0, 1
        bar, filled, forced = self._attempt(t, before, moved)
        while filled != moved and not forced and passes < MOST_PASSES:
            moved, passes = filled, passes + 1
            bar, filled, forced = self._attempt(t, before, moved)
        rows = self._growing.tape.rows
        close, volume = float(rows[t - 1, BAR_CLOSE]), float(rows[t, BAR_VOLUME])
        self._keep(t, bar, moved + self._forced)
        self._forced = filled - moved if forced else 0.0
        return _own_fill(before[0], self.lanes.state[0], close, volume)

    def _attempt(self, t: int, before: NDArray[Any], moved: float) -> tuple[Formed, float, bool]:
        """Let the venue play the bar that an order makes; returns it, what fills, and if forced."""
        lanes, flow = self.lanes, moved + self._forced
        lanes.state[...] = before
        bar = self._market.form(flow)
        self._growing.offer(t, bar, self._market.traded(flow)[0])
        if lanes.kernel_step(lanes.address, 0, 1) >= INVALID:
            lanes.refuse()
        filled = float(lanes.state["pos"][0] - before["pos"][0])
        forced = int(lanes.state["flags"][0]) & ~int(before["flags"][0]) & LANE_LIQUIDATED
        return bar, filled, bool(forced)

    def _keep(self, t: int, bar: Formed, flow: float) -> None:
        """Let a bar have happened with an own flow in units."""
        market = self._market
        volume, bought = market.traded(flow)
        row = self._growing.keep(t, bar, volume, bought)
        market.commit(bar)
        self.flow[t] = flow
        self._sight.watch(row, None if market.signal is None else float(market.signal[t]))

    def _observation(self, fill: OwnFill) -> Observation:
        t, bars = self._t, self._growing.tape
        row = bars.rows[t]
        equity = float(self.lanes.state["eq"][0])
        size = equity / (self.config.usual_volume * row[BAR_CLOSE])
        seen = self._sight.show(row[: BAR_VOLUME + 1], self.lanes.obs[0], (*fill, size))
        return Observation(Nanos(int(bars.bars.ts[t]) + self.config.period_ns), seen)


def _own_fill(before: np.void, after: np.void, close: float, volume: float) -> OwnFill:
    """Read from the account what an order in the last bar paid; the ledger has all of it."""
    quantity = float(after["pos"] - before["pos"])
    if quantity == 0.0:
        return NO_FILL
    spent = float(before["cash"] - after["cash"]) - float(after["fees"] - before["fees"])
    paid = (spent + float(after["ins"] - before["ins"])) / quantity
    cost = (paid / close - 1.0) * (1.0 if quantity > 0.0 else -1.0)
    return OwnFill(cost * BASIS_POINTS, abs(quantity) / volume, 1.0)


@register("world", "reflexive", ReflexiveConfig)
def reflexive_world(config: ReflexiveConfig) -> World:
    """Build a reflexive market."""
    return ReflexiveWorld(config)
