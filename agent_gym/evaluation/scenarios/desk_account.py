"""The account and the market as the desk sees them while signals come in."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import NamedTuple

from agent_gym.agents.desk.view import DeskView, Holdings, Quote
from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.scenarios.counterparties import Execution
from agent_gym.evaluation.scenarios.desk_market import START_NS, seconds

TAIL_Z = 2.326  # one of a hundred
DAY_OF_HOURS = math.sqrt(24.0)


class Conditions(NamedTuple):
    """What is the same for every symbol and minute."""

    spread_bp: float
    volume_per_hour: float
    volatility: float


class DeskAccount:
    """Holds what was traded, from the moment it was known, and gives the desk its view.

    A desk with several hands works on signals at the same time: what one of them trades becomes
    known when its answer is there, not when the next signal happens to be looked at.
    """

    def __init__(
        self, prices: Mapping[str, FloatArray], conditions: Conditions, equity: float
    ) -> None:
        self.peak = self.cash = equity
        self.positions = dict.fromkeys(prices, 0.0)
        self.conditions = conditions
        self._prices: dict[str, list[float]] = {
            symbol: price.tolist() for symbol, price in prices.items()
        }
        self._pending: list[tuple[int, int, Execution]] = []
        self._count = 0

    def price(self, symbol: str, time_ns: int) -> float:
        """Return the mid of a symbol."""
        prices = self._prices[symbol]
        return prices[min((time_ns - START_NS) // MINUTE_NS, len(prices) - 1)]

    def touch(self, symbol: str, quantity: float, time_ns: int) -> float:
        """Return what a taker pays or gets."""
        half = 0.5e-4 * self.conditions.spread_bp
        return self.price(symbol, time_ns) * (1.0 + half if quantity > 0.0 else 1.0 - half)

    def expect(self, execution: Execution, known_ns: int) -> None:
        """Take in a trade that becomes known at a time to come."""
        self._count += 1
        heapq.heappush(self._pending, (known_ns, self._count, execution))

    def view(self, time_ns: int) -> DeskView:
        """Return all that is known at a time; times may not go back."""
        while self._pending and self._pending[0][0] <= time_ns:
            done = heapq.heappop(self._pending)[2]
            self.positions[done.symbol] += done.quantity
            self.cash -= done.quantity * done.price
        mids = {symbol: self.price(symbol, time_ns) for symbol in self.positions}
        worths = {symbol: held * mids[symbol] for symbol, held in self.positions.items()}
        equity = self.cash + sum(worths.values())
        self.peak = max(self.peak, equity)
        now, (spread_bp, volume, volatility) = seconds(time_ns), self.conditions
        half = 0.5e-4 * spread_bp
        quotes = {
            symbol: Quote(now, mid * (1.0 - half), mid * (1.0 + half), volume, volatility)
            for symbol, mid in mids.items()
        }
        day = volatility * DAY_OF_HOURS
        at_risk = TAIL_Z * day * math.sqrt(sum(worth * worth for worth in worths.values()))
        holdings = Holdings(
            equity=equity,
            cash=self.cash,
            positions=dict(self.positions),
            exposure=sum(map(abs, worths.values())) / equity,
            drawdown=1.0 - equity / self.peak,
            value_at_risk=at_risk / equity,
        )
        return DeskView(now, quotes, holdings)
