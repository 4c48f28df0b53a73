"""Quotes, book levels and trades: their imbalances, and how they become columns of bars.

Two quantities that are often mixed up are kept apart: *order-flow* imbalance counts changes of the
best quotes (Cont, Kukanov and Stoikov), *trade* imbalance counts executed volume.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.instrument import Instrument

LEVELS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Quotes:
    """Every change of the best bid or ask; ``ts`` is the venue's time in UTC nanoseconds."""

    ts: NDArray[np.int64]
    bid: FloatArray
    bid_size: FloatArray
    ask: FloatArray
    ask_size: FloatArray

    def __post_init__(self) -> None:
        _check("quotes", self.ts, self.bid, self.bid_size, self.ask, self.ask_size)
        _refuse("quotes", "one side has no price", self.bid * self.ask == 0.0)
        _refuse("quotes", "a bid stands above the ask", self.bid > self.ask)

    def __len__(self) -> int:
        return int(self.ts.size)


@dataclass(frozen=True, slots=True, eq=False)
class BookLevels:
    """The best levels of the book after every update, best first: arrays (updates, levels).

    An empty level has size 0 and no price (NaN).
    """

    ts: NDArray[np.int64]
    bid: FloatArray
    bid_size: FloatArray
    ask: FloatArray
    ask_size: FloatArray

    def __post_init__(self) -> None:
        _check("book", self.ts, self.bid_size, self.ask_size)
        _refuse("book", "a bid stands above the ask", (self.bid > self.ask)[:, 0])

    def __len__(self) -> int:
        return int(self.ts.size)


@dataclass(frozen=True, slots=True, eq=False)
class Tape:
    """Executed trades; ``side`` is +1 where the taker bought and -1 where it sold."""

    ts: NDArray[np.int64]
    trade_id: NDArray[np.int64]
    price: FloatArray
    size: FloatArray
    side: NDArray[np.int64]

    def __post_init__(self) -> None:
        _check("trades", self.ts, self.price, self.size)
        _refuse("trades", "a trade has no price", self.price == 0.0)
        # Overlapping downloads repeat trades, and counting them twice bends every imbalance.
        _refuse("trades", "a trade comes twice or out of order", np.diff(self.trade_id) <= 0, 1)

    def __len__(self) -> int:
        return int(self.ts.size)


def quoted_spread(quotes: Quotes) -> FloatArray:
    """Return best ask less best bid, in quote units."""
    return quotes.ask - quotes.bid


def order_book_imbalance(
    bid_size: FloatArray, ask_size: FloatArray, levels: int = LEVELS
) -> FloatArray:
    """Return (bids - asks) / (bids + asks) over the best levels; NaN where both sides are empty.

    Example:
        >>> order_book_imbalance(np.array([[3.0, 3.0]]), np.array([[1.0, 1.0]]), levels=2).tolist()
        [0.5]
    """
    if not 1 <= levels <= bid_size.shape[1]:
        raise ConfigError("the book does not hold so many levels", found=levels)
    bids = bid_size[:, :levels].sum(axis=1)
    asks = ask_size[:, :levels].sum(axis=1)
    return _ratio(bids - asks, bids + asks)


def order_flow_imbalance(quotes: Quotes) -> FloatArray:
    """Return what each quote update added to the pressure to buy, in base units.

    A bid that rises or stays adds its new size, one that falls or stays takes away its old size;
    asks count the other way round. The first update has nothing before it: NaN.
    """
    if len(quotes) == 0:
        return np.empty(0)
    bid, ask = np.diff(quotes.bid), np.diff(quotes.ask)
    demand = np.where(bid >= 0, quotes.bid_size[1:], 0) - np.where(
        bid <= 0, quotes.bid_size[:-1], 0
    )
    supply = np.where(ask <= 0, quotes.ask_size[1:], 0) - np.where(
        ask >= 0, quotes.ask_size[:-1], 0
    )
    return np.concatenate([[np.nan], demand - supply])


def trade_imbalance(tape: Tape, bars: Bars) -> FloatArray:
    """Return (taker buys - taker sells) / volume of each bar; NaN where nothing was traded."""
    row, inside = _rows(tape.ts, bars)
    signed = _sums(row, tape.side[inside] * tape.size[inside], len(bars))
    return _ratio(signed, _sums(row, tape.size[inside], len(bars)))


def attach_book_columns(
    bars: Bars,
    quotes: Quotes,
    book: BookLevels | None = None,
    *,
    heard_until_ns: int | None = None,
) -> Bars:
    """Return the bars with ``spread`` and ``ofi``, and with ``obi`` if the book is given.

    Spread and book imbalance are those standing at the close; order flow is summed over the bar. A
    bar is NaN where the feed said nothing in it or did not last to its close; its order flow also
    where no quote came before its open, because the first change in it is then not known.

    Args:
        bars: Bars of the same instrument.
        quotes: Best-quote updates.
        book: Book levels after each update; without it there is no ``obi``, not a substitute.
        heard_until_ns: When listening stopped; by default at each feed's own last update.
    """
    end = _last(quotes.ts) if heard_until_ns is None else heard_until_ns
    row, inside = _rows(quotes.ts, bars)
    heard = bars.ts + bars.period_ns <= end
    spread = _at_close(row, quoted_spread(quotes)[inside], heard)
    flow = _sums(row, np.nan_to_num(order_flow_imbalance(quotes))[inside], len(bars))
    first = quotes.ts[0] if len(quotes) else end
    columns = {
        "spread": spread,
        "ofi": np.where(np.isnan(spread) | (bars.ts <= first), np.nan, flow),
    }
    if book is not None:
        end = _last(book.ts) if heard_until_ns is None else heard_until_ns
        row, inside = _rows(book.ts, bars)
        imbalance = order_book_imbalance(book.bid_size, book.ask_size)
        columns["obi"] = _at_close(row, imbalance[inside], bars.ts + bars.period_ns <= end)
    return replace(bars, extra={**bars.extra, **columns})


def bars_from_trades(tape: Tape, period_ns: int, instrument: Instrument, origin: str = "") -> Bars:
    """Return the bars that the tape covers from open to close, with trade counts and taker buys.

    The pieces before the first and after the last full bar are left out, because a bar that is not
    finished says nothing yet. A bar without trades stands still at the last price, with volume 0.
    """
    if len(tape) == 0 or period_ns <= 0:
        raise DataError("no bars can be made", found=f"{len(tape)} trades, period {period_ns} ns")
    first = -(-int(tape.ts[0]) // period_ns)
    last = int(tape.ts[-1]) // period_ns
    edges = period_ns * np.arange(first, max(first, last) + 1, dtype=np.int64)
    cut = np.searchsorted(tape.ts, edges, side="left")
    start, stop = cut[:-1], cut[1:]
    traded = stop > start
    # The price before each bar: the last trade earlier than its open.
    before = tape.price[np.maximum(start - 1, 0)]
    opened, high, low, close = before.copy(), before.copy(), before.copy(), before.copy()
    if traded.any():
        prices = tape.price[: stop[-1]]
        opened[traded] = prices[start[traded]]
        close[traded] = prices[stop[traded] - 1]
        high[traded] = np.maximum.reduceat(prices, start[traded])
        low[traded] = np.minimum.reduceat(prices, start[traded])
    row = np.searchsorted(edges, tape.ts[cut[0] : cut[-1]], side="right") - 1
    size = tape.size[cut[0] : cut[-1]]
    bought = np.where(tape.side[cut[0] : cut[-1]] > 0, size, 0.0)
    count = len(edges) - 1
    extra = {
        "trades": (stop - start).astype(np.float64),
        "taker_buy": _sums(row, bought, count),
    }
    volume = _sums(row, size, count)
    source = Provenance(source="file", origin=origin)
    return Bars(instrument, period_ns, edges[:-1], opened, high, low, close, volume, extra, source)


def _rows(ts: NDArray[np.int64], bars: Bars) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the bar of every event that falls into one, and which events do."""
    if len(bars) == 0:
        return np.empty(0, dtype=np.int64), np.zeros(ts.size, dtype=bool)
    row = np.searchsorted(bars.ts, ts, side="right") - 1
    inside = (row >= 0) & (ts < bars.ts[row] + bars.period_ns)
    return row[inside].astype(np.int64), inside


def _sums(row: NDArray[Any], values: NDArray[Any], count: int) -> FloatArray:
    return np.bincount(row, weights=values, minlength=count).astype(np.float64)


def _at_close(row: NDArray[np.int64], values: FloatArray, heard: NDArray[np.bool_]) -> FloatArray:
    """Return the last value in each bar, NaN where there is none or the feed ended early."""
    out = np.full(heard.size, np.nan)
    last = np.flatnonzero(np.diff(row, append=-1))
    out[row[last]] = values[last]
    out[~heard] = np.nan
    return out


def _last(ts: NDArray[np.int64]) -> int:
    return int(ts[-1]) if ts.size else 0


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    out = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=out, where=whole > 0.0)
    return out


def _check(where: str, ts: NDArray[np.int64], *columns: FloatArray) -> None:
    _refuse(where, "time goes back", np.diff(ts) < 0, 1)
    for column in columns:
        if column.shape[:1] != ts.shape or column.shape != columns[0].shape:
            raise DataError("columns differ in length", where=where, found=column.shape)
        bad = ~(np.isfinite(column) & (column >= 0.0))
        _refuse(where, "a price or size is not a number of at least 0", bad)


def _refuse(where: str, what: str, bad: NDArray[np.bool_], offset: int = 0) -> None:
    if bad.any():
        raise DataError(what, where=f"{where} row {int(np.argwhere(bad)[0][0]) + offset}")
