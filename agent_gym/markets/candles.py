"""Candles as an exchange shows them at one moment: the past, and the one that has only opened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.markets.bars import Bars

WEEK_NS = 7 * DAY_NS
MONDAY_NS = 4 * DAY_NS  # 1970-01-05, because weeks open on Monday
PRINTS_A_BAR = 4


@dataclass(frozen=True, slots=True)
class Candle:
    """A candle; ``worth`` is the volume in quote units, at the middle of each bar."""

    open_ns: int
    close_ns: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    worth: float
    trades: int
    taker_buy: float
    taker_worth: float


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a series has been played.

    Attributes:
        bars: All of it.
        last: The last bar that is over; nothing behind it is looked at but where the next opens.
        price: Where the next one opens.
    """

    bars: Bars
    last: int
    price: float

    @property
    def is_open(self) -> bool:
        """Say whether there is a next bar."""
        return self.last + 1 < len(self.bars)


def candles(
    moment: Moment,
    period_ns: int,
    limit: int,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> list[Candle]:
    """Return candles that open in [start, end]: the first ``limit``, without start the last.

    The newest one holds the bars of it that are over, and the price at which the next has opened.
    """
    bars, factor = moment.bars, period_ns // moment.bars.period_ns
    stop = moment.last + 2 if moment.is_open else moment.last + 1
    ts = bars.ts[:stop]
    if end_ns is not None:
        stop = int(np.searchsorted(ts, _opens(np.array([end_ns]), period_ns)[0] + period_ns))
    if start_ns is not None:
        first = int(np.searchsorted(ts, -_opens(np.array([-start_ns]), period_ns)[0]))
        stop = min(stop, first + limit * factor)
    else:
        first = max(0, stop - (limit + 1) * factor)
    if first >= stop:
        return []
    opens = _opens(ts[first:stop], period_ns)
    starts = np.flatnonzero(np.r_[True, opens[1:] != opens[:-1]])
    made = _made(moment, first, stop, starts, period_ns, opens)
    if start_ns is not None:
        return [one for one in made if one.open_ns >= start_ns][:limit]
    if first > 0 and len(made) > 1 and _opens(ts[first - 1 : first], period_ns)[0] == opens[0]:
        made = made[1:]  # cut off at its beginning
    return made[-limit:]


def _made(
    moment: Moment,
    first: int,
    stop: int,
    starts: NDArray[np.int64],
    period_ns: int,
    opens: NDArray[np.int64],
) -> list[Candle]:
    rows = moment.bars.rows(first, stop)
    columns = {name: column.copy() for name, column in rows.columns().items()}
    if stop == moment.last + 2:  # of the bar that has only opened nothing else is known
        for name in ("open", "high", "low", "close"):
            columns[name][-1] = moment.price
        for name in columns.keys() - {"open", "high", "low", "close"}:
            columns[name][-1] = 0.0
    volume = columns["volume"]
    middle = (columns["high"] + columns["low"] + columns["close"]) / 3.0
    bought = columns.get("taker_buy", 0.5 * volume)
    bought = np.where(np.isfinite(bought), bought, 0.5 * volume)
    count = columns.get("trades", np.where(volume > 0.0, PRINTS_A_BAR, 0))
    last = np.r_[starts[1:], opens.size] - 1
    table = zip(
        opens[starts].tolist(),
        columns["open"][starts].tolist(),
        np.maximum.reduceat(columns["high"], starts).tolist(),
        np.minimum.reduceat(columns["low"], starts).tolist(),
        columns["close"][last].tolist(),
        np.add.reduceat(volume, starts).tolist(),
        np.add.reduceat(volume * middle, starts).tolist(),
        np.add.reduceat(np.nan_to_num(count), starts).tolist(),
        np.add.reduceat(bought, starts).tolist(),
        np.add.reduceat(bought * middle, starts).tolist(),
        strict=True,
    )
    return [
        Candle(at, at + period_ns, o, h, lo, c, v, worth, int(n), buy, buy_worth)
        for at, o, h, lo, c, v, worth, n, buy, buy_worth in table
    ]


def _opens(ts: NDArray[np.int64], period_ns: int) -> NDArray[np.int64]:
    """Return when the candle of each moment opened, on the UTC grid."""
    shift = MONDAY_NS if period_ns % WEEK_NS == 0 else 0
    found: NDArray[np.int64] = (ts - shift) // period_ns * period_ns + shift
    return found


@dataclass(frozen=True, slots=True)
class Print:
    """A trade of others; bars do not hold any, so each is shown as four."""

    id: int
    ts: int
    price: float
    qty: float
    seller_took: bool


def prints(bars: Bars, bar: int) -> list[Print]:
    """Return a bar as four trades: open, the nearer turn, the farther one, close.

    Example:
        >>> from agent_gym.markets.instrument import Instrument
        >>> row = [np.array([value]) for value in (10.0, 12.0, 9.0, 11.0, 8.0)]
        >>> [one.price for one in prints(Bars(Instrument(), 4, np.array([0]), *row), 0)]
        [10.0, 9.0, 12.0, 11.0]
    """
    o, h, lo, c = (float(getattr(bars, name)[bar]) for name in ("open", "high", "low", "close"))
    path = (o, lo, h, c) if c >= o else (o, h, lo, c)
    part = float(bars.volume[bar]) / PRINTS_A_BAR
    at, step = int(bars.ts[bar]), bars.period_ns // PRINTS_A_BAR
    return [
        Print(bar * PRINTS_A_BAR + i, at + i * step, price, part, i > 0 and price < path[i - 1])
        for i, price in enumerate(path)
    ]
