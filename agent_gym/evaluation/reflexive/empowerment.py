"""How much of what a market shows is due to the own orders: a bound from below, beside a replay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.agents.umc.empowerment import InformationBound, gaussian_empowerment_bound
from agent_gym.core.seeds import Seeds
from agent_gym.envs.reflexive import ReflexiveConfig, simulate


@dataclass(frozen=True, slots=True)
class Empowerment:
    """Nats a bar that returns say about orders that were drawn at random.

    Attributes:
        moved: Where the orders were placed.
        replay: The same orders beside the same market without them, where it must be nothing.
    """

    moved: InformationBound
    replay: InformationBound


def market_empowerment(config: ReflexiveConfig, seeds: Seeds, share: float = 0.02) -> Empowerment:
    """Place random orders in a market and ask how well its returns give them away.

    Args:
        config: The market.
        seeds: Of the market and of the orders.
        share: Deviation of an order, in average daily volumes.

    Example:
        >>> found = market_empowerment(ReflexiveConfig(bars=200, crowd=None), Seeds(1))
        >>> found.moved.rows == found.replay.rows
        True
    """
    size = share * config.daily_units
    orders = seeds.child("empowerment").rng().normal(0.0, size, config.length)
    bounds = []
    for flow in (orders, None):
        close = simulate(config, seeds, own_flow=flow).bars.close
        returns = np.diff(np.log(close))
        bounds.append(gaussian_empowerment_bound(orders[1:], returns, [0.0], [[size**2]]))
    return Empowerment(*bounds)
