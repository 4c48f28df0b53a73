"""Order books and trades as small columnar records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.order_flow import Quotes, Tape, order_book_imbalance

MS_NS = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class OrderBook:
    """One moment of an order book, best price first on both sides.

    ``ts_ns`` is the exchange's time, or None where it sends none; ``update_id`` is its counter.
    """

    ts_ns: int | None
    update_id: int | None
    bid_price: FloatArray
    bid_size: FloatArray
    ask_price: FloatArray
    ask_size: FloatArray

    @property
    def mid(self) -> float:
        """Return the price between best bid and best ask."""
        return float(self.bid_price[0] + self.ask_price[0]) / 2.0

    @property
    def spread(self) -> float:
        """Return best ask less best bid, in quote units."""
        return float(self.ask_price[0] - self.bid_price[0])

    def imbalance(self, levels: int = 5) -> float:
        """Return (bids - asks) / (bids + asks) over the best levels there are, -1 to 1."""
        here = min(levels, self.bid_size.size, self.ask_size.size)
        sides = self.bid_size[None, :here], self.ask_size[None, :here]
        return float(order_book_imbalance(*sides, here)[0])


def quotes_of(books: Sequence[OrderBook]) -> Quotes:
    """Return the best quotes of books in time order, for spread and order-flow imbalance."""
    stamps = [book.ts_ns for book in books]
    if any(stamp is None for stamp in stamps):
        raise DataError(
            "an order book without a time cannot stand in a series",
            remedy="Use the stream: it carries the exchange's time",
        )
    best = np.array(
        [(b.bid_price[0], b.bid_size[0], b.ask_price[0], b.ask_size[0]) for b in books]
    ).reshape(-1, 4)
    return Quotes(np.array(stamps, dtype=np.int64), *best.T.copy())


@dataclass(frozen=True, slots=True, eq=False)
class Trades:
    """Trades in time order, each id once; ``side`` is +1 where the taker bought, -1 where it sold.

    ``side`` is 0 where the exchange does not say.
    """

    ids: tuple[str, ...]
    ts: NDArray[np.int64]
    price: FloatArray
    size: FloatArray
    side: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, start: int | None, stop: int | None) -> Trades:
        """Return a part of the trades, like a slice."""
        cut = slice(start, stop)
        columns = (self.ts[cut], self.price[cut], self.size[cut], self.side[cut])
        return Trades(self.ids[cut], *columns)

    def take(self, places: list[int]) -> Trades:
        """Return the trades at these places."""
        ids = tuple(self.ids[at] for at in places)
        return Trades(
            ids, self.ts[places], self.price[places], self.size[places], self.side[places]
        )

    def tape(self) -> Tape:
        """Return the trades for the measures of ``markets.order_flow``.

        Raises:
            DataError: If ids are not growing numbers, or a trade does not say who took.
        """
        if not all(name.isdecimal() for name in self.ids) or not np.all(self.side):
            raise DataError("trades without numbered ids and sides make no tape")
        ids = np.array([int(name) for name in self.ids], dtype=np.int64)
        return Tape(self.ts, ids, self.price, self.size, self.side.astype(np.int64))


def read_order_book(raw: Any, depth: int, where: str) -> OrderBook:
    """Return a checked book of at most ``depth`` levels from the exchange's answer.

    Raises:
        DataError: If a side is empty, unsorted, crossed or holds something that is no number.
    """
    bid_price, bid_size = _side(raw["bids"], depth, f"{where} bids")
    ask_price, ask_size = _side(raw["asks"], depth, f"{where} asks")
    if np.any(np.diff(bid_price) >= 0.0) or np.any(np.diff(ask_price) <= 0.0):
        raise DataError("the levels of the order book are out of order", where=where)
    if bid_price[0] >= ask_price[0]:
        raise DataError(
            "the order book is crossed",
            where=where,
            found=f"bid {bid_price[0]} against ask {ask_price[0]}",
        )
    return OrderBook(
        ts_ns=None if raw.get("timestamp") is None else int(raw["timestamp"]) * MS_NS,
        update_id=None if raw.get("nonce") is None else int(raw["nonce"]),
        bid_price=bid_price,
        bid_size=bid_size,
        ask_price=ask_price,
        ask_size=ask_size,
    )


def _side(levels: Any, depth: int, where: str) -> tuple[FloatArray, FloatArray]:
    rows = [tuple(level[:2]) for level in levels[:depth]]
    if not rows:
        raise DataError("a side of the order book is empty", where=where)
    table = np.array(rows, dtype=np.float64)
    if not np.all(np.isfinite(table)) or np.any(table <= 0.0):
        raise DataError("a level of the order book is not a positive price and size", where=where)
    return _frozen(table[:, 0]), _frozen(table[:, 1])


def read_trades(raw: Sequence[Any], where: str) -> Trades:
    """Return the trades in time order with each id once.

    Raises:
        DataError: If a trade has no id, no positive price and size, or two differ under one id.
    """
    found: dict[str, tuple[int, float, float, int]] = {}
    for trade in raw:
        name = trade.get("id")
        if name is None:
            raise DataError(
                "a trade has no id", where=where, remedy="Duplicates could not be told apart"
            )
        row = _trade_row(trade, f"{where} trade {name}")
        if found.setdefault(str(name), row) != row:
            raise DataError("two different trades have one id", where=f"{where} trade {name}")
    ids = sorted(found, key=lambda name: (found[name][0], _id_order(name)))
    columns = tuple(zip(*(found[name] for name in ids), strict=True)) or ((), (), (), ())
    return Trades(
        ids=tuple(ids),
        ts=np.array(columns[0], dtype=np.int64),
        price=_frozen(np.array(columns[1], dtype=np.float64)),
        size=_frozen(np.array(columns[2], dtype=np.float64)),
        side=np.array(columns[3], dtype=np.int8),
    )


def _trade_row(trade: Any, where: str) -> tuple[int, float, float, int]:
    try:
        row = (int(trade["timestamp"]) * MS_NS, float(trade["price"]), float(trade["amount"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError("a trade has no time, price or size", where=where, found=error) from error
    if not (np.isfinite(row[1]) and np.isfinite(row[2]) and row[1] > 0.0 and row[2] > 0.0):
        raise DataError("a trade has no positive price and size", where=where, found=row[1:])
    return (*row, {"buy": 1, "sell": -1}.get(trade.get("side"), 0))


def _id_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)


def _frozen(column: FloatArray) -> FloatArray:
    column = np.ascontiguousarray(column)
    column.setflags(write=False)
    return column
