"""Orders as users write them, checked against the venue's grid before they go anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from agent_gym.core.errors import VenueError
from agent_gym.exchange.kernel import floor as kernel
from agent_gym.markets.instrument import Instrument

GRID_SLACK = 1e-6


class OrderKind(StrEnum):
    """What an order asks for."""

    TARGET = "target"
    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"

    @property
    def code(self) -> int:
        """Return the kernel's number for this kind."""
        return KIND_CODES[self]


KIND_CODES = {
    OrderKind.TARGET: kernel.TARGET,
    OrderKind.MARKET: kernel.MARKET,
    OrderKind.LIMIT: kernel.LIMIT,
    OrderKind.STOP: kernel.STOP,
}


class OrderStatus(StrEnum):
    """Where an order stands; the place in this list is the kernel's number.

    ``PARTIAL`` is an end, not a stage: a part traded and the venue dropped the rest. An order that
    is still being worked is ``OPEN``, however much of it has traded.
    """

    OPEN = "open"
    FILLED = "filled"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    PARTIAL = "partial"


class DropReason(StrEnum):
    """Why an order ended with less than it asked for; the place, from 1, is the kernel's number."""

    WITHDRAWN = "its owner took it back"
    REPLACED = "a newer target replaced it"
    UNAFFORDABLE = "the account cannot afford more"
    NO_SHORTS = "shorts are forbidden"
    TOO_SMALL = "the rest is worth less than the smallest trade"
    PARTNER_FILLED = "an order of its group was filled"
    WOULD_TAKE = "a post-only order would have taken"
    NOTHING_TO_REDUCE = "there is nothing left to reduce"
    BAR_OVER = "the bar of an immediate order is over"
    LIQUIDATED = "the account was liquidated"


@dataclass(frozen=True, slots=True)
class Order:
    """One order of one account.

    Attributes:
        symbol: The instrument.
        kind: Target position, market, limit or stop.
        qty: Units to trade, negative to sell; for a target the position wanted.
        price: The limit or the stop price.
        reduce_only: Never open or enlarge a position; closing one has no smallest size.
        post_only: Cancel rather than take liquidity (limits only).
        immediate: Cancel at the end of the bar it arrives in what has not traded.
        group: Orders of one account with the same number cancel each other on the first fill.
    """

    symbol: str
    kind: OrderKind
    qty: float
    price: float | None = None
    reduce_only: bool = False
    post_only: bool = False
    immediate: bool = False
    group: int = 0


def check_order(order: Order, instrument: Instrument) -> None:
    """Raise a VenueError, as an exchange would reject, unless the order fits the instrument."""
    if not math.isfinite(order.qty):
        raise VenueError("an order's quantity is not a finite number", found=order.qty)
    if order.qty == 0.0 and order.kind is not OrderKind.TARGET:
        raise VenueError("an order's quantity is 0", where=order.symbol)
    _check_grid("quantity", order.qty, instrument.lot, order.symbol)
    priced = order.kind in (OrderKind.LIMIT, OrderKind.STOP)
    if priced != (order.price is not None):
        raise VenueError(
            "limit and stop orders need a price, others have none",
            where=order.symbol,
            found=f"{order.kind} with price {order.price}",
        )
    if order.price is not None:
        if not (math.isfinite(order.price) and order.price > 0.0):
            raise VenueError("an order's price is not a positive number", found=order.price)
        _check_grid("price", order.price, instrument.tick, order.symbol)
    if order.reduce_only and order.kind is OrderKind.TARGET:
        raise VenueError("a target says where to end, so it cannot be reduce-only")
    too_small = order.price is not None and abs(order.qty) * order.price < instrument.min_notional
    if too_small and not order.reduce_only:
        raise VenueError(
            "an order is worth less than the venue takes",
            where=order.symbol,
            found=abs(order.qty) * (order.price or 0.0),
            expected=f"at least {instrument.min_notional}",
            remedy="To close a position, however small, make the order reduce-only",
        )
    if order.post_only and order.kind is not OrderKind.LIMIT:
        raise VenueError("only a limit order can be post-only", found=order.kind.value)
    if order.post_only and order.immediate:
        raise VenueError("an order cannot be both post-only and immediate", where=order.symbol)


def _check_grid(noun: str, value: float, step: float, symbol: str) -> None:
    if step == 0.0:
        return
    steps = value / step
    if abs(steps - round(steps)) > GRID_SLACK * max(1.0, abs(steps)):
        raise VenueError(
            f"an order's {noun} is off the venue's grid",
            where=symbol,
            found=value,
            expected=f"a multiple of {step}",
            remedy=f"Use {round(steps) * step:.12g}",
        )
