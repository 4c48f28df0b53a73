"""A venue seen through a bad line: the same gateway, with the faults of a plan."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar

from agent_gym.core.errors import VenueError
from agent_gym.exchange.faults.errors import (
    VenueDisconnected,
    VenueRateLimited,
    VenueRejected,
    VenueTimeout,
)
from agent_gym.exchange.faults.injector import Fault, FaultInjector
from agent_gym.exchange.faults.plan import RequestKind, StaleDataRule


class HasQuantity(Protocol):
    """All that a gateway must know of an order."""

    @property
    def client_id(self) -> str: ...
    @property
    def quantity(self) -> float: ...
    def with_quantity(self, quantity: float) -> Self: ...


OrderT = TypeVar("OrderT", bound=HasQuantity)
OrderT_contra = TypeVar("OrderT_contra", bound=HasQuantity, contravariant=True)


@dataclass(frozen=True, slots=True)
class Ack:
    """The venue's answer to an order: how much it took, and when the client learns of it."""

    client_id: str
    quantity: float
    ts: int


@dataclass(frozen=True, slots=True)
class Positions:
    """What the venue says is held, as of ``ts``."""

    ts: int
    quantities: Mapping[str, float]


class Gateway(Protocol[OrderT_contra]):
    """The border of a venue."""

    def submit(self, order: OrderT_contra, ts: int) -> Ack: ...
    def cancel(self, client_id: str, ts: int) -> Ack: ...
    def positions(self, ts: int) -> Positions: ...


class FaultyGateway(Generic[OrderT]):
    """Puts an injector in front of a gateway.

    A request is named ``<kind>:<client id>:<attempt>`` (``positions:<ts>:<attempt>``), so a retry
    draws anew and those of other orders do not matter. An order that has reached the venue is known
    there by its client id: sending it again gives the same answer and no second order.
    """

    def __init__(self, inner: Gateway[OrderT], injector: FaultInjector) -> None:
        self.injector = injector
        self._inner = inner
        self._attempts: Counter[str] = Counter()
        self._placed: dict[str, tuple[OrderT, Ack]] = {}
        self._late: list[Ack] = []
        self._snapshots: deque[Positions] = deque()
        stale = [rule.bars for rule in injector.plan.rules if isinstance(rule, StaleDataRule)]
        self._longest_age_ns = max(stale, default=0) * injector.plan.bar_ns

    def submit(self, order: OrderT, ts: int) -> Ack:
        """Send an order; raises what the plan says, and nothing of its own.

        Raises:
            VenueTimeout: No answer came; the order may be at the venue. Send it again, unchanged.
            VenueRejected: The venue refused the order.
            VenueDisconnected: The order never left.
            VenueRateLimited: The order was not looked at.
        """
        fault = self._meet("submit", order.client_id, ts)
        fraction = 1.0 if fault is None else fault.fraction
        return self._answer(fault, lambda: self._place(order, ts, fraction))

    def cancel(self, client_id: str, ts: int) -> Ack:
        """Take an order back; it may raise what submit() raises."""
        fault = self._meet("cancel", client_id, ts)
        return self._answer(fault, lambda: self._inner.cancel(client_id, ts))

    def positions(self, ts: int) -> Positions:
        """Return what is held; when stale, as it was some bars ago, which its ``ts`` tells."""
        fault = self._meet("positions", str(ts), ts)
        if fault is None:
            return self._inner.positions(ts)
        if fault.kind == "stale_data":
            known = [seen for seen in self._snapshots if seen.ts <= ts - fault.wait_ns]
            return known[-1] if known else self._snapshots[0]
        raise _error(fault)

    def late_acks(self, ts: int) -> list[Ack]:
        """Return, once, the second copies of answers that have come in by now."""
        due = [ack for ack in self._late if ack.ts <= ts]
        self._late = [ack for ack in self._late if ack.ts > ts]
        return due

    def _meet(self, kind: RequestKind, name: str, ts: int) -> Fault | None:
        if self._longest_age_ns:
            self._remember(ts)
        attempt = self._attempts[f"{kind}:{name}"]
        self._attempts[f"{kind}:{name}"] += 1
        return self.injector.on_request(kind, f"{kind}:{name}:{attempt}", ts)

    def _remember(self, ts: int) -> None:
        """Keep what is held now, and drop what no stale answer can ask for any more."""
        self._snapshots.append(self._inner.positions(ts))
        while len(self._snapshots) > 1 and self._snapshots[1].ts <= ts - self._longest_age_ns:
            self._snapshots.popleft()

    def _answer(self, fault: Fault | None, act: Callable[[], Ack]) -> Ack:
        if fault is None or fault.kind == "partial":
            return act()
        if fault.kind == "delayed_ack":
            ack = act()
            return replace(ack, ts=ack.ts + fault.wait_ns)
        if fault.kind == "duplicate_ack":
            ack = act()
            self._late.append(replace(ack, ts=ack.ts + fault.wait_ns))
            return ack
        if fault.reached:
            try:
                act()
            except VenueError as refusal:  # the client hears nothing of it either way
                raise _error(fault) from refusal
        raise _error(fault)

    def _place(self, order: OrderT, ts: int, fraction: float) -> Ack:
        if order.client_id in self._placed:
            known, ack = self._placed[order.client_id]
            if known != order:
                raise VenueRejected(
                    "a client id belongs to one order",
                    where=f"order {order.client_id}",
                    remedy="Send the same order again, or take a new id",
                )
            return replace(ack, ts=ts)
        taken = order if fraction == 1.0 else order.with_quantity(order.quantity * fraction)
        ack = self._inner.submit(taken, ts)
        self._placed[order.client_id] = (order, ack)
        return ack


def _error(fault: Fault) -> VenueError:
    """Return what the client sees of a fault; whether the request arrived is not part of it."""
    where = f"request {fault.request_id}"
    match fault.kind:
        case "timeout":
            return VenueTimeout("no answer from the venue", where=where)
        case "disconnect":
            return VenueDisconnected("the line to the venue is down", where=where)
        case "rate_limit":
            return VenueRateLimited("too many requests", retry_after_ns=fault.wait_ns, where=where)
        case "reject":
            return VenueRejected(fault.reason or "refused", where=where)
    raise VenueError("this fault does not stop a request", where=where, found=fault.kind)
