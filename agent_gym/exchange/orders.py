"""Orders as users write them, checked against the venue's grid before they go anywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from numbers import Integral, Real

import numpy as np

from agent_gym.core.errors import VenueError
from agent_gym.exchange.kernel import floor as kernel
from agent_gym.markets.instrument import Instrument

GRID_SLACK = 1e-6
MAX_GROUP = 2**63 - 1
MAX_TRAIL_BPS = 10_000


class OrderKind(StrEnum):
    """What an order asks for."""

    TARGET = "target"
    MARKET = "market"
    LIMIT = "limit"
    STOP = "stop"
    TAKE = "take"
    STOP_LIMIT = "stop_limit"
    TAKE_LIMIT = "take_limit"

    @property
    def code(self) -> int:
        """Return the kernel's number for this kind."""
        return KIND_CODES[self]

    @property
    def waits(self) -> bool:
        """Say whether such an order is not in the market before a price hits its trigger."""
        return self in (OrderKind.STOP, OrderKind.TAKE) or self.waits_for_limit

    @property
    def waits_for_limit(self) -> bool:
        """Say whether it becomes a limit order when it is hit."""
        return self in (OrderKind.STOP_LIMIT, OrderKind.TAKE_LIMIT)


KIND_CODES = {
    OrderKind.TARGET: kernel.TARGET,
    OrderKind.MARKET: kernel.MARKET,
    OrderKind.LIMIT: kernel.LIMIT,
    OrderKind.STOP: kernel.STOP,
    OrderKind.TAKE: kernel.TAKE,
    OrderKind.STOP_LIMIT: kernel.STOP_LIMIT,
    OrderKind.TAKE_LIMIT: kernel.TAKE_LIMIT,
}


class OrderStatus(StrEnum):
    """Where an order stands; the place in this list is the kernel's number.

    ``PARTIAL`` is an end, not a stage: a part traded and the venue dropped the rest. An order that
    is still being worked is ``OPEN``, however much of it has traded. An order that a partner of its
    group made smaller ends ``PARTIAL``, too, once the rest has traded.
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
        kind: Target position, market or limit; a stop limits a loss and a take takes a profit,
            as a market order (``STOP``, ``TAKE``) or as a limit (``STOP_LIMIT``, ``TAKE_LIMIT``).
        qty: Units to trade, negative to sell; for a target the position wanted.
        price: The limit; of a stop or a take the price that hits it.
        reduce_only: Never open or enlarge a position; closing one has no smallest size.
        post_only: Cancel rather than take liquidity (limits only).
        immediate: Cancel at the end of the bar it arrives in what has not traded; of a
            ``STOP_LIMIT`` or a ``TAKE_LIMIT``, the bar that hits it.
        group: Open orders of one account with the same number belong together; 0 is no group. A
            fill of one takes its quantity off the others; they are cancelled when it is done, or
            when what is left of them is worth less than the smallest trade. A target among the
            others is cancelled by any fill. All orders of a group are for one instrument.
        trigger: The price that hits a ``STOP_LIMIT`` or a ``TAKE_LIMIT``.
        trail_bps: How far the trigger stays behind the best price since the order arrived; 0 for
            one that stands. The price that would hit it, if given, is where it begins to follow.
        exclusive: A hit or any fill cancels the other orders of its group (one cancels the other).
    """

    symbol: str
    kind: OrderKind
    qty: float
    price: float | None = None
    reduce_only: bool = False
    post_only: bool = False
    immediate: bool = False
    group: int = 0
    trigger: float | None = None
    trail_bps: float = 0.0
    exclusive: bool = False

    @property
    def hit_price(self) -> float | None:
        """Return the price that hits it, or from which it trails; None if there is none."""
        return self.price if self.kind in (OrderKind.STOP, OrderKind.TAKE) else self.trigger


def check_order(order: Order, instrument: Instrument) -> None:
    """Raise a VenueError, as an exchange would reject, unless the order fits the instrument."""
    _check_types(order)
    if order.qty == 0.0 and order.kind is not OrderKind.TARGET:
        raise VenueError("an order's quantity is 0", where=order.symbol)
    _check_grid("quantity", order.qty, instrument.lot, order.symbol)
    _check_prices(order)
    for noun, price in (("price", order.price), ("trigger", order.trigger)):
        if price is not None:
            _check_grid(noun, price, instrument.tick, order.symbol)
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


def _check_prices(order: Order) -> None:
    """Refuse an order without the prices of its kind, or with others."""
    kind, trails = order.kind, order.trail_bps != 0.0
    if not (_is_finite(order.trail_bps) and 0.0 <= order.trail_bps < MAX_TRAIL_BPS):
        raise _misfit(order, "trail_bps", order.trail_bps, f"from 0 to less than {MAX_TRAIL_BPS}")
    if trails and not kind.waits:
        raise VenueError("only stops and takes can trail", where=order.symbol, found=kind.value)
    if order.exclusive and not order.group:
        raise VenueError("an exclusive order needs a group", where=order.symbol)
    priced = kind is OrderKind.LIMIT or kind.waits
    free = trails and not kind.waits_for_limit  # where it begins to trail may be left open
    if priced != (order.price is not None) and not (free and order.price is None):
        raise VenueError(
            "limit and stop orders need a price, others have none",
            where=order.symbol,
            found=f"{kind} with price {order.price}",
        )
    if kind.waits_for_limit != (order.trigger is not None) and not (
        trails and order.trigger is None
    ):
        raise VenueError(
            "a stop-limit or take-limit needs a trigger, others have none",
            where=order.symbol,
            found=f"{kind} with trigger {order.trigger}",
        )
    for noun, price in (("price", order.price), ("trigger", order.trigger)):
        if price is not None and not (_is_finite(price) and price > 0.0):
            raise VenueError(
                f"an order's {noun} is not a positive number",
                where=order.symbol,
                found=repr(price),
                expected="a finite number above 0",
            )


def _check_types(order: Order) -> None:
    """Refuse what a record of the venue cannot hold; the class itself takes anything."""
    if not isinstance(order.kind, OrderKind):
        names = ", ".join(kind.name for kind in OrderKind)
        raise _misfit(order, "kind", order.kind, f"an OrderKind ({names})")
    if not _is_finite(order.qty):
        raise _misfit(order, "quantity", order.qty, "a finite number")
    if not (is_whole(order.group) and 0 <= order.group <= MAX_GROUP):
        raise _misfit(order, "group", order.group, f"a whole number from 0 to {MAX_GROUP}")
    for noun in ("reduce_only", "post_only", "immediate", "exclusive"):
        flag = getattr(order, noun)
        if not isinstance(flag, bool | np.bool_):
            raise _misfit(order, noun, flag, "True or False")


def _misfit(order: Order, noun: str, found: object, expected: str) -> VenueError:
    what = f"an order's {noun} is not {expected}"
    return VenueError(what, where=order.symbol, found=repr(found), expected=expected)


def is_whole(value: object) -> bool:
    """Say whether a value is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    """Say whether a value is a number that a float can hold, integers of any length included."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


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
