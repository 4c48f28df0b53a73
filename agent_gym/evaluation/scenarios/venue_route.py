"""The order venue as a route of the desk: its words on one side, the venue's on the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.routes import (
    RouteBusy,
    RouteDown,
    RouteError,
    RouteOrder,
    RouteRefused,
    RouteState,
    RouteStatus,
    RouteTimeout,
)
from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.scenarios.trace import Trace
from agent_gym.exchange.faults import (
    ClientOrder,
    FaultInjector,
    FaultPlan,
    FaultyGateway,
    VenueDisconnected,
    VenueGateway,
    VenueRateLimited,
    VenueRejected,
    VenueTimeout,
)
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue

T = TypeVar("T")
REFUSALS = (DropReason.UNAFFORDABLE, DropReason.NO_SHORTS, DropReason.TOO_SMALL)
WHOLE = 1.0 - 1e-9  # what is missing below this share is rounding


class VenueRoute:
    """One line to one account of a venue, with the faults of a plan.

    Every call is a request that may fail: orders and cancels as the gateway has it, questions as
    requests for ``data``. A cancel travels like an order, so the state that it answers with may
    still be live; ask again after the next bar. Who holds the venue advances it and then calls
    ``expire``, which drops the orders whose time is over. ``sent`` and
    ``cancels`` hold every order that the desk tried to send or take back, with the time.
    """

    def __init__(
        self, name: str, venue: Venue, plan: FaultPlan, seeds: Seeds, account: str = "main"
    ) -> None:
        self.name = name
        self.injector = FaultInjector(plan, seeds.child(name))
        self._gateway = VenueGateway(venue, account)
        self._line = FaultyGateway(self._gateway, self.injector)
        self.sent: list[tuple[int, RouteOrder]] = []
        self.cancels: list[tuple[int, str]] = []
        self._asked: dict[str, RouteOrder] = {}
        self._ends: dict[str, int] = {}
        self._questions: Counter[str] = Counter()

    def submit(self, order: RouteOrder, now_ns: int) -> RouteState:
        """Send an order; it can trade from the next bar on."""
        if self.placed(order.client_id) is None:
            self._asked[order.client_id] = order
        self.sent.append((now_ns, order))
        asked = ClientOrder(order.client_id, _venue_order(order))
        self._call(lambda: self._line.submit(asked, now_ns))
        if order.good_until_ns is not None:
            self._ends[order.client_id] = order.good_until_ns
        return self.known(order.client_id)

    def cancel(self, client_id: str, now_ns: int) -> RouteState:
        """Ask for an order back and answer where it stands now."""
        self.cancels.append((now_ns, client_id))
        self._call(lambda: self._line.cancel(client_id, now_ns))
        return self.known(client_id)

    def state(self, client_id: str, now_ns: int) -> RouteState:
        """Ask what became of an order; ``unknown`` if the venue never saw it."""
        self._question(f"state:{client_id}", now_ns)
        return self.known(client_id)

    def position(self, symbol: str, now_ns: int) -> float:
        """Ask what the account holds."""
        return self._call(lambda: self._line.positions(now_ns)).quantities[symbol]

    def known(self, client_id: str) -> RouteState:
        """Return the truth about an order, without a request that could fail."""
        placed = self.placed(client_id)
        if placed is None:
            return RouteState(client_id, "unknown")
        asked = self._asked[client_id].quantity
        filled = placed.filled if asked > 0.0 else -placed.filled
        status = _status(placed, abs(asked))
        return RouteState(client_id, status, filled, placed.average_price, placed.fee)

    def placed(self, client_id: str) -> Placed | None:
        """Return the venue's own record of an order, None if it never saw it."""
        try:
            return self._gateway.placed(client_id)
        except VenueRejected:
            return None

    def orders(self) -> list[tuple[RouteOrder, Placed]]:
        """Return every order that reached the venue, with the venue's own record."""
        known = [(order, self.placed(name)) for name, order in self._asked.items()]
        return [(order, placed) for order, placed in known if placed is not None]

    def note(self, trace: Trace) -> None:
        """Write down all that was asked of this line, and every fault that befell a request."""
        for ts, order in self.sent:
            kind, price = order.kind, order.price
            trace.note("sent", ts, self.name, order.client_id, kind, order.quantity, price)
        for ts, client_id in self.cancels:
            trace.note("cancel", ts, self.name, client_id)
        for fault in self.injector.log:
            trace.note("fault", fault.ts, self.name, fault.kind, fault.request_id)
        for request, count in sorted(self.injector.requests.items()):
            trace.note("requests", 0, self.name, request, count)

    def expire(self, now_ns: int) -> None:
        """Drop the orders whose time is over, as the venue does of its own accord."""
        for client_id in [name for name, end in self._ends.items() if end <= now_ns]:
            del self._ends[client_id]
            placed = self.placed(client_id)
            if placed is not None:
                self._gateway.venue.cancel(placed.id)

    def _question(self, name: str, now_ns: int) -> None:
        number = self._questions[name]
        self._questions[name] += 1
        fault = self.injector.on_request("data", f"{name}:{number}", now_ns)
        if fault is None:
            return
        where = f"request {fault.request_id}"
        if fault.kind == "timeout":
            raise RouteTimeout("no answer from the venue", where=where)
        if fault.kind == "disconnect":
            raise RouteDown("the line to the venue is down", where=where)
        if fault.kind == "rate_limit":
            raise RouteBusy("too many requests", retry_after_ns=fault.wait_ns, where=where)

    def _call(self, request: Callable[[], T]) -> T:
        try:
            return request()
        except VenueError as error:
            raise _route_error(error) from error


def _venue_order(order: RouteOrder) -> Order:
    return Order(
        symbol=order.symbol,
        kind=OrderKind(order.kind),
        qty=order.quantity,
        price=order.price,
        reduce_only=order.reduce_only,
    )


def _status(placed: Placed, asked: float) -> RouteStatus:
    if placed.status is OrderStatus.OPEN:
        return "partial" if placed.filled > 0.0 else "open"
    if placed.status is OrderStatus.FILLED and placed.filled >= WHOLE * asked:
        return "filled"
    # The venue took less than was asked for, or dropped the rest: what is left will never trade.
    refused = placed.filled == 0.0 and placed.reason in REFUSALS
    return "rejected" if refused else "cancelled"


def _route_error(error: VenueError) -> RouteError:
    if isinstance(error, VenueTimeout):
        return RouteTimeout(error.what, where=error.where)
    if isinstance(error, VenueDisconnected):
        return RouteDown(error.what, where=error.where)
    if isinstance(error, VenueRateLimited):
        return RouteBusy(error.what, retry_after_ns=error.retry_after_ns, where=error.where)
    poor = "insufficient funds" in error.what
    code = RejectCode.EXEC_INSUFFICIENT_FUNDS if poor else RejectCode.EXEC_EXCHANGE_REJECT
    return RouteRefused(error.what, code=code, where=error.where)
