"""A reader of raw exchange captures: one message a line, as the websocket sent it.

A line is the local receive time in nanoseconds, a blank and the JSON text. Binance USD-M futures
streams are understood: ``bookTicker``, ``trade``, ``depthUpdate`` and a depth snapshot from REST.
All times handed on are the venue's transaction times; the local clock may be off by seconds.
"""

from __future__ import annotations

import gzip
import json
import zlib
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.markets.order_flow import LEVELS, BookLevels, Quotes, Tape

MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """What a capture holds of one symbol; ``ignored`` counts the messages that were not used."""

    symbol: str
    quotes: Quotes
    tape: Tape
    book: BookLevels | None
    ignored: Mapping[str, int]

    @property
    def heard_until_ns(self) -> int:
        """Return the venue's time of the last message that was used."""
        feeds = [self.quotes.ts, self.tape.ts]
        feeds += [self.book.ts] if self.book is not None else []
        return max((int(ts[-1]) for ts in feeds if ts.size), default=0)


def parse_binance_capture(path: Path, *, levels: int = LEVELS) -> Capture:
    """Read a capture of one symbol, plain or gzipped.

    The book is rebuilt from the snapshot and the depth differences after it; a difference that is
    missing is an error, because every book after it would be wrong. Without a snapshot there is no
    book.

    Raises:
        DataError: The file or a message cannot be read, or the chain of differences is broken.
    """
    messages = _Messages()
    for number, line in enumerate(_lines(path), start=1):
        try:
            messages.add(json.loads(line.partition(" ")[2]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                "a message cannot be read",
                where=f"{path.name} line {number}",
                found=repr(error),
                expected="receive time in nanoseconds, a blank, JSON",
            ) from error
    if len(messages.symbols) != 1:
        raise DataError(
            "a capture holds one symbol",
            where=path.name,
            found=sorted(messages.symbols),
            remedy="Split it by symbol first: a depth snapshot does not say whose it is",
        )
    book = _rebuild(messages, levels, path.name)
    return Capture(
        symbol=messages.symbols.pop(),
        quotes=messages.as_quotes(),
        tape=messages.as_tape(),
        book=book,
        ignored=dict(messages.ignored),
    )


@dataclass(slots=True)
class _Messages:
    """The messages of a capture by kind."""

    symbols: set[str] = field(default_factory=set)
    quotes: list[tuple[int, float, float, float, float]] = field(default_factory=list)
    trades: list[tuple[int, int, float, float, int]] = field(default_factory=list)
    depth: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)

    def add(self, message: dict[str, Any]) -> None:
        """Sort in one message."""
        if "lastUpdateId" in message:
            self.snapshots.append(message)
            return
        event = message.get("data", message)
        kind = str(event.get("e", "unknown"))
        if kind == "bookTicker":
            bid, ask = float(event["b"]), float(event["a"])
            self.quotes.append((event["T"], bid, float(event["B"]), ask, float(event["A"])))
        elif kind == "trade" and event.get("X", "MARKET") == "MARKET":
            side = -1 if event["m"] else 1  # m: the buyer was the maker, so the taker sold
            price, size = float(event["p"]), float(event["q"])
            self.trades.append((event["T"], event["t"], price, size, side))
        elif kind == "depthUpdate":
            self.depth.append(event)
        else:  # among them trades with the insurance fund, which never met the book
            self.ignored[f"{kind} {event['X']}" if kind == "trade" else kind] += 1
            return
        self.symbols.add(event["s"])

    def as_quotes(self) -> Quotes:
        """Return the best-quote updates as columns."""
        table = np.array([row[1:] for row in self.quotes], dtype=np.float64).reshape(-1, 4)
        return Quotes(_nanos(row[0] for row in self.quotes), *np.ascontiguousarray(table.T))

    def as_tape(self) -> Tape:
        """Return the trades as columns."""
        table = np.array([row[2:] for row in self.trades], dtype=np.float64).reshape(-1, 3)
        price, size, side = np.ascontiguousarray(table.T)
        ids = np.array([row[1] for row in self.trades], dtype=np.int64)
        return Tape(_nanos(row[0] for row in self.trades), ids, price, size, side.astype(np.int64))


class _Side:
    """One side of a book; prices are kept sorted, best first."""

    def __init__(self, sign: float) -> None:
        self._sign = sign  # -1 for bids, so that the best bid sorts first
        self._keys: list[float] = []
        self._sizes: dict[float, float] = {}

    def change(self, levels: list[list[str]]) -> None:
        """Set the sizes of some levels; a size of 0 removes one."""
        for price, size in levels:
            key, amount = self._sign * float(price), float(size)
            if amount > 0.0:
                if key not in self._sizes:
                    insort(self._keys, key)
                self._sizes[key] = amount
            elif key in self._sizes:
                del self._sizes[key]
                del self._keys[bisect_left(self._keys, key)]

    def best(self, levels: int) -> tuple[list[float], list[float]]:
        """Return prices and sizes of the best levels; a level that is empty has no price."""
        keys = self._keys[:levels]
        missing = levels - len(keys)
        prices = [self._sign * key for key in keys] + [np.nan] * missing
        return prices, [self._sizes[key] for key in keys] + [0.0] * missing


def _rebuild(messages: _Messages, levels: int, where: str) -> BookLevels | None:
    if not messages.snapshots:
        if messages.depth:
            messages.ignored["depthUpdate without a snapshot"] = len(messages.depth)
        return None
    snapshot = messages.snapshots[0]
    bids, asks = _Side(-1.0), _Side(1.0)
    bids.change(snapshot["bids"])
    asks.change(snapshot["asks"])
    times = [snapshot["T"]]
    rows = [(*bids.best(levels), *asks.best(levels))]
    for event in _chain(messages.depth, snapshot["lastUpdateId"], where):
        bids.change(event["b"])
        asks.change(event["a"])
        times.append(event["T"])
        rows.append((*bids.best(levels), *asks.best(levels)))
    table = np.array(rows, dtype=np.float64)
    columns = [np.ascontiguousarray(table[:, part]) for part in range(4)]
    return BookLevels(_nanos(times), *columns)


def _chain(depth: list[dict[str, Any]], snapshot_id: int, where: str) -> Iterator[dict[str, Any]]:
    """Yield the differences that follow the snapshot, checking that none is missing."""
    last: int | None = None
    for event in depth:
        if event["u"] < snapshot_id:
            continue
        linked = event["U"] <= snapshot_id if last is None else event["pu"] == last
        if not linked:
            raise DataError(
                "a depth difference is missing",
                where=f"{where} update {event['U']}",
                found=event["pu"],
                expected=snapshot_id if last is None else last,
                remedy="Cut the capture there; the book cannot be known after it",
            )
        last = event["u"]
        yield event


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as packed:
                yield from packed
        else:
            with path.open(encoding="utf-8") as plain:
                yield from plain
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError("a capture cannot be read", where=str(path), found=repr(error)) from error


def _nanos(milliseconds: Iterator[int] | list[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(list(milliseconds), dtype=np.int64) * MILLISECOND_NS
