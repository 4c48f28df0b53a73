"""The order venue: accounts, instruments and resting orders, stepped bar by bar.

This is the venue that a trading desk or an exchange server talks to. It runs on the same kernel
parts as the target doors, so one account with target orders on one instrument gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.core.kernels import direct
from agent_gym.core.registry import unknown
from agent_gym.core.types import Nanos
from agent_gym.exchange.costs import AccountRules, Costs, make_terms
from agent_gym.exchange.kernel import venue as kernel
from agent_gym.exchange.kernel.floor import FLOOR, HOLDING, PURSE, TRADE
from agent_gym.exchange.kernel.layout import BAR_CLOSE, BAR_HIGH, BAR_LOW, BAR_OPEN
from agent_gym.exchange.order_ledger import OrderLedger, Placed
from agent_gym.exchange.orders import Order, check_order
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument

_step = direct(kernel.step)
_FIELDS = {name: i for i, name in enumerate(FLOOR.names or ())}  # all of them int64
_N_LIVE, _TOUCH, _PHASES = _FIELDS["n_orders"], _FIELDS["touch"], _FIELDS["phases"]
ALL_PHASES = 4


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
class AccountView:
    """An account at the last close; equity = cash + sum of position x close.

    ``turnover`` is the worth of all its trades, liquidations included.
    """

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
        self._account_rows = {name: i for i, name in enumerate(self.accounts)}
        self._instrument_rows = {name: m for m, name in enumerate(self.symbols)}
        self._terms = np.stack(
            [make_terms(self.costs, self.rules, tape.bars.instrument) for tape in self._tapes]
        )
        self._purses: NDArray[Any] = np.zeros(n_a, dtype=PURSE)
        self._purses["cash"] = self._purses["eq"] = self.rules.cash
        self._holdings: NDArray[Any] = np.zeros((n_a, n_m), dtype=HOLDING)
        self._ledger = OrderLedger()
        self._log: NDArray[Any] = np.empty(0, dtype=TRADE)
        self._n_live = 0
        self.t = 0
        self._moor()

    def __len__(self) -> int:
        return len(self._tapes[0])

    @property
    def period_ns(self) -> int:
        """Return how long a bar lasts."""
        return self._tapes[0].bars.period_ns

    @property
    def now(self) -> Nanos:
        """Return the close time of the last bar that was applied."""
        return Nanos(int(self._tapes[0].bars.ts[self.t]) + self.period_ns)

    @property
    def finished(self) -> bool:
        """Say whether the last bar has been applied."""
        return self.t >= len(self) - 1

    def submit(self, order: Order, account: str = "main") -> int:
        """Place an order; it can trade in the next bar at the earliest. Returns its number."""
        if not isinstance(order, Order):
            raise VenueError(
                "what was sent is no order",
                where="submit",
                found=repr(order),
                expected="an agent_gym.exchange.orders.Order",
            )
        i, m = self._account(account), self._instrument(order.symbol)
        check_order(order, self._tapes[m].bars.instrument)
        if order.group > 0:
            self._check_group(order, i, m)
        ledger, room = self._ledger, len(self._ledger.records)
        number = ledger.add(order, i, m, self._arrival)
        ledger.live[self._n_live] = number - 1
        self._n_live += 1
        if len(ledger.records) != room:
            self._moor()
        return number

    def cancel(self, number: int) -> bool:
        """Ask for an order back; says whether it was still open.

        The request takes as long as an order does: it acts at the open of the bar that an order
        sent now would arrive in, before anything trades there. What fills until then is filled, so
        look at ``order(number)`` afterwards. ``Placed.cancel_bar`` says when it acts.
        """
        record = self._ledger.record(number)
        if record["status"] != 0:
            return False
        if record["cancels"] == 0:
            record["cancels"] = self._arrival
        return True

    def advance(self, *, _phases: int = ALL_PHASES) -> list[Trade]:
        """Apply the next bar and return the trades it made, in order."""
        if self.finished:
            raise VenueError(
                "the series is at its end", where=f"bar {self.t}", expected=f"{len(self)} bars"
            )
        self.t += 1
        if len(self._log) < 4 * self._n_live + 2 * self._holdings.size:
            self._log = np.empty(8 * self._n_live + 2 * self._holdings.size, dtype=TRADE)
            self._moor()
        floor = self._floor
        floor[_N_LIVE], floor[_TOUCH] = self._n_live, int(self.costs.limit_on_touch)
        floor[_PHASES] = _phases
        count = _step(self._floor_at, self.t)
        self._n_live = int(floor[_N_LIVE])
        return [self._trade(row) for row in self._log[:count].tolist()] if count else []

    def fork(self) -> Venue:
        """Return a venue that goes on from here by itself; the bars are shared."""
        other = copy(self)
        other._purses, other._holdings = self._purses.copy(), self._holdings.copy()
        other._ledger = self._ledger.fork()
        other._log = np.empty(0, dtype=TRADE)
        other._moor()
        return other

    def opened(self) -> tuple[Venue, list[Trade]]:
        """Return a fork at the open of the next bar, and what trades there.

        It has played the open alone, of a bar that stands still there, so nothing of what the rest
        of the bar brings is in it. What trades at the open does not depend on orders that come
        later, so it stays true when the whole bar is applied.
        """
        fork = self.fork()
        rows = [tape.rows[self.t + 1] for tape in self._tapes if not self.finished]
        kept = [row.copy() for row in rows]
        try:
            for row in rows:
                row[[BAR_HIGH, BAR_LOW, BAR_CLOSE]] = row[BAR_OPEN]
            return fork, fork.advance(_phases=1)
        finally:
            for row, before in zip(rows, kept, strict=True):
                row[:] = before

    def play_targets(
        self,
        targets: NDArray[Any],
        slots: NDArray[Any],
        curves: NDArray[Any],
        log: NDArray[Any],
    ) -> int:
        """Play the first account through all bars by targets, for ``run_portfolio``."""
        scratch = np.zeros(4 * len(slots) + 2 * self._holdings.size, dtype=TRADE)
        live = np.arange(len(slots))
        due = np.zeros_like(live)
        floor = self._floor.copy()  # held by a name: the kernel reads it by its address
        for name, memory in {"orders": slots, "live": live, "due": due, "trades": scratch}.items():
            floor[_FIELDS[name]] = memory.ctypes.data
        floor[_N_LIVE] = floor[_FIELDS["n_records"]] = len(slots)
        count = kernel.run_targets(
            floor.ctypes.data,
            targets.ctypes.data,
            self.costs.latency_bars,
            curves.ctypes.data,
            log.ctypes.data,
            len(log),
        )
        self.t = len(self) - 1
        return count

    def order(self, number: int) -> Placed:
        """Return an order and what became of it."""
        return self._ledger.placed(number, self.accounts)

    def open_orders(self, account: str = "main") -> list[Placed]:
        """Return the orders of an account that can still trade."""
        i, ledger = self._account(account), self._ledger
        live = ledger.live[: self._n_live]
        mine = live[ledger.records["account"][live] == i]
        return [self.order(int(row) + 1) for row in mine]

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up a copy's state: its memory lies elsewhere."""
        self.__dict__.update(state)
        self._moor()

    @property
    def _arrival(self) -> int:
        """Return the bar that a request sent now arrives in."""
        return self.t + 1 + self.costs.latency_bars

    def _moor(self) -> None:
        """Tell the kernel where everything lies; due whenever an array has moved."""
        ledger = self._ledger
        self._rows = np.array([tape.rows.ctypes.data for tape in self._tapes], dtype=np.int64)
        margin = any(self.rules.on_margin(tape.bars.instrument) for tape in self._tapes)
        values = {
            "rows": self._rows.ctypes.data,
            "terms": self._terms.ctypes.data,
            "purses": self._purses.ctypes.data,
            "holdings": self._holdings.ctypes.data,
            "orders": ledger.records.ctypes.data,
            "live": ledger.live.ctypes.data,
            "due": ledger.due.ctypes.data,
            "trades": self._log.ctypes.data,
            "n_bars": len(self),
            "n_instruments": len(self._tapes),
            "n_accounts": len(self.accounts),
            "n_orders": self._n_live,
            "n_records": len(ledger.records),
            "touch": int(self.costs.limit_on_touch),
            "margin": int(margin),
            "phases": ALL_PHASES,
        }
        self._floor = np.array([values[name] for name in _FIELDS], dtype=np.int64)
        self._floor_at = self._floor.ctypes.data

    def _trade(self, row: tuple[Any, ...]) -> Trade:
        order, bar, account, instrument, maker, forced, qty, price, fee = row
        return Trade(
            order=order,
            account=self.accounts[account],
            symbol=self.symbols[instrument],
            ts=Nanos(int(self._tapes[0].bars.ts[bar])),
            qty=qty,
            price=price,
            fee=fee,
            maker=maker,
            forced=forced,
        )

    def tape(self, symbol: str) -> Tape:
        """Return the bars of an instrument as the kernel reads them."""
        return self._tapes[self._instrument(symbol)]

    def terms(self, symbol: str) -> NDArray[np.float64]:
        """Return what trading an instrument costs, as the kernel reads it."""
        row: NDArray[np.float64] = self._terms[self._instrument(symbol)]
        return row

    def instrument(self, symbol: str) -> Instrument:
        """Return an instrument of the venue by its name."""
        return self._tapes[self._instrument(symbol)].bars.instrument

    def _check_group(self, order: Order, account: int, instrument: int) -> None:
        """Refuse a group over two instruments: their units cannot be taken off one another."""
        records, live = self._ledger.records, self._ledger.live[: self._n_live]
        mates = live[
            (records["group"][live] == order.group) & (records["account"][live] == account)
        ]
        if mates.size and records["instrument"][mates[0]] != instrument:
            raise VenueError(
                "the orders of a group must be for one instrument",
                where=order.symbol,
                found=f"group {order.group}",
                expected=f"an order for {self.symbols[records['instrument'][mates[0]]]}",
                remedy="Give the order a group number of its own",
            )

    def _account(self, name: str) -> int:
        row = self._account_rows.get(name) if isinstance(name, str) else None
        if row is None:
            raise unknown("account", str(name), self.accounts)
        return row

    def _instrument(self, symbol: str) -> int:
        row = self._instrument_rows.get(symbol) if isinstance(symbol, str) else None
        if row is None:
            raise unknown("instrument", str(symbol), self.symbols)
        return row


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
