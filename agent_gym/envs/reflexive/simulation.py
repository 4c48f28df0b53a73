"""The series door: a whole course of the market at once, without an account."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.reflexive.config import ReflexiveConfig
from agent_gym.envs.reflexive.crowd import Crowd
from agent_gym.envs.reflexive.market import ReflexiveMarket
from agent_gym.envs.reflexive.tape import GrowingTape
from agent_gym.markets.bars import Bars


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """The bars of a reflexive market and what made them, one number a bar.

    Attributes:
        bars: All bars, the warm-up too.
        worth: Log price that the market is worth after each bar.
        net: Sum of the crowd's demands in each bar, in average daily volumes.
        gross: Sum of their sizes.
        signal: What told of news to come after each bar; None without one.
        crowd: The crowd as the end found it.
        warmup_bars: Bars before the first decision of a trader.
    """

    bars: Bars
    worth: FloatArray
    net: FloatArray
    gross: FloatArray
    signal: FloatArray | None
    crowd: Crowd
    warmup_bars: int

    @property
    def settled(self) -> Bars:
        """Return the bars after the warm-up."""
        return self.bars.rows(self.warmup_bars, len(self.bars))


def simulate(
    config: ReflexiveConfig, seeds: Seeds, own_flow: FloatArray | None = None
) -> Simulation:
    """Return the course of the market under the seeds that a world would be reset with.

    Args:
        config: The market; what concerns actions, account and costs is not looked at.
        seeds: As for ``ReflexiveWorld.reset``.
        own_flow: Units bought (or sold, if negative) in each bar by somebody outside the crowd,
            as ``ReflexiveWorld.flow`` holds them.
    """
    n = config.length
    flow = np.zeros(n) if own_flow is None else np.asarray(own_flow, dtype=np.float64)
    if flow.shape != (n,) or not np.isfinite(flow).all():
        raise VenueError(
            "a flow needs one finite number for each bar", found=flow.shape, expected=(n,)
        )
    market, growing = ReflexiveMarket(config), GrowingTape(config)
    market.begin(seeds.child("market"))
    worth, net, gross = np.empty(n), np.empty(n), np.empty(n)
    for t, own in enumerate(flow.tolist()):
        market.ask()
        bar = market.form(own)
        volume, bought = market.traded(own)
        growing.keep(t, bar, volume, bought)
        market.commit(bar)
        worth[t], net[t], gross[t] = bar.worth, market.net, market.gross
    bars = growing.bars(0, n)
    return Simulation(bars, worth, net, gross, market.signal, market.crowd, config.warmup_bars)
