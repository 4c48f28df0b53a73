"""The orders of a venue in memory that the kernel reads: all ever placed, and those still live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import VenueError
from agent_gym.exchange.costs import BPS
from agent_gym.exchange.kernel.floor import ORDER
from agent_gym.exchange.orders import DropReason, Order, OrderStatus, is_whole

STATUSES = tuple(OrderStatus)
REASONS = (None, *DropReason)
FIRST_ROOM = 64


@dataclass(frozen=True, slots=True)
class Placed:
    """An order in the venue and what became of it.

    Attributes:
        id: Its number.
        account: Who placed it.
        order: What was asked for.
        status: Where it stands.
        filled: Units traded, without sign.
        average_price: What they cost, None before the first fill.
        fee: What they cost in fees.
        reason: Why it ended with less than it asked for, None if it did not.
        cancel_bar: The bar whose open a cancel reaches, None if none is on its way or acted.
        hit_bar: The bar that hit its trigger, None before and for orders without one.
        level: The price that hits it, as far as it has trailed; None if nothing does yet.
    """

    id: int
    account: str
    order: Order
    status: OrderStatus
    filled: float
    average_price: float | None
    fee: float
    reason: DropReason | None = None
    cancel_bar: int | None = None
    hit_bar: int | None = None
    level: float | None = None


class OrderLedger:
    """Keeps the record of order ``n`` in row ``n - 1``; ``live`` lists the rows that can trade.

    Records stay where they are, so nothing is copied when a bar is applied. The kernel shortens
    ``live``; its length is kept by the venue.
    """

    def __init__(self) -> None:
        self.count = 0
        self.records: NDArray[Any] = np.zeros(FIRST_ROOM, dtype=ORDER)
        self.live = np.zeros(FIRST_ROOM, dtype=np.int64)
        self.due = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._orders: list[Order] = []

    def fork(self) -> OrderLedger:
        """Return a ledger that goes on from here by itself."""
        other = OrderLedger()
        other.count, other._orders = self.count, self._orders.copy()
        other.records, other.live, other.due = (
            array.copy() for array in (self.records, self.live, self.due)
        )
        return other

    def add(self, order: Order, account: int, instrument: int, arrives: int) -> int:
        """Write an order down and return its number; the arrays may move."""
        if self.count == len(self.records):
            self.records, self.live, self.due = (
                np.concatenate([old, np.zeros_like(old)])
                for old in (self.records, self.live, self.due)
            )
        number = self.count + 1
        self.records[self.count] = (
            number,
            order.group,
            account,
            instrument,
            order.kind.code,
            0,
            order.reduce_only,
            order.post_only,
            order.immediate,
            arrives,
            0,
            0,
            0,
            order.exclusive,
            0,
            0,
            order.qty,
            order.price or 0.0,
            order.hit_price or 0.0,
            order.trail_bps * BPS,
            0.0,
            0.0,
            0.0,
        )
        self._orders.append(order)
        self.count = number
        return number

    def record(self, number: int) -> Any:
        """Return the kernel's record of an order, in place."""
        if not (is_whole(number) and 1 <= number <= self.count):
            raise VenueError(
                "no such order",
                where="the order's number",
                found=repr(number),
                expected=f"a whole number from 1 to {self.count}" if self.count else "no order yet",
            )
        return self.records[number - 1]

    def placed(self, number: int, accounts: tuple[str, ...]) -> Placed:
        """Return an order and what became of it."""
        record = self.record(number)
        filled = float(record["filled"])
        return Placed(
            id=int(number),
            account=accounts[int(record["account"])],
            order=self._orders[number - 1],
            status=STATUSES[int(record["status"])],
            filled=filled,
            average_price=abs(float(record["paid"])) / filled if filled else None,
            fee=float(record["fee"]),
            reason=REASONS[int(record["why"])],
            cancel_bar=int(record["cancels"]) or None,
            hit_bar=int(record["hit"]) or None,
            level=_level(record),
        )


def _level(record: Any) -> float | None:
    idle = record["trail"] > 0.0 and not record["armed"]
    return None if idle else float(record["trigger"]) or None
