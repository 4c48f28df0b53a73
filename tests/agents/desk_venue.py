"""A small venue for tests, seen over lines that fail as told."""

from contextlib import suppress
from dataclasses import dataclass, field

from agent_gym.agents.desk.routes import (
    RouteBusy,
    RouteDown,
    RouteRefused,
    RouteState,
    RouteTimeout,
)

S = 1_000_000_000
BTC = "BTC/USDT"


@dataclass
class Placed:
    order: object
    status: str = "open"
    filled: float = 0.0
    paid: float = 0.0
    doomed: bool = False

    def state(self):
        average = self.paid / self.filled if self.filled else None
        status = "partial" if self.status == "open" and self.filled else self.status
        return RouteState(self.order.client_id, status, self.filled, average, 0.0)


@dataclass
class Venue:
    """Fills what crosses its price, ``share`` of what is left at each move; knows client ids.

    ``slow``: a cancel acts with the next move, after what trades in it.
    """

    price: float = 100.0
    share: float = 1.0
    slow: bool = False
    orders: dict = field(default_factory=dict)
    double_sent: list = field(default_factory=list)

    def submit(self, order):
        if order.client_id in self.orders:
            self.double_sent.append(order.client_id)
        else:
            self.orders[order.client_id] = Placed(order)
            self.match([self.orders[order.client_id]])
        return self.orders[order.client_id].state()

    def cancel(self, client_id):
        placed = self.orders.get(client_id)
        if placed is None:
            raise RouteRefused("no such order")
        if placed.status == "open" and not self.slow:
            placed.status = "cancelled"
        placed.doomed = True
        return placed.state()

    def move(self, price, now_ns=None):
        self.price = price
        for placed in self.orders.values():
            until = placed.order.good_until_ns
            if placed.status == "open" and until is not None and now_ns and now_ns >= until:
                placed.status = "cancelled"
        self.match()
        for placed in self.orders.values():
            if placed.status == "open" and placed.doomed:  # it might still trade on the way
                placed.status = "cancelled"

    def position(self, symbol=BTC):
        return sum(p.filled for p in self.orders.values() if p.order.symbol == symbol)

    def live(self):
        return [p for p in self.orders.values() if p.status == "open"]

    def match(self, some=None):
        for placed in some or list(self.orders.values()):
            order = placed.order
            if placed.status != "open" or not self._crosses(order):
                continue
            left = order.quantity - placed.filled
            if order.reduce_only:
                held = self.position(order.symbol)
                if held * left >= 0:
                    placed.status = "cancelled"
                    continue
                left = max(left, -held) if left < 0 else min(left, -held)
            part = left if order.kind == "stop" else left * self.share
            if abs(left - part) < 1e-6 * abs(order.quantity):
                part = left
            placed.filled += part
            placed.paid += part * self.price
            if abs(order.quantity - placed.filled) <= 1e-9 * abs(order.quantity):
                placed.status = "filled"

    def _crosses(self, order):
        if order.kind == "market":
            return True
        buys = order.quantity > 0
        if order.kind == "stop":
            return self.price >= order.price if buys else self.price <= order.price
        return self.price <= order.price if buys else self.price >= order.price


class Line:
    """A route; ``faults`` are met in turn, one a request, then None for ever."""

    def __init__(self, venue, name="primary", faults=()):
        self.venue, self.name = venue, name
        self.faults = list(faults)
        self.requests = []

    def submit(self, order, now_ns):
        return self._meet("submit", lambda: self.venue.submit(order), order.client_id)

    def cancel(self, client_id, now_ns):
        return self._meet("cancel", lambda: self.venue.cancel(client_id), client_id)

    def state(self, client_id, now_ns):
        def look():
            placed = self.venue.orders.get(client_id)
            return RouteState(client_id, "unknown") if placed is None else placed.state()

        return self._meet("state", look, client_id)

    def position(self, symbol, now_ns):
        return self.venue.position(symbol)

    def _meet(self, verb, act, client_id):
        self.requests.append((verb, client_id))
        fault = self.faults.pop(0) if self.faults else None
        if fault == "reached":
            with suppress(RouteRefused):
                act()
            raise RouteTimeout("no answer")
        if fault == "lost":
            raise RouteTimeout("no answer")
        if fault == "down":
            raise RouteDown("no line")
        if fault == "busy":
            raise RouteBusy("too many", retry_after_ns=S)
        if fault == "refused" and verb == "submit":
            raise RouteRefused("refused")
        if isinstance(fault, RouteRefused):
            raise fault
        return act()
