"""A spot floor: the order venue as an exchange shows it, with answers at once.

Between two bars the market stands still at the open of the next one. An order that trades there is
filled when it is sent; what the rest of the bar brings is told when the bar is over. The money is
moved by the venue alone, when the bar is applied: a floor only tells earlier what the venue will do
(``Venue.opened``), and checks afterwards that it did.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_gym.core.errors import ConfigError
from agent_gym.core.types import Nanos
from agent_gym.exchange.costs import BPS, AccountRules, Costs
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.quotes import standing_price
from agent_gym.exchange.reserved import reserved
from agent_gym.exchange.spot_records import (
    Balance,
    Change,
    Fill,
    Mark,
    Refusal,
    Refused,
    Ticket,
    TicketStatus,
    Wish,
)
from agent_gym.exchange.venue import Trade, Venue
from agent_gym.markets.bars import Bars

log = logging.getLogger(__name__)
ROUNDING = 1e-9
_REFUSALS = {
    DropReason.UNAFFORDABLE: Refusal.BALANCE,
    DropReason.NO_SHORTS: Refusal.BALANCE,
    DropReason.NOTHING_TO_REDUCE: Refusal.BALANCE,
    DropReason.TOO_SMALL: Refusal.TOO_SMALL,
    DropReason.WOULD_TAKE: Refusal.WOULD_TAKE,
}


class SpotFloor:
    """Accounts that trade spot, for cash, on one venue.

    Args:
        markets: The bars of each instrument, all in the same quote and over the same times.
        costs: What trading costs; orders have no latency here.
        cash: What each account begins with.
        accounts: Their names.
        history: Bars that are past when the session begins.
    """

    def __init__(
        self,
        markets: Sequence[Bars],
        costs: Costs,
        cash: float,
        accounts: Sequence[str],
        history: int = 1,
    ) -> None:
        _check(markets, costs, history)
        rules = AccountRules(cash=cash, max_leverage=1.0, allow_short=False)
        self.venue = Venue(markets, costs, rules, accounts)
        for _ in range(history - 1):
            self.venue.advance()
        self.first = self.venue.t
        self.tickets: dict[int, Ticket] = {}
        self.fills: list[Fill] = []
        self.marks: dict[str, list[Mark]] = {name: [] for name in accounts}
        self.revised = 0
        self._closed = False
        self._live: dict[int, Ticket] = {}
        self._late: list[int] = []
        self._mark()
        self._view, self._told = self._opened()

    @property
    def opened_ns(self) -> Nanos:
        """Return the time at which the present bar opened, which is where the last one closed."""
        return self.venue.now

    @property
    def finished(self) -> bool:
        """Say whether the last bar is over, or the floor was closed before."""
        return self._closed or self.venue.finished

    def close(self) -> None:
        """Take no more orders."""
        self._closed = True

    def balances(self, account: str) -> dict[str, Balance]:
        """Return what an account owns, by asset."""
        seen = self._view.account(account)
        venue = self.venue
        quote = venue.instrument(venue.symbols[0]).quote
        owned = {quote: seen.cash}
        for symbol, units in seen.positions.items():
            owned[venue.instrument(symbol).base] = units
        held = reserved(self._view, account, without=self._late)
        return {
            asset: Balance(max(0.0, total - held.get(asset, 0.0)), held.get(asset, 0.0))
            for asset, total in owned.items()
        }

    def exposures(self, account: str) -> tuple[float, ...]:
        """Return what an account holds of each instrument at this open, as shares of its equity."""
        seen, venue = self._view.account(account), self.venue
        prices = [standing_price(venue, symbol) for symbol in venue.symbols]
        worth = [
            seen.positions[name] * price for name, price in zip(venue.symbols, prices, strict=True)
        ]
        equity = seen.cash + sum(worth)
        return tuple(each / equity if equity > 0.0 else 0.0 for each in worth)

    def ticket(self, account: str, number: int) -> Ticket | None:
        """Return an order of this account; None if it has no such order."""
        found = self.tickets.get(number)
        return found if found is not None and found.account == account else None

    def open_tickets(self, account: str) -> list[Ticket]:
        """Return the orders of an account that can still trade, oldest first."""
        return [ticket for ticket in self._live.values() if ticket.account == account]

    def check(self, account: str, wish: Wish) -> None:
        """Raise Refused or VenueError if an order would not be taken now; nothing is placed."""
        self._try(account, wish)

    def price(self, symbol: str) -> float:
        """Return the price of this moment."""
        return standing_price(self.venue, symbol)

    def units_for(self, account: str, symbol: str, cost: float, *, buys: bool) -> float:
        """Return how many units trade for an amount of money at once; a buyer's fee is paid of it.

        What a large order pays depends on its size, so the size is found in two rounds. Where
        nothing would trade it is what the price of this moment gives.
        """
        fee = self.venue.costs.taker_bps * BPS if buys else 0.0
        units = cost / (self.price(symbol) * (1.0 + fee))
        for _ in range(2):
            paid = self._average_price(account, symbol, units if buys else -units)
            if paid is None:
                break
            units = cost / (paid * (1.0 + fee))
        return units

    def _average_price(self, account: str, symbol: str, qty: float) -> float | None:
        """Return what a market order would pay a unit, None if it would not trade."""
        if self.finished:
            return None
        trial, lot = self.venue.fork(), self.venue.instrument(symbol).lot
        whole = math.trunc(qty / lot * (1.0 + ROUNDING)) * lot if lot else qty
        if not whole:
            return None
        number = trial.submit(Order(symbol, OrderKind.MARKET, whole), account)
        return trial.opened()[0].order(number).average_price

    def place(self, account: str, wish: Wish, now_ns: int) -> tuple[Ticket, list[Change]]:
        """Take an order; it comes back with what has become of it at once.

        Raises:
            Refused: The exchange does not take it.
            VenueError: It does not fit the instrument.
        """
        order, view, trades, wanted = self._try(account, wish)
        number = self.venue.submit(order, account)
        ticket = Ticket(number, account, wish, now_ns, now_ns)
        self.tickets[number] = self._live[number] = ticket
        changes = [self._change(ticket, "new")]
        if wanted:
            fresh = list((Counter(trades) - Counter(self._told)).elements())
            self._view, self._told = view, trades
            changes += self._tell(fresh, now_ns)
        else:  # all at once or nothing, and it would be nothing
            self.venue.cancel(number)
            self._view, self._told = self._opened()
            changes += self._end(ticket, TicketStatus.EXPIRED, now_ns)
        return ticket, changes + self._settle(now_ns)

    def cancel(self, account: str, number: int, now_ns: int) -> tuple[Ticket, list[Change]]:
        """Take an order back.

        Raises:
            Refused: There is no such open order.
        """
        ticket = self._live.get(number)
        if ticket is None or ticket.account != account:
            raise Refused(Refusal.UNKNOWN, f"order {number}")
        if any(trade.order == number for trade in self._told):
            # Part of it trades at this open: only what is left can be taken back. The bar has
            # no volume left for it, so nothing of that trades before the cancel acts.
            self._late.append(number)
        else:
            self.venue.cancel(number)
            self._view, self._told = self._opened()
        return ticket, self._end(ticket, TicketStatus.CANCELLED, now_ns)

    def advance(self) -> list[Change]:
        """Let the present bar pass, and return what it brought, up to the next open."""
        trades = self.venue.advance()
        now_ns = self.opened_ns
        wrong = Counter(self._told) - Counter(trades)
        if wrong:
            self._revise(wrong.elements())
        fresh = list((Counter(trades) - Counter(self._told)).elements())
        self._view, self._told = self.venue, []
        changes = self._tell(fresh, now_ns) + self._settle(now_ns)
        for number in self._late:
            self.venue.cancel(number)
        self._late.clear()
        self._mark()
        self._view, self._told = self._opened()
        return changes + self._tell(self._told, now_ns) + self._settle(now_ns)

    # How it is done.

    def _try(self, account: str, wish: Wish) -> tuple[Order, Venue, list[Trade], bool]:
        """Play an order on a fork up to the open; returns what came of it, and if it stands."""
        if self.finished:
            raise Refused(Refusal.CLOSED, wish.symbol)
        order = _order(wish)
        trial = self.venue.fork()
        number = trial.submit(order, account)
        self._check_funds(account, wish)
        view, trades = trial.opened()
        placed = view.order(number)
        whole = _is_whole(placed)
        if placed.reason in _REFUSALS and not whole:
            raise Refused(_REFUSALS[placed.reason], wish.symbol)
        if wish.kind is OrderKind.STOP and placed.filled:
            raise Refused(Refusal.TRIGGERS, wish.symbol)
        if wish.validity == "fok" and not whole:
            return order, view, trades, False
        if wish.kind is OrderKind.MARKET and not placed.filled:
            raise Refused(Refusal.NO_LIQUIDITY, wish.symbol)
        if wish.validity == "ioc" and not placed.filled:
            return order, view, trades, False
        self._check_balance(view, account, wish)
        return order, view, trades, True

    def _check_funds(self, account: str, wish: Wish) -> None:
        """Refuse what an account could not pay or deliver even at its own price."""
        instrument = self.venue.instrument(wish.symbol)
        buys = wish.qty > 0.0
        needed = abs(wish.qty) * (wish.price or 0.0) if buys else abs(wish.qty)
        asset = instrument.quote if buys else instrument.base
        free = self.balances(account)[asset].free
        if needed - free > ROUNDING * max(1.0, needed):
            raise Refused(Refusal.BALANCE, f"{wish.symbol}, {asset}")

    def _check_balance(self, view: Venue, account: str, wish: Wish) -> None:
        seen, held = view.account(account), reserved(view, account, without=self._late)
        instrument = view.instrument(wish.symbol)
        owned = {instrument.quote: seen.cash, instrument.base: seen.positions[wish.symbol]}
        for asset, total in owned.items():
            needed = held.get(asset, 0.0)
            if needed - total > ROUNDING * max(1.0, needed):
                raise Refused(Refusal.BALANCE, f"{wish.symbol}, {asset}")

    def _opened(self) -> tuple[Venue, list[Trade]]:
        """Return the venue at this open; without open orders nothing trades there."""
        still = self.finished or not self._live
        return (self.venue, []) if still else self.venue.opened()

    def _tell(self, trades: Iterable[Trade], now_ns: int) -> list[Change]:
        """Write trades into their tickets."""
        bars = self.venue.tape(self.venue.symbols[0]).bars
        changes = []
        for trade in trades:
            ticket = self.tickets[trade.order]
            fill = Fill(
                id=len(self.fills) + 1,
                order=trade.order,
                account=trade.account,
                symbol=trade.symbol,
                ts=now_ns,
                bar=int(bars.ts.searchsorted(trade.ts)),
                qty=trade.qty,
                price=trade.price,
                fee=trade.fee,
                maker=trade.maker,
            )
            self.fills.append(fill)
            ticket.fills.append(fill)
            ticket.updated_ns = now_ns
            if ticket.status.live:
                done = _is_whole(self._view.order(ticket.id))
                ticket.status = TicketStatus.FILLED if done else TicketStatus.PARTIAL
            changes.append(replace(self._change(ticket, "trade"), fill=fill))
        return changes

    def _settle(self, now_ns: int) -> list[Change]:
        """Take the orders that are done off the open ones."""
        changes = []
        for ticket in list(self._live.values()):
            placed = self._view.order(ticket.id)
            if placed.status is OrderStatus.OPEN:
                continue
            if _is_whole(placed):
                ticket.status = TicketStatus.FILLED
                del self._live[ticket.id]
            else:
                changes += self._end(ticket, TicketStatus.EXPIRED, now_ns)
        return changes

    def _end(self, ticket: Ticket, status: TicketStatus, now_ns: int) -> list[Change]:
        ticket.status, ticket.updated_ns = status, now_ns
        self._live.pop(ticket.id, None)
        return [self._change(ticket, "expired" if status is TicketStatus.EXPIRED else "cancelled")]

    def _change(self, ticket: Ticket, what: str) -> Change:
        return Change(ticket, what, ticket.status, ticket.filled, ticket.worth)  # type: ignore[arg-type]

    def _revise(self, wrong: Iterable[Trade]) -> None:
        """Take back fills that were told and did not happen; the venue's own are told instead."""
        for trade in wrong:
            ticket = self.tickets[trade.order]
            log.warning("order %d did not trade as it was told at the open", ticket.id)
            self.revised += 1
            for fill in ticket.fills:
                if (fill.qty, fill.price, fill.fee) == (trade.qty, trade.price, trade.fee):
                    ticket.fills.remove(fill)
                    self.fills.remove(fill)
                    break

    def _mark(self) -> None:
        for name, marks in self.marks.items():
            seen = self.venue.account(name)
            held = tuple(seen.positions[symbol] for symbol in self.venue.symbols)
            marks.append(Mark(self.venue.t, seen.equity, seen.cash, held))


def _is_whole(placed: Placed) -> bool:
    """Say whether all of an order has traded; sums of sizes are not exact."""
    whole = placed.filled >= abs(placed.order.qty) * (1.0 - ROUNDING)
    return placed.status is OrderStatus.FILLED or whole


def _order(wish: Wish) -> Order:
    return Order(
        wish.symbol,
        wish.kind,
        wish.qty,
        wish.price,
        post_only=wish.post_only,
        immediate=wish.kind is OrderKind.MARKET or wish.validity != "gtc",
    )


def _check(markets: Sequence[Bars], costs: Costs, history: int) -> None:
    if costs.latency_bars:
        raise ConfigError("a spot floor answers at once", where="latency_bars", expected=0)
    for bars in markets:
        kind = bars.instrument.kind
        if kind != "spot":
            raise ConfigError("this floor trades spot", where=bars.instrument.symbol, found=kind)
    quotes = {bars.instrument.quote for bars in markets}
    if len(quotes) > 1:
        raise ConfigError("the instruments are paid in different money", found=sorted(quotes))
    if markets and len(markets[0]) < history + 1:
        raise ConfigError(
            "the series is over before the session begins",
            found=f"{len(markets[0]):,} bars",
            expected=f"{history:,} of history and one to trade in, or more",
            remedy="Take a longer series or less history",
        )
