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
from dataclasses import dataclass, replace

from agent_gym.core.types import Nanos
from agent_gym.exchange.costs import BPS, AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind, OrderStatus
from agent_gym.exchange.quotes import standing_price
from agent_gym.exchange.reserved import reserved
from agent_gym.exchange.spot_records import (
    Balance,
    Change,
    Fill,
    Mark,
    Pair,
    Refusal,
    Refused,
    Ticket,
    TicketStatus,
    What,
    Wish,
)
from agent_gym.exchange.spot_trial import ROUNDING, check_markets, is_whole, stands, to_order
from agent_gym.exchange.venue import Trade, Venue
from agent_gym.markets.bars import Bars

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Trial:
    """What came of orders at the open: the venue there, all that traded, and if they stand."""

    view: Venue
    trades: list[Trade]
    stands: bool


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
        check_markets(markets, costs, history)
        rules = AccountRules(cash=cash, max_leverage=1.0, allow_short=False)
        self.venue = Venue(markets, costs, rules, accounts)
        for _ in range(history - 1):
            self.venue.advance()
        self.first = self.venue.t
        self.tickets: dict[int, Ticket] = {}
        self.fills: list[Fill] = []
        self.pairs: dict[int, Pair] = {}
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
        self._try(account, (wish,))

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
        trial = self._try(account, (wish,))
        (ticket,) = tickets = self._take(account, (wish,), now_ns)
        if trial.stands:
            return ticket, self._settled(tickets, trial, now_ns)
        # All at once or nothing, and it would be nothing.
        self.venue.cancel(ticket.id)
        self._view, self._told = self._opened()
        changes = [self._change(ticket, "new"), *self._end(ticket, TicketStatus.EXPIRED, now_ns)]
        return ticket, changes + self._settle(now_ns)

    def place_pair(
        self, account: str, wishes: tuple[Wish, Wish], client_id: str, now_ns: int
    ) -> tuple[Pair, list[Change]]:
        """Take two orders of which one cancels the other, or neither.

        Raises:
            Refused: The exchange does not take one of them.
            VenueError: One does not fit the instrument.
        """
        number = len(self.pairs) + 1
        trial = self._try(account, wishes, number)
        tickets = self._take(account, wishes, now_ns, number)
        pair = Pair(number, account, wishes[0].symbol, client_id, now_ns, tickets)
        self.pairs[number] = pair
        return pair, self._settled(tickets, trial, now_ns)

    def cancel(self, account: str, number: int, now_ns: int) -> tuple[Ticket, list[Change]]:
        """Take an order back, and the other one if it is one of a pair.

        Raises:
            Refused: There is no such open order.
        """
        ticket = self._live.get(number)
        if ticket is None or ticket.account != account:
            raise Refused(Refusal.UNKNOWN, f"order {number}")
        both = (ticket,) if ticket.list_id is None else self.pairs[ticket.list_id].tickets
        for one in both:
            if not one.status.live and not self._trades_now(one):
                # It was told to be over since this open, where the other one was hit. That will
                # not happen now, and it must not come back.
                self.venue.cancel(one.id)
        changes = []
        for one in both:
            if one.status.live:
                changes += self._withdraw(one, now_ns)
        return ticket, changes

    def _trades_now(self, ticket: Ticket) -> bool:
        """Say whether an order trades at this open."""
        return any(trade.order == ticket.id for trade in self._told)

    def _withdraw(self, ticket: Ticket, now_ns: int) -> list[Change]:
        if self._trades_now(ticket):
            # Part of it trades at this open: only what is left can be taken back. The bar has
            # no volume left for it, so nothing of that trades before the cancel acts.
            self._late.append(ticket.id)
        else:
            self.venue.cancel(ticket.id)
            self._view, self._told = self._opened()
        return self._end(ticket, TicketStatus.CANCELLED, now_ns)

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

    def _try(self, account: str, wishes: tuple[Wish, ...], group: int = 0) -> _Trial:
        """Play orders on a fork up to the open, and return what came of it."""
        if self.finished:
            raise Refused(Refusal.CLOSED, wishes[0].symbol)
        fork = self.venue.fork()
        numbers = [fork.submit(to_order(wish, group), account) for wish in wishes]
        self._check_funds(account, wishes)
        view, trades = fork.opened()
        tried = [stands(view.order(n), wish) for n, wish in zip(numbers, wishes, strict=True)]
        if all(tried):
            self._check_balance(view, account, wishes[0])
        return _Trial(view, trades, all(tried))

    def _take(
        self, account: str, wishes: tuple[Wish, ...], now_ns: int, pair: int | None = None
    ) -> tuple[Ticket, ...]:
        """Send orders to the venue."""
        made = []
        for wish in wishes:
            number = self.venue.submit(to_order(wish, pair or 0), account)
            ticket = Ticket(number, account, wish, now_ns, now_ns, list_id=pair)
            self.tickets[number] = self._live[number] = ticket
            made.append(ticket)
        return tuple(made)

    def _settled(self, tickets: Iterable[Ticket], trial: _Trial, now_ns: int) -> list[Change]:
        """Return what became of new orders at once."""
        changes = [self._change(ticket, "new") for ticket in tickets]
        fresh = list((Counter(trial.trades) - Counter(self._told)).elements())
        self._view, self._told = trial.view, trial.trades
        return changes + self._tell(fresh, now_ns) + self._settle(now_ns)

    def _check_funds(self, account: str, wishes: Iterable[Wish]) -> None:
        """Refuse what an account could not pay or deliver even at its own price."""
        free = self.balances(account)
        for wish in wishes:
            instrument = self.venue.instrument(wish.symbol)
            buys = wish.qty > 0.0
            needed = abs(wish.qty) * (wish.price or 0.0) if buys else abs(wish.qty)
            asset = instrument.quote if buys else instrument.base
            if needed - free[asset].free > ROUNDING * max(1.0, needed):
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
        changes = self._hits(now_ns)
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
                done = is_whole(self._view.order(ticket.id))
                ticket.status = TicketStatus.FILLED if done else TicketStatus.PARTIAL
            changes.append(replace(self._change(ticket, "trade"), fill=fill))
        return changes

    def _hits(self, now_ns: int) -> list[Change]:
        """Note which triggers were hit; a limit that is in the market since then is told."""
        changes = []
        for ticket in self._live.values():
            if not ticket.works and self._view.order(ticket.id).hit_bar is not None:
                ticket.hit_ns = ticket.updated_ns = now_ns
                if ticket.wish.kind.waits_for_limit:
                    changes.append(self._change(ticket, "hit"))
        return changes

    def _settle(self, now_ns: int) -> list[Change]:
        """Take the orders that are done off the open ones."""
        changes = []
        for ticket in list(self._live.values()):
            placed = self._view.order(ticket.id)
            if placed.status is OrderStatus.OPEN:
                continue
            if is_whole(placed):
                ticket.status = TicketStatus.FILLED
                del self._live[ticket.id]
            else:
                changes += self._end(ticket, TicketStatus.EXPIRED, now_ns)
        return changes

    def _end(self, ticket: Ticket, status: TicketStatus, now_ns: int) -> list[Change]:
        ticket.status, ticket.updated_ns = status, now_ns
        self._live.pop(ticket.id, None)
        return [self._change(ticket, "expired" if status is TicketStatus.EXPIRED else "cancelled")]

    def _change(self, ticket: Ticket, what: What) -> Change:
        return Change(ticket, what, ticket.status, ticket.filled, ticket.worth, ticket.works)

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
