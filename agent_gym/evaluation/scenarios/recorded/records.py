"""The rows of a recorded log in our own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from agent_gym.core.clock import HOUR_NS, MINUTE_NS
from agent_gym.evaluation.scenarios.recorded.source import Stream

OrderKind: TypeAlias = Literal["limit", "market", "stop"]
OrderStatus: TypeAlias = Literal[
    "open", "filled", "partial", "cancelled", "timeout", "rejected", "failed"
]
ProtectionKind: TypeAlias = Literal["sl", "tp"]
ProtectionEvent: TypeAlias = Literal["created", "fixed", "cancelled", "triggered", "lost"]


class RecordedSignal(Struct, frozen=True):
    """A signal; ``raw`` is what the desk is handed, without what the log did not hold."""

    time_ns: int
    signal_id: str
    symbol: str
    raw: dict[str, Any]
    quality: float | None = None
    confidence: float | None = None
    accepted: bool | None = None
    code: str | None = None


class RecordedOrder(Struct, frozen=True):
    """An order from its first row, with the status of its last; a sold quantity is below 0."""

    time_ns: int
    order_id: str
    kind: OrderKind
    quantity: float
    status: OrderStatus | None = None
    symbol: str | None = None
    price: float | None = None
    signal_id: str | None = None
    fallback_of: str | None = None


class RecordedFill(Struct, frozen=True):
    """A fill of an order; the quantity has the sign of its order or is unsigned."""

    time_ns: int
    order_id: str
    quantity: float
    price: float
    fee: float | None = None


class RecordedProtection(Struct, frozen=True):
    """Something that happened to a stop (sl) or a profit target (tp)."""

    time_ns: int
    kind: ProtectionKind
    event: ProtectionEvent
    symbol: str | None = None
    quantity: float | None = None
    price: float | None = None
    order_id: str | None = None


Record: TypeAlias = RecordedSignal | RecordedOrder | RecordedFill | RecordedProtection


class UnreadRow(Struct, frozen=True):
    """A row that could not be read: which (counted from 1), and why."""

    stream: str
    row: int
    column: str
    why: str


class RecordedLog(Struct, frozen=True):
    """What was read of a log, in the order of time.

    ``present`` names the streams that the log has, even without a row in the window; a figure of a
    stream that it has not is None. ``unread`` counts the rows that could not be read, ``named``
    holds the first of them.
    """

    signals: tuple[RecordedSignal, ...]
    orders: tuple[RecordedOrder, ...]
    fills: tuple[RecordedFill, ...]
    protections: tuple[RecordedProtection, ...]
    present: tuple[Stream, ...]
    start_ns: int
    end_ns: int
    unread: Mapping[str, int]
    named: tuple[UnreadRow, ...]
    data_hash: str

    @property
    def hours(self) -> float:
        """Return how long the window is; a single moment counts as a minute."""
        return max(self.end_ns - self.start_ns, MINUTE_NS) / HOUR_NS

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the results must know of the log."""
        counts = [
            f"{count:,} rows of {stream} could not be read" for stream, count in self.unread.items()
        ]
        rows = [f"{row.stream} row {row.row}, {row.column}: {row.why}" for row in self.named]
        absent = [] if self.present else ["no stream was found"]
        return (*counts, *rows, *absent)
