"""What an account may ask of its orders and its fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agent_gym.apps.sandbox.errors import (
    CANCEL_REJECTED,
    DUPLICATE_ORDER,
    LONG_LOOK,
    REFUSALS,
    UNKNOWN_ORDER,
    ExchangeError,
    filter_failure,
    neither,
)
from agent_gym.apps.sandbox.market import MS_NS, MarketData
from agent_gym.apps.sandbox.orders import (
    answer_words,
    cancel_words,
    fill_words,
    list_words,
    order_words,
)
from agent_gym.apps.sandbox.params import CLIENT_ID, Params
from agent_gym.apps.sandbox.requests import Request, response_of
from agent_gym.apps.sandbox.symbols import MOST_ORDERS, MOST_WAITING_ORDERS, Symbol
from agent_gym.core.errors import VenueError
from agent_gym.exchange.spot_records import Change, Pair, Refused, Ticket

Told = Callable[[list[Change]], None]
LONGEST_LOOK_MS = 24 * 3_600_000


class Trading:
    """The requests of accounts about orders.

    Args:
        market: What everybody sees, and the floor behind it.
        tell: Called with what has changed.
    """

    def __init__(self, market: MarketData, tell: Told) -> None:
        self.market, self._floor, self._symbols = market, market.floor, market.symbols
        self.tell = tell
        self.requests: dict[int, Request] = {}
        self._named: dict[tuple[str, str], int] = {}

    def place(self, account: str, params: Params) -> dict[str, Any]:
        """Send an order."""
        symbol, request = self._request(account, params)
        response = response_of(params)
        ticket, changes = self.attempt(
            lambda: self._floor.place(account, request.wish, self.now_ns)
        )
        self.keep(ticket, request)
        self.tell(changes)
        return answer_words(symbol, ticket, request, response)

    def test(self, account: str, params: Params) -> dict[str, Any]:
        """Check an order without sending it."""
        response_of(params)
        _, request = self._request(account, params)
        self.attempt(lambda: self._floor.check(account, request.wish))
        return {}

    def cancel(self, account: str, params: Params) -> dict[str, Any]:
        """Take an order back."""
        symbol = self._symbols.need(params)
        ticket = self._find(account, symbol, params)
        if ticket is None:
            raise CANCEL_REJECTED
        return self.cancelled(ticket, params.text("newClientOrderId", CLIENT_ID))

    def replace(self, account: str, params: Params) -> dict[str, Any]:
        """Take an order back and send another; if the first fails the second is not sent.

        A request that cannot be read, or that a filter refuses, changes nothing.
        """
        mode = params.need("cancelReplaceMode")
        if mode not in ("STOP_ON_FAILURE", "ALLOW_FAILURE"):
            raise ExchangeError(-1130, "Data sent for parameter 'cancelReplaceMode' is not valid.")
        old = Params(
            {
                "symbol": params.need("symbol"),
                "orderId": params.text("cancelOrderId") or "",
                "origClientOrderId": params.text("cancelOrigClientOrderId") or "",
                "newClientOrderId": params.text("cancelNewClientOrderId") or "",
            }
        )
        response_of(params)
        Request.read(params, self._symbols.need(params), self._floor, account)
        said: dict[str, Any] = {"cancelResult": "SUCCESS", "newOrderResult": "NOT_ATTEMPTED"}
        try:
            said["cancelResponse"] = self.cancel(account, old)
        except ExchangeError as error:
            said |= {"cancelResult": "FAILURE", "cancelResponse": error.as_dict()}
            if mode == "STOP_ON_FAILURE":
                raise ExchangeError(-2022, "Order cancel-replace failed.", 400, said) from error
        try:
            said["newOrderResponse"] = self.place(account, params)
        except ExchangeError as error:
            said |= {"newOrderResult": "FAILURE", "newOrderResponse": error.as_dict()}
        else:
            said["newOrderResult"] = "SUCCESS"
        if "FAILURE" in (said["cancelResult"], said["newOrderResult"]):
            whole = said["cancelResult"] == said["newOrderResult"]
            code, words = (-2022, "failed") if whole else (-2021, "partially failed")
            raise ExchangeError(code, f"Order cancel-replace {words}.", 400 if whole else 409, said)
        return said

    def cancel_all(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Take all orders of a symbol back."""
        symbol = self._symbols.need(params)
        live = [one for one in self._floor.open_tickets(account) if one.wish.symbol == symbol.name]
        if not live:
            raise CANCEL_REJECTED
        # One of a pair takes the other with it.
        return [self.cancelled(one, None) for one in live if one.status.live]

    def query(self, account: str, params: Params) -> dict[str, Any]:
        """Return an order."""
        symbol = self._symbols.need(params)
        ticket = self._find(account, symbol, params)
        if ticket is None:
            raise UNKNOWN_ORDER
        return self.words(ticket)

    def open_orders(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return the orders that can still trade."""
        chosen = {one.name for one in self._symbols.chosen(params)}
        live = self._floor.open_tickets(account)
        return [self.words(one) for one in live if one.wish.symbol in chosen]

    def all_orders(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return orders of a symbol, open or not, oldest first."""
        symbol, limit = self._symbols.need(params), params.limit(500, 1000)
        first, (start, end) = params.whole("orderId"), _span(params)
        found = [
            one
            for one in self._floor.tickets.values()
            if one.account == account
            and one.wish.symbol == symbol.name
            and one.id >= (first or 0)
            and _within(one.created_ns, start, end)
        ]
        newest = first is None and start is None
        return [self.words(one) for one in (found[-limit:] if newest else found[:limit])]

    def my_trades(self, account: str, params: Params) -> list[dict[str, Any]]:
        """Return the fills of a symbol, oldest first."""
        symbol, limit = self._symbols.need(params), params.limit(500, 1000)
        order, first = params.whole("orderId"), params.whole("fromId")
        start, end = _span(params)
        found = [
            one
            for one in self._floor.fills
            if one.account == account
            and one.symbol == symbol.name
            and order in (None, one.order)
            and one.id >= (first or 0)
            and _within(one.ts, start, end)
        ]
        newest = first is None and start is None
        shown = found[-limit:] if newest else found[:limit]
        tickets = self._floor.tickets
        return [fill_words(symbol, one, tickets[one.order].list_id) for one in shown]

    def words(self, ticket: Ticket) -> dict[str, Any]:
        """Return an order as a query answers it."""
        symbol = self._symbols.named(ticket.wish.symbol)
        return order_words(symbol, ticket, self.requests[ticket.id])

    # How it is done.

    @property
    def now_ns(self) -> int:
        return self.market.now_ms * MS_NS

    def _request(self, account: str, params: Params) -> tuple[Symbol, Request]:
        symbol = self._symbols.need(params)
        request = Request.read(params, symbol, self._floor, account)
        self.check_room(account, symbol, [request])
        return symbol, request

    def check_room(self, account: str, symbol: Symbol, requests: Sequence[Request]) -> None:
        """Refuse a name that is taken, or an order too many."""
        live = self._floor.open_tickets(account)
        names = [request.wish.client_id for request in requests]
        if len({*names} - {one.wish.client_id for one in live}) < len(names):
            raise DUPLICATE_ORDER
        here = [one.wish.kind for one in live if one.wish.symbol == symbol.name]
        here += [request.wish.kind for request in requests]
        if len(here) > MOST_ORDERS:
            raise filter_failure("MAX_NUM_ORDERS")
        adds = any(request.wish.kind.waits for request in requests)
        if adds and sum(kind.waits for kind in here) > MOST_WAITING_ORDERS:
            raise filter_failure("MAX_NUM_ALGO_ORDERS")

    def keep(self, ticket: Ticket, request: Request) -> None:
        """Remember an order and what it is called."""
        self.requests[ticket.id] = request
        self._named[ticket.account, request.wish.client_id] = ticket.id

    def attempt(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Refused as refused:
            raise REFUSALS[refused.reason] from refused
        except VenueError as error:
            raise ExchangeError(-1013, error.what) from error

    def _find(self, account: str, symbol: Symbol, params: Params) -> Ticket | None:
        number, name = params.whole("orderId"), params.text("origClientOrderId", CLIENT_ID)
        if number is None and name is None:
            raise neither("origClientOrderId", "orderId")
        if number is None:
            number = self._named.get((account, name or ""), 0)
        found = self._floor.ticket(account, number)
        if found is None or found.wish.symbol != symbol.name:
            return None
        return found

    def cancelled(self, ticket: Ticket, client_id: str | None) -> dict[str, Any]:
        """Take an order back; one of a pair is answered with the pair."""
        account = ticket.account
        _, changes = self.attempt(lambda: self._floor.cancel(account, ticket.id, self.now_ns))
        self.tell(changes)
        if ticket.list_id is None:
            return self._cancel_words(ticket, client_id)
        return self.cancelled_pair(self._floor.pairs[ticket.list_id], client_id)

    def cancelled_pair(self, pair: Pair, client_id: str | None) -> dict[str, Any]:
        """Return a pair of orders as the answer to its cancel."""
        words = list_words(pair, self._symbols.named(pair.symbol), self.market.now_ms)
        reports = [self._cancel_words(one, client_id) for one in pair.tickets]
        return words | {"orderReports": reports}

    def _cancel_words(self, ticket: Ticket, client_id: str | None) -> dict[str, Any]:
        symbol = self._symbols.named(ticket.wish.symbol)
        return cancel_words(symbol, ticket, self.requests[ticket.id], client_id)


def _span(params: Params) -> tuple[int | None, int | None]:
    """Return the first and the last moment that a question is about, in milliseconds."""
    start, end = params.whole("startTime"), params.whole("endTime")
    if start is not None and end is not None and end - start > LONGEST_LOOK_MS:
        raise LONG_LOOK
    return start, end


def _within(at_ns: int, start_ms: int | None, end_ms: int | None) -> bool:
    at_ms = at_ns // MS_NS
    return at_ms >= (start_ms or 0) and (end_ms is None or at_ms <= end_ms)
