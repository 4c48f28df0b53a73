"""What a stream has shown so far: nothing twice, nothing half, no gap unreported.

Trackers hold no connection and know no ccxt; they turn what a websocket delivers into events.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_gym.core.errors import DataError
from agent_gym.markets.live.books import MS_NS, OrderBook, Trades, read_order_book, read_trades

IDS_REMEMBERED = 50_000
IDS_TO_TRUST = 20


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch that the stream did not show; ``missing`` is None where nobody can know.

    For bars the times are the first missing open time and the next open time that was seen; for
    trades and books those of the last item before and the first one after.
    """

    from_ns: int | None
    until_ns: int | None
    missing: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class LiveBar:
    """One finished bar."""

    ts_ns: int
    open: float
    high: float
    low: float
    close: float
    volume: float


@dataclass(slots=True)
class BarTracker:
    """Tells finished bars from running ones.

    ccxt does not say that a bar is finished: it is when the next one begins. That is only true if
    nothing was lost in between, so a bar whose last news came over an earlier connection is
    reported as a gap, never handed on half done.
    """

    period_ns: int
    duplicates: int = 0
    _running: LiveBar | None = None
    _current: bool = True
    _reason: str = "missing on the exchange"

    def reconnected(self, reason: str) -> None:
        """Note that what is running was seen over a connection that is gone."""
        self._current = False
        self._reason = reason

    def update(self, rows: Sequence[Sequence[Any]]) -> Iterator[LiveBar | Gap]:
        """Take news of bars, oldest first, and yield what is now certain.

        Raises:
            DataError: At a bar that cannot be; what came before it has been yielded.
        """
        for row in rows:
            bar = read_bar(row)
            running = self._running
            if running is not None and bar.ts_ns < running.ts_ns:
                self.duplicates += 1
                continue
            events: list[LiveBar | Gap] = []
            if running is not None and bar.ts_ns > running.ts_ns:
                events = self._finish(running, bar.ts_ns)
                self._reason = "missing on the exchange"
            self._running, self._current = bar, True
            yield from events

    def _finish(self, running: LiveBar, next_ns: int) -> list[LiveBar | Gap]:
        events: list[LiveBar | Gap] = [running] if self._current else []
        lost_from = running.ts_ns + self.period_ns * len(events)
        if lost_from < next_ns:
            missing = (next_ns - lost_from) // self.period_ns
            events.append(Gap(lost_from, next_ns, missing, self._reason))
        return events


def read_bar(row: Sequence[Any]) -> LiveBar:
    """Return a checked bar from [ms, open, high, low, close, volume]."""
    try:
        bar = LiveBar(int(row[0]) * MS_NS, *(float(value) for value in row[1:6]))
    except (TypeError, ValueError, IndexError) as error:
        raise DataError("a bar of the stream is not made of numbers", found=row) from error
    body = (bar.open, bar.close)
    sound = 0.0 < bar.low <= min(body) and max(body) <= bar.high < math.inf and bar.volume >= 0.0
    if not sound:
        raise DataError("a bar of the stream is impossible", found=row)
    return bar


@dataclass(slots=True)
class TradeTracker:
    """Hands on each trade once and notices ids that were skipped."""

    where: str
    duplicates: int = 0
    _seen: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _last_id: str | None = None
    _last_ns: int | None = None
    _run: int = 0
    _reason: str | None = None

    def reconnected(self, reason: str) -> None:
        """Note that trades may have been missed."""
        self._reason = reason

    def update(self, raw: Sequence[Any]) -> Iterator[Trades | Gap]:
        """Take trades and yield the new ones, in parts where something is missing between."""
        trades = read_trades(raw, self.where)
        fresh = [at for at, name in enumerate(trades.ids) if name not in self._seen]
        self.duplicates += len(raw) - len(fresh)
        begin = 0
        for place, at in enumerate(fresh):
            gap = self._gap(trades.ids[at], int(trades.ts[at]))
            if gap is not None:
                if place > begin:
                    yield trades.take(fresh[begin:place])
                yield gap
                begin = place
            self._note(trades.ids[at], int(trades.ts[at]))
        if begin < len(fresh):
            yield trades.take(fresh[begin:])

    def _gap(self, name: str, ts_ns: int) -> Gap | None:
        reason, self._reason = self._reason, None
        if self._last_id is None:
            return None
        step = self._step(name)
        trusted = self._run >= IDS_TO_TRUST
        self._run = self._run + 1 if step == 1 else 0
        if step == 1:
            return None
        missing = step - 1 if step is not None and trusted else None
        if reason is None and missing is None:
            return None
        return Gap(self._last_ns, ts_ns, missing, reason or "ids were skipped")

    def _step(self, name: str) -> int | None:
        last = self._last_id
        if last is None or not (last.isdecimal() and name.isdecimal()):
            return None
        return max(int(name) - int(last), 0) or None

    def _note(self, name: str, ts_ns: int) -> None:
        self._seen[name] = None
        if len(self._seen) > IDS_REMEMBERED:
            self._seen.popitem(last=False)
        last = self._last_id
        late = last is not None and name.isdecimal() and last.isdecimal() and int(name) < int(last)
        if not late:
            self._last_id, self._last_ns = name, ts_ns


@dataclass(slots=True)
class BookTracker:
    """Hands on whole, uncrossed books and says where one had to start afresh."""

    depth: int
    where: str
    duplicates: int = 0
    _begun: bool = False
    _last_ns: int | None = None
    _last_id: int | None = None
    _reason: str | None = None

    def reconnected(self, reason: str) -> None:
        """Note that changes may have been missed."""
        self._reason = reason

    def update(self, raw: Any) -> Iterator[OrderBook | Gap]:
        """Take a book and yield it, unless it is the one that was handed on last."""
        book = read_order_book(raw, self.depth, self.where)
        if book.update_id is not None and book.update_id == self._last_id and not self._reason:
            self.duplicates += 1
            return
        if self._reason is not None and self._begun:
            yield Gap(self._last_ns, book.ts_ns, None, self._reason)
        self._reason, self._begun = None, True
        self._last_ns, self._last_id = book.ts_ns, book.update_id
        yield book
