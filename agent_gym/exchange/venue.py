"""The order venue: accounts, instruments and resting orders, stepped bar by bar.

This is the venue that a trading desk or an exchange server talks to. It runs on the same kernel
parts as the target doors, so one account with target orders on one instrument gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.core.registry import unknown
from agent_gym.core.types import Nanos
from agent_gym.exchange.costs import AccountRules, Costs, make_terms
from agent_gym.exchange.kernel import venue as kernel
from agent_gym.exchange.kernel.floor import FLOOR, HOLDING, ORDER, PURSE, TRADE
from agent_gym.exchange.orders import Order, OrderStatus, check_order
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import Bars

STATUSES = tuple(OrderStatus)


@dataclass(frozen=True, slots=True)
class Trade:
    """One fill; ``order`` is 0 for a liquidation."""

    order: int
    account: str
    symbol: str
    ts: Nanos
    qty: float
    price: float
    fee: float
    maker: bool
    forced: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """An order in the venue and what became of it."""

    id: int
    account: str
    order: Order
    status: OrderStatus
    filled: float
    average_price: float | None
    fee: float


@dataclass(frozen=True, slots=True)
class AccountView:
    """An account at the last close; equity = cash + sum of position x close."""

    cash: float
    equity: float
    realised: float
    fees: float
    slippage: float
    funding: float
    insurance: float
    turnover: float
    positions: Mapping[str, float]
    average_prices: Mapping[str, float]


class Venue:
    """Several instruments on one time line, any number of accounts, any number of orders.

    Args:
        markets: The bars of each instrument; all must cover the same times.
        costs: What trading costs.
        rules: What an account starts with and how far it may go.
        accounts: Names of the accounts to open.
    """

    def __init__(
        self,
        markets: Sequence[Bars],
        costs: Costs | None = None,
        rules: AccountRules | None = None,
        accounts: Sequence[str] = ("main",),
    ) -> None:
        self.costs, self.rules = costs or Costs(), rules or AccountRules()
        self._tapes = _align(markets, self.costs)
        self.symbols = tuple(tape.bars.instrument.symbol for tape in self._tapes)
        self.accounts = tuple(accounts)
        if len(set(self.symbols)) != len(self.symbols) or len(set(accounts)) != len(accounts):
            raise ConfigError("two instruments or two accounts have the same name")
        if not accounts:
            raise ConfigError("a venue needs at least one account")
        n_a, n_m = len(self.accounts), len(self._tapes)
        self._rows = np.array([tape.rows.ctypes.data for tape in self._tapes], dtype=np.int64)
        self._terms = np.stack(
            [make_terms(self.costs, self.rules, tape.bars.instrument) for tape in self._tapes]
        )
        self._purses: NDArray[Any] = np.zeros(n_a, dtype=PURSE)
        self._purses["cash"] = self._purses["eq"] = self.rules.cash
        self._holdings: NDArray[Any] = np.zeros((n_a, n_m), dtype=HOLDING)
        self._orders: NDArray[Any] = np.zeros(0, dtype=ORDER)
        self._placed: dict[int, Placed] = {}
        self._next_id = 1
        self.t = 0

    def __len__(self) -> int:
        return len(self._tapes[0])

    @property
    def now(self) -> Nanos:
        """Return the close time of the last bar that was applied."""
        bars = self._tapes[0].bars
        return Nanos(int(bars.ts[self.t]) + bars.period_ns)

    @property
    def finished(self) -> bool:
        """Say whether the last bar has been applied."""
        return self.t >= len(self) - 1

    def submit(self, order: Order, account: str = "main") -> int:
        """Place an order; it can trade in the next bar at the earliest. Returns its number."""
        i, m = self._account(account), self._instrument(order.symbol)
        check_order(order, self._tapes[m].bars.instrument)
        record = np.zeros(1, dtype=ORDER)
        number, self._next_id = self._next_id, self._next_id + 1
        values = {
            "id": number,
            "group": order.group,
            "account": i,
            "instrument": m,
            "kind": order.kind.code,
            "reduce_only": order.reduce_only,
            "post_only": order.post_only,
            "immediate": order.immediate,
            "arrives": self.t + 1 + self.costs.latency_bars,
            "qty": order.qty,
            "price": order.price or 0.0,
        }
        for name, value in values.items():
            record[name] = value
        self._orders = np.concatenate([self._orders, record])
        self._placed[number] = Placed(number, account, order, OrderStatus.OPEN, 0.0, None, 0.0)
        return number

    def cancel(self, number: int) -> bool:
        """Take an order back; says whether it was still open."""
        self.order(number)
        still = self._orders["id"] == number
        if not still.any():
            return False
        self._orders = self._orders[~still]
        self._placed[number] = replace(self._placed[number], status=OrderStatus.CANCELLED)
        return True

    def advance(self) -> list[Trade]:
        """Apply the next bar and return the trades it made, in order."""
        if self.finished:
            raise VenueError(
                "the series is at its end", where=f"bar {self.t}", expected=f"{len(self)} bars"
            )
        self.t += 1
        log = np.zeros(4 * len(self._orders) + 2 * self._holdings.size, dtype=TRADE)
        context = self._context(log)  # held by a name: the kernel reads it by its address
        count = kernel.advance(context.ctypes.data, self.t)
        self._sweep()
        return [self._trade(row) for row in log[:count]]

    def play_targets(
        self,
        targets: NDArray[Any],
        slots: NDArray[Any],
        curves: NDArray[Any],
        log: NDArray[Any],
    ) -> int:
        """Play the first account through all bars by targets, for ``run_portfolio``."""
        self._orders = slots
        scratch = np.zeros(4 * len(slots) + 2 * self._holdings.size, dtype=TRADE)
        context = self._context(scratch)
        count = kernel.run_targets(
            context.ctypes.data,
            targets.ctypes.data,
            self.costs.latency_bars,
            curves.ctypes.data,
            log.ctypes.data,
            len(log),
        )
        self._orders, self.t = slots[:0], len(self) - 1
        return count

    def order(self, number: int) -> Placed:
        """Return an order and what became of it."""
        if number not in self._placed:
            raise VenueError("no such order", found=number)
        return self._placed[number]

    def open_orders(self, account: str = "main") -> list[Placed]:
        """Return the orders of an account that can still trade."""
        mine = self._orders[self._orders["account"] == self._account(account)]
        return [self._placed[int(number)] for number in mine["id"]]

    def account(self, name: str = "main") -> AccountView:
        """Return an account at the last close."""
        i = self._account(name)
        purse, holdings = self._purses[i], self._holdings[i]
        return AccountView(
            cash=float(purse["cash"]),
            equity=float(purse["eq"]),
            realised=float(purse["real"]),
            fees=float(purse["fees"]),
            slippage=float(purse["slip"]),
            funding=float(purse["fund"]),
            insurance=float(purse["ins"]),
            turnover=float(purse["turnover"]),
            positions=dict(zip(self.symbols, holdings["pos"].tolist(), strict=True)),
            average_prices=dict(zip(self.symbols, holdings["avg"].tolist(), strict=True)),
        )

    def _context(self, log: NDArray[Any]) -> NDArray[Any]:
        context = np.zeros(1, dtype=FLOOR)
        margin = any(self.rules.on_margin(tape.bars.instrument) for tape in self._tapes)
        values = {
            "rows": self._rows.ctypes.data,
            "terms": self._terms.ctypes.data,
            "purses": self._purses.ctypes.data,
            "holdings": self._holdings.ctypes.data,
            "orders": self._orders.ctypes.data,
            "trades": log.ctypes.data,
            "n_bars": len(self),
            "n_instruments": len(self._tapes),
            "n_accounts": len(self.accounts),
            "n_orders": len(self._orders),
            "touch": int(self.costs.limit_on_touch),
            "margin": int(margin),
        }
        for name, value in values.items():
            context[name] = value
        return context

    def _sweep(self) -> None:
        """Write back what happened to the orders and drop those that are done."""
        for record in self._orders:
            number, filled = int(record["id"]), float(record["filled"])
            self._placed[number] = replace(
                self._placed[number],
                status=STATUSES[int(record["status"])],
                filled=filled,
                average_price=abs(float(record["paid"])) / filled if filled else None,
                fee=float(record["fee"]),
            )
        self._orders = np.ascontiguousarray(self._orders[self._orders["status"] == 0])

    def _trade(self, row: NDArray[Any]) -> Trade:
        return Trade(
            order=int(row["order"]),
            account=self.accounts[int(row["account"])],
            symbol=self.symbols[int(row["instrument"])],
            ts=Nanos(int(self._tapes[0].bars.ts[int(row["bar"])])),
            qty=float(row["qty"]),
            price=float(row["price"]),
            fee=float(row["fee"]),
            maker=bool(row["maker"]),
            forced=bool(row["forced"]),
        )

    def _account(self, name: str) -> int:
        if name not in self.accounts:
            raise unknown("account", name, self.accounts)
        return self.accounts.index(name)

    def _instrument(self, symbol: str) -> int:
        if symbol not in self.symbols:
            raise unknown("instrument", symbol, self.symbols)
        return self.symbols.index(symbol)


def _align(markets: Sequence[Bars], costs: Costs) -> list[Tape]:
    if not markets:
        raise ConfigError("a venue needs at least one market")
    first = markets[0]
    for bars in markets[1:]:
        if bars.period_ns != first.period_ns or not np.array_equal(bars.ts, first.ts):
            raise ConfigError(
                "the markets of a venue must cover the same times",
                where=bars.instrument.symbol,
                remedy="Cut them with Bars.between and repair gaps alike",
            )
    return [Tape.of(bars, costs) for bars in markets]
