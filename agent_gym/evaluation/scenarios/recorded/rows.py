"""From a foreign row to one of our records, column by column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

import msgspec

from agent_gym.core.clock import SECOND_NS
from agent_gym.core.registry import unknown
from agent_gym.evaluation.scenarios.recorded.cells import (
    UnreadableError,
    read_flag,
    read_number,
    read_symbol,
    read_text,
    read_time,
)
from agent_gym.evaluation.scenarios.recorded.records import (
    OrderKind,
    OrderStatus,
    ProtectionEvent,
    ProtectionKind,
    Record,
    RecordedFill,
    RecordedOrder,
    RecordedProtection,
    RecordedSignal,
)
from agent_gym.evaluation.scenarios.recorded.source import LogNames, Stream, StreamNames, TimeUnit

T = TypeVar("T")
Reader = Callable[[str, Any], T]

# Our columns, and where else our own systems keep them.
COLUMNS: Mapping[Stream, Mapping[str, tuple[str, ...]]] = {
    "signals": {
        "timestamp": (),
        "signal_id": (),
        "symbol": (),
        "base": ("params.base",),
        "quote": ("params.quote",),
        "strategy": (),
        "side": ("params.side",),
        "amount": ("params.amount",),
        "price": ("params.price",),
        "confidence": ("params.confidence",),
        "quality": ("features.quality",),
        "accepted": (),
        "code": (),
    },
    "orders": {
        name: ()
        for name in (
            "timestamp",
            "order_id",
            "symbol",
            "side",
            "quantity",
            "kind",
            "price",
            "status",
            "signal_id",
            "fallback_of",
        )
    },
    "fills": {name: () for name in ("timestamp", "order_id", "quantity", "price", "fee")},
    "protections": {
        name: ()
        for name in ("timestamp", "kind", "event", "symbol", "quantity", "price", "order_id")
    },
}


def check_names(names: LogNames) -> None:
    """Refuse a mapping that speaks of a column which the stream does not have."""
    for stream, told in names.streams.items():
        known = tuple(COLUMNS[stream])
        for part in (told.columns, told.values, told.constants, told.scales):
            for column in part:
                if column not in known:
                    raise unknown(f"column of {stream}", column, known)


class Cells:
    """The rows of one stream, one at a time, read by our names."""

    def __init__(self, stream: Stream, names: LogNames) -> None:
        told: StreamNames = names.of(stream)
        self.row: Mapping[str, Any] = {}
        self._unit: TimeUnit = names.time_unit
        self._constants, self._values, self._scales = told.constants, told.values, told.scales
        self._places = {
            column: tuple(
                (place, tuple(place.split(".")))
                for place in ((told.columns[column],) if column in told.columns else (column, *own))
            )
            for column, own in COLUMNS[stream].items()
        }

    def value(self, column: str) -> Any:
        """Return a cell as it is, None where there is none; constants stand in for no column."""
        found = None
        for place, steps in self._places[column]:
            found = self.row.get(place)
            if found is None and len(steps) > 1:
                found = self._inside(place, steps)
            if found is not None:
                break
        if found is None or found == "":
            return self._constants.get(column)
        translated = self._values.get(column)
        return found if translated is None else translated.get(str(found), found)

    def _inside(self, place: str, steps: tuple[str, ...]) -> Any:
        at: Any = self.row
        for step in steps:
            if isinstance(at, str) and at.startswith("{"):
                at = _unpacked(place, at)
            if not isinstance(at, Mapping):
                return None
            at = at.get(step)
        return at

    def need(self, column: str, read: Reader[T]) -> T:
        """Return a cell that must be there."""
        value = self.value(column)
        if value is None:
            raise UnreadableError(column, "missing")
        return read(column, value)

    def maybe(self, column: str, read: Reader[T]) -> T | None:
        """Return a cell that may be missing; what is there must be readable."""
        value = self.value(column)
        return None if value is None else read(column, value)

    def number(self, column: str) -> float | None:
        """Return a number in our scale, None where there is none."""
        found = self.maybe(column, read_number)
        return None if found is None else found * self._scales.get(column, 1.0)

    def some_number(self, column: str) -> float:
        """Return a number that must be there."""
        found = self.number(column)
        if found is None:
            raise UnreadableError(column, "missing")
        return found

    def time(self) -> int:
        """Return when the row was written."""
        value = self.value("timestamp")
        if value is None:
            raise UnreadableError("timestamp", "missing")
        return read_time("timestamp", value, self._unit)


def _unpacked(place: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise UnreadableError(place, "not JSON") from None


def _word(*known: str) -> Reader[Any]:
    def read(column: str, value: Any) -> str:
        word = read_text(column, value).lower()
        if word not in known:
            raise UnreadableError(column, f"{word[:40]!r} is none of {', '.join(known)}")
        return word

    return read


_SIDE = _word("buy", "sell")
_KIND, _STATUS = _word(*get_args(OrderKind)), _word(*get_args(OrderStatus))
_GUARD, _EVENT = _word(*get_args(ProtectionKind)), _word(*get_args(ProtectionEvent))


def _signal(cells: Cells) -> RecordedSignal:
    time_ns, name = cells.time(), cells.need("signal_id", read_text)
    symbol = cells.maybe("symbol", read_symbol)
    if symbol is None:
        base, quote = cells.need("base", read_text), cells.need("quote", read_text)
        symbol = read_symbol("base", f"{base}/{quote}")
    confidence = cells.number("confidence")
    if confidence is not None and not 0.0 <= confidence <= 1.0:
        raise UnreadableError("confidence", f"{confidence} does not lie between 0 and 1")
    base, _, quote = symbol.partition("/")
    params = {
        "amount": cells.number("amount"),
        "base": base,
        "quote": quote,
        "side": cells.maybe("side", _SIDE),
        "price": cells.number("price"),
        "confidence": confidence,
    }
    raw: dict[str, Any] = {
        "signal_id": name,
        "strategy": cells.maybe("strategy", read_text),
        "params": {key: value for key, value in params.items() if value is not None},
        "timestamp": time_ns / SECOND_NS,
        "source": "recorded",
    }
    return RecordedSignal(
        time_ns,
        name,
        symbol,
        {key: value for key, value in raw.items() if value is not None},
        cells.number("quality"),
        confidence,
        cells.maybe("accepted", read_flag),
        cells.maybe("code", read_text),
    )


def _order(cells: Cells) -> RecordedOrder:
    quantity = cells.some_number("quantity")
    side = cells.maybe("side", _SIDE)
    if side is not None:
        quantity = abs(quantity) if side == "buy" else -abs(quantity)
    if quantity == 0.0:
        raise UnreadableError("quantity", "an order of nothing")
    return RecordedOrder(
        cells.time(),
        cells.need("order_id", read_text),
        cells.need("kind", _KIND),
        quantity,
        cells.maybe("status", _STATUS),
        cells.maybe("symbol", read_symbol),
        cells.number("price"),
        cells.maybe("signal_id", read_text),
        cells.maybe("fallback_of", read_text),
    )


def _fill(cells: Cells) -> RecordedFill:
    return RecordedFill(
        cells.time(),
        cells.need("order_id", read_text),
        cells.some_number("quantity"),
        cells.some_number("price"),
        cells.number("fee"),
    )


def _protection(cells: Cells) -> RecordedProtection:
    return RecordedProtection(
        cells.time(),
        cells.need("kind", _GUARD),
        cells.need("event", _EVENT),
        cells.maybe("symbol", read_symbol),
        cells.number("quantity"),
        cells.number("price"),
        cells.maybe("order_id", read_text),
    )


READERS: Mapping[Stream, Callable[[Cells], Record]] = {
    "signals": _signal,
    "orders": _order,
    "fills": _fill,
    "protections": _protection,
}
