"""The whole series at once for several instruments in one account."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import VenueError
from agent_gym.core.types import FloatArray
from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.kernel.floor import FILLED, ORDER, TARGET, TRADE
from agent_gym.exchange.venue import AccountView, Venue
from agent_gym.markets.bars import Bars


@dataclass(frozen=True, slots=True, eq=False)
class PortfolioResult:
    """What a run over several instruments left; columns of ``positions`` follow ``symbols``."""

    symbols: tuple[str, ...]
    equity: FloatArray
    cash: FloatArray
    positions: FloatArray
    trades: NDArray[Any]
    account: AccountView


def run_portfolio(
    markets: Sequence[Bars],
    targets: FloatArray,
    costs: Costs | None = None,
    rules: AccountRules | None = None,
) -> PortfolioResult:
    """Trade target fractions of equity, one column an instrument, out of one account.

    ``targets[t]`` is decided at close t and arrives at open t + 1, as in ``run_series``.
    Instruments are served in the given order; margin is shared.
    """
    venue = Venue(markets, costs, rules)
    n, n_m = len(venue), len(venue.symbols)
    wish = np.ascontiguousarray(targets, dtype=np.float64)
    if wish.shape != (n, n_m):
        raise VenueError("targets do not fit the markets", found=wish.shape, expected=(n, n_m))
    if not np.isfinite(wish).all():
        row = int(np.argmax(~np.isfinite(wish).all(axis=1)))
        raise VenueError("a target is not a finite number", where=f"row {row + 1}")
    depth = venue.costs.latency_bars + 2
    slots = np.zeros(n_m * depth, dtype=ORDER)
    slots["kind"], slots["status"] = TARGET, FILLED
    slots["instrument"] = np.repeat(np.arange(n_m), depth)
    room = n * n_m * 3  # a trade and two liquidations for each instrument and bar
    curves, log = np.zeros((n, 2 + n_m)), np.empty(room, dtype=TRADE)
    count = venue.play_targets(wish, slots, curves, log)
    return PortfolioResult(
        venue.symbols,
        curves[:, 0].copy(),
        curves[:, 1].copy(),
        curves[:, 2:].copy(),
        log[:count].copy(),
        venue.account(),
    )
