"""What a spot floor keeps of orders and fills, and why it refuses one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from agent_gym.core.errors import VenueError
from agent_gym.exchange.orders import OrderKind

Validity: TypeAlias = Literal["gtc", "ioc", "fok"]
What: TypeAlias = Literal["new", "hit", "trade", "cancelled", "expired"]


class Refusal(StrEnum):
    """Why a floor does not take an order or a cancel."""

    BALANCE = "the account has too little for this order"
    WOULD_TAKE = "a post-only order would take at once"
    TRIGGERS = "a stop would be hit at once"
    TOO_SMALL = "the order is worth less than the smallest trade"
    NO_LIQUIDITY = "nothing is offered in this bar"
    CLOSED = "the market has ended"
    UNKNOWN = "there is no such open order"
    UNSUPPORTED = "an order that waits for a price is good until it is cancelled"


class Refused(VenueError):
    """A floor says no; ``reason`` says why."""

    def __init__(self, reason: Refusal, where: str) -> None:
        super().__init__(reason.value, where=where)
        self.reason = reason


class TicketStatus(StrEnum):
    """Where an order stands for the one who sent it."""

    NEW = "new"
    PARTIAL = "partially filled"
    FILLED = "filled"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def live(self) -> bool:
        """Say whether it can still trade."""
        return self in (TicketStatus.NEW, TicketStatus.PARTIAL)


@dataclass(frozen=True, slots=True)
class Wish:
    """What an account asks for.

    Attributes:
        symbol: The instrument.
        kind: Any but a target.
        qty: Units, negative to sell.
        price: Of a limit; of a stop or a take the price that hits it.
        validity: Until it is cancelled; what trades at once; all at once or nothing.
        post_only: Refuse it rather than take.
        client_id: How the account calls it.
        trigger: What hits an order that becomes a limit then.
        trail_bps: How far the trigger follows the price; 0 for one that stands.
    """

    symbol: str
    kind: OrderKind
    qty: float
    price: float | None = None
    validity: Validity = "gtc"
    post_only: bool = False
    client_id: str = ""
    trigger: float | None = None
    trail_bps: float = 0.0

    @property
    def hit_price(self) -> float | None:
        """Return the price that it waits for; None if it waits for none."""
        return self.price if self.kind in (OrderKind.STOP, OrderKind.TAKE) else self.trigger

    @property
    def limit_price(self) -> float | None:
        """Return the limit that it has, or will have; None if it takes any price."""
        return None if self.kind in (OrderKind.STOP, OrderKind.TAKE) else self.price


@dataclass(frozen=True, slots=True)
class Fill:
    """A trade of one order; ``qty`` is negative if it sold, ``bar`` is where it happened."""

    id: int
    order: int
    account: str
    symbol: str
    ts: int
    bar: int
    qty: float
    price: float
    fee: float
    maker: bool


@dataclass(slots=True)
class Ticket:
    """An order of an account from its first moment to its last.

    ``list_id`` names the pair it belongs to; ``hit_ns`` is when a price has hit its trigger.
    """

    id: int
    account: str
    wish: Wish
    created_ns: int
    updated_ns: int
    status: TicketStatus = TicketStatus.NEW
    fills: list[Fill] = field(default_factory=list)
    list_id: int | None = None
    hit_ns: int | None = None

    @property
    def filled(self) -> float:
        """Return the units traded, without sign."""
        return sum(abs(fill.qty) for fill in self.fills)

    @property
    def worth(self) -> float:
        """Return what they cost, without fees."""
        return sum(abs(fill.qty) * fill.price for fill in self.fills)

    @property
    def fee(self) -> float:
        """Return the fees paid."""
        return sum(fill.fee for fill in self.fills)

    @property
    def works(self) -> bool:
        """Say whether it is, or was, in the market: nothing it waits for is still to come."""
        return not self.wish.kind.waits or self.hit_ns is not None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two orders of which one cancels the other."""

    id: int
    account: str
    symbol: str
    client_id: str
    created_ns: int
    tickets: tuple[Ticket, ...]

    @property
    def live(self) -> bool:
        """Say whether one of them can still trade."""
        return any(ticket.status.live for ticket in self.tickets)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that its owner has to be told: a new order, a hit trigger, a fill, an end.

    The figures are those of that moment: a ticket goes on, and is told of again.
    """

    ticket: Ticket
    what: What
    status: TicketStatus
    filled: float
    worth: float
    works: bool = True
    fill: Fill | None = None


@dataclass(frozen=True, slots=True)
class Balance:
    """How much of an asset an account can dispose of, and how much its orders hold back."""

    free: float
    locked: float


@dataclass(frozen=True, slots=True)
class Mark:
    """An account at the close of a bar."""

    bar: int
    equity: float
    cash: float
    positions: tuple[float, ...]
