"""The perpetuals of a snapshot on the order venue: one account, cross margin, real costs."""

from __future__ import annotations

import numpy as np

from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.exchange.costs import AccountRules
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Trade, Venue
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.snapshot.reaction import funding_rates, funding_ticks
from agent_gym.markets.snapshot.types import Snapshot

ACCOUNT = "trader"


class PerpetualDesk:
    """Orders of one player in all perpetuals; they fill at the next tick's open, the last close."""

    def __init__(self, snapshot: Snapshot, config: BenchmarkWorldConfig, cash: float) -> None:
        self._bars = perpetual_bars(snapshot)
        self.symbols = tuple(bars.instrument.symbol for bars in self._bars)
        self._costs = config.costs
        self._rules = AccountRules(
            cash=cash,
            max_leverage=config.max_leverage,
            maintenance_margin=config.maintenance_margin,
        )
        self.reset()

    def reset(self) -> None:
        """Open the account anew, at tick 0."""
        self._venue = Venue(self._bars, self._costs, self._rules, (ACCOUNT,))
        self.account = self._venue.account(ACCOUNT)
        self.waiting: dict[int, int] = {}

    def target(self, place: int, qty: float) -> None:
        """Ask for a position in units; replaces what was asked before."""
        order = Order(self.symbols[place], OrderKind.TARGET, qty)
        self.waiting[place] = self._venue.submit(order, ACCOUNT)

    def trade(self, place: int, qty: float, *, reduce_only: bool = False) -> None:
        """Ask to buy units, or to sell them if negative."""
        order = Order(
            self.symbols[place], OrderKind.MARKET, qty, reduce_only=reduce_only, immediate=True
        )
        self.waiting[place] = self._venue.submit(order, ACCOUNT)

    def position(self, place: int) -> float:
        """Return the units held."""
        return self.account.positions[self.symbols[place]]

    def average_price(self, place: int) -> float:
        """Return what a unit of the position cost."""
        return self.account.average_prices[self.symbols[place]]

    def advance(self) -> list[Trade]:
        """Apply the next tick; funding, fills, margin calls."""
        trades = self._venue.advance()
        self.account = self._venue.account(ACCOUNT)
        self.waiting.clear()
        return trades


def perpetual_bars(snapshot: Snapshot) -> list[Bars]:
    """Return each perpetual as bars that open where the last one closed; bar t ends at tick t."""
    columns, config = snapshot.columns, snapshot.config
    closes = snapshot.closes
    rates, every = funding_rates(config, closes), funding_ticks(config)
    rows = np.arange(len(closes))
    due = (rows > 1) & ((rows - 1) % every == 0)
    ts = config.start_ns + (rows - 1) * snapshot.tick_ns
    made = []
    for m, market in enumerate(snapshot.perpetuals):
        close = closes[:, m]
        opened = np.concatenate([close[:1], close[:-1]])
        step = market.price_step
        rate = np.where(due, np.concatenate([rates[:1, m], rates[:-1, m]]), 0.0)
        made.append(
            Bars(
                Instrument(symbol=f"{market.ticker}/USD", exchange="benchmark", kind="perpetual"),
                snapshot.tick_ns,
                ts,
                opened,
                np.maximum(opened, close) + columns.up[:, m] * step,
                np.minimum(opened, close) - columns.down[:, m] * step,
                close,
                columns.volume[:, m].astype(np.float64),
                {"funding": rate},
            )
        )
    return made
