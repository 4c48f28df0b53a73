from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agent_gym.core.clock import MINUTE_NS, SECOND_NS
from agent_gym.core.errors import VenueError
from agent_gym.core.seeds import Seeds
from agent_gym.exchange.faults import (
    Ack,
    DelayedAckRule,
    DisconnectRule,
    DuplicateAckRule,
    FaultInjector,
    FaultPlan,
    FaultyGateway,
    PartialRule,
    Positions,
    RateLimitRule,
    RejectRule,
    StaleDataRule,
    TimeoutRule,
)


@dataclass(frozen=True)
class Order:
    client_id: str
    quantity: float = 10.0

    def with_quantity(self, quantity: float) -> Order:
        return replace(self, quantity=quantity)


class Venue:
    """Takes every order it gets, also the same one twice."""

    def __init__(self) -> None:
        self.orders: list[Order] = []
        self.cancelled: list[str] = []
        self.reads = 0

    def submit(self, order: Order, ts: int) -> Ack:
        if order.quantity <= 0.0:
            raise VenueError("an order has a size")
        self.orders.append(order)
        return Ack(order.client_id, order.quantity, ts)

    def cancel(self, client_id: str, ts: int) -> Ack:
        self.cancelled.append(client_id)
        return Ack(client_id, 0.0, ts)

    def positions(self, ts: int) -> Positions:
        self.reads += 1
        return Positions(ts, {"BTC": sum(order.quantity for order in self.orders)})


def faulty(
    *rules: Any, seed: int = 3, bar_ns: int = MINUTE_NS
) -> tuple[Venue, FaultyGateway[Order]]:
    venue = Venue()
    plan = FaultPlan(rules=rules, bar_ns=bar_ns)
    return venue, FaultyGateway(venue, FaultInjector(plan, Seeds(seed)))


MIXED = FaultPlan(
    bar_ns=MINUTE_NS,
    rules=(
        DisconnectRule(rate=0.02, bars=3),
        RateLimitRule(rate=0.05),
        TimeoutRule(rate=0.1),
        RejectRule(rate=0.05),
        RejectRule(rate=0.2, on=("cancel",), reasons=("too late",)),
        PartialRule(rate=0.1),
        StaleDataRule(rate=0.1),
        DelayedAckRule(rate=0.1),
        DuplicateAckRule(rate=0.1),
    ),
)


def drive(plan: FaultPlan, seed: int, orders: int) -> FaultInjector:
    injector = FaultInjector(plan, Seeds(seed))
    gateway = FaultyGateway(Venue(), injector)
    for i in range(orders):
        ts = i * 20 * SECOND_NS
        for request in (
            lambda i=i, ts=ts: gateway.submit(Order(f"o{i}"), ts),
            lambda i=i, ts=ts: gateway.cancel(f"o{i}", ts),
            lambda ts=ts: gateway.positions(ts),
        ):
            try:
                request()
            except VenueError:
                continue
    return injector
