"""The order venue behind a gateway: orders carry a client's id, so a retry never trades twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from agent_gym.core.errors import ConfigError, VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.faults.errors import VenueRejected
from agent_gym.exchange.faults.gateway import Ack, FaultyGateway, Positions
from agent_gym.exchange.faults.injector import FaultInjector
from agent_gym.exchange.faults.plan import FaultPlan
from agent_gym.exchange.kernel.parts import LOT_SLACK
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.orders import Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue


@dataclass(frozen=True, slots=True)
class ClientOrder:
    """An order under the name that its client gave it.

    Attributes:
        client_id: The name; one order has one name, however often it is sent.
        order: What is asked for.
        share: How much of it the venue is to take; below 1 after a partial acceptance.
    """

    client_id: str
    order: Order
    share: float = 1.0

    @property
    def quantity(self) -> float:
        """Return the units asked for, signed; of a target, the share of the way to it."""
        return self.share * _measure(self.order)

    def with_quantity(self, quantity: float) -> Self:
        """Return the same order cut down to a quantity."""
        return replace(self, share=quantity / _measure(self.order))


@dataclass(frozen=True, slots=True)
class _Taken:
    order: Order
    number: int
    quantity: float


class VenueGateway:
    """One account of an order venue, seen through requests that carry the time and a client's id.

    The venue remembers ids: an order that is sent again gives the same answer and no second order.
    Part of an order is cut to whole lots. Who holds the venue advances it, as ever; a request is
    stamped with a time at or after its last close.
    """

    def __init__(self, venue: Venue, account: str = "main") -> None:
        venue.account(account)  # it exists, or this raises
        self.venue = venue
        self.account = account
        self._taken: dict[str, _Taken] = {}

    def submit(self, order: ClientOrder, ts: int) -> Ack:
        """Place an order, once; the answer says how much of it was taken.

        Raises:
            VenueRejected: The id belongs to another order, or the part taken is less than a lot.
            VenueError: The venue refuses such an order.
        """
        self._check_time(order.client_id, ts)
        known = self._taken.get(order.client_id)
        if known is None:
            known = self._place(order)
            self._taken[order.client_id] = known
        elif known.order != order.order:
            raise VenueRejected(
                "a client id belongs to one order",
                where=f"order {order.client_id}",
                remedy="Send the same order again, or take a new id",
            )
        return Ack(order.client_id, known.quantity, ts)

    def cancel(self, client_id: str, ts: int) -> Ack:
        """Ask for an order back; the answer says how much of it had not traded yet.

        That is 0 if it comes too late. The cancel travels as long as an order does, so some of it
        may still trade.
        """
        self._check_time(client_id, ts)
        placed = self.placed(client_id)
        self.venue.cancel(placed.id)
        return Ack(client_id, _open_quantity(placed, self._taken[client_id].quantity), ts)

    def positions(self, ts: int) -> Positions:
        """Return what the account holds."""
        self._check_time("positions", ts)
        return Positions(ts, self.venue.account(self.account).positions)

    def placed(self, client_id: str) -> Placed:
        """Return what became of an order that has reached the venue."""
        if client_id not in self._taken:
            raise VenueRejected("no such order", where=f"order {client_id}")
        return self.venue.order(self._taken[client_id].number)

    def _place(self, asked: ClientOrder) -> _Taken:
        if asked.share == 1.0:
            number = self.venue.submit(asked.order, self.account)
            return _Taken(asked.order, number, asked.quantity)
        order = asked.order
        lot = self.venue.instrument(order.symbol).lot
        held = self.venue.account(self.account).positions[order.symbol]
        start = held if order.kind is OrderKind.TARGET else 0.0
        way = order.qty - start
        part = _whole_lots(asked.share * way, lot)
        if part == 0.0 and way != 0.0:
            raise VenueRejected(
                "the part that was taken is less than a lot", where=f"order {asked.client_id}"
            )
        number = self.venue.submit(replace(order, qty=start + part), self.account)
        share = part / way if way != 0.0 else 1.0
        return _Taken(order, number, share * _measure(order))

    def _check_time(self, name: str, ts: int) -> None:
        if ts < self.venue.now:
            raise VenueError(
                "a request is older than the venue",
                where=f"request for {name}",
                found=ts,
                expected=f"{self.venue.now} or later",
            )


def open_line(
    venue: Venue, plan: FaultPlan, seeds: Seeds, account: str = "main"
) -> FaultyGateway[ClientOrder]:
    """Return a gateway to one account of a venue that suffers the faults of a plan.

    The plan must count the bars of the venue, or an outage of two bars would last something else.
    """
    if plan.bar_ns != venue.period_ns:
        raise ConfigError(
            "the plan counts other bars than the venue plays",
            where="bar_ns",
            found=plan.bar_ns,
            expected=venue.period_ns,
        )
    return FaultyGateway(VenueGateway(venue, account), FaultInjector(plan, seeds))


def _measure(order: Order) -> float:
    """Return what a share is a share of: units, or for a target the whole way to it."""
    return 1.0 if order.kind is OrderKind.TARGET else order.qty


def _whole_lots(qty: float, lot: float) -> float:
    return float(lot * np.trunc(qty / lot * LOT_SLACK)) if lot > 0.0 else qty


def _open_quantity(placed: Placed, taken: float) -> float:
    if placed.status is not OrderStatus.OPEN:
        return 0.0
    if placed.order.kind is OrderKind.TARGET:
        return taken
    return taken - placed.filled if taken > 0.0 else taken + placed.filled
