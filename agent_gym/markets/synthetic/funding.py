"""Inlined parts of funding: the rate that falls due next is fixed at the settlement before it.

So it depends on past prices alone, and the carry that offsets it can run over the whole period.
"""

from __future__ import annotations

from math import erfc
from typing import Any, NamedTuple

import numpy as np

from agent_gym.core.kernels import inlined
from agent_gym.markets.synthetic.draws import normal

PERIOD_MIN = 480.0
_VARIANCE_MEMORY = 0.99


class FundingState(NamedTuple):
    """What funding remembers from settlement to settlement."""

    trend: float  # past moves in usual moves, fading
    slow: float
    quick: float
    usual_square: float
    settled_at: float


@inlined
def first_funding(p: Any, base: np.uint64) -> FundingState:
    """Return the state before the first settlement."""
    keep = np.exp(-1.0 / p.funding_price_memory_periods)
    trend = normal(base, 0) / np.sqrt(1.0 - keep * keep)
    usual_square = np.exp(2.0 * p.volatility_level) * PERIOD_MIN / p.dt_min
    return FundingState(trend, normal(base, 1), normal(base, 2), usual_square, p.start_price)


@inlined
def settle(p: Any, base: np.uint64, state: FundingState, price: float) -> FundingState:
    """Return the state after a settlement at the given price."""
    moved = np.log(price / state.settled_at)
    usual = _VARIANCE_MEMORY * state.usual_square + (1.0 - _VARIANCE_MEMORY) * moved * moved
    keep = np.exp(-1.0 / p.funding_price_memory_periods)
    slow = np.exp(-1.0 / p.funding_slow_periods)
    quick = np.exp(-1.0 / p.funding_quick_periods)
    return FundingState(
        keep * state.trend + moved / np.sqrt(usual),
        slow * state.slow + np.sqrt(1.0 - slow * slow) * normal(base, 0),
        quick * state.quick + np.sqrt(1.0 - quick * quick) * normal(base, 1),
        usual,
        price,
    )


@inlined
def funding_rank(p: Any, base: np.uint64, state: FundingState) -> float:
    """Return where the next rate stands in the distribution of rates, from 0 to 1."""
    keep = np.exp(-1.0 / p.funding_price_memory_periods)
    known = p.funding_price_share + p.funding_slow_share + p.funding_quick_share
    score = (
        np.sqrt(p.funding_price_share * (1.0 - keep * keep)) * state.trend
        + np.sqrt(p.funding_slow_share) * state.slow
        + np.sqrt(p.funding_quick_share) * state.quick
        + np.sqrt(max(0.0, 1.0 - known)) * normal(base, 2)
    )
    return 0.5 * erfc(-score / np.sqrt(2.0))
