"""Pages of bars: reading one, and walking from one to the next without ever standing still."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.live.adapter import Hiccup
from agent_gym.markets.quality import format_time

MS_NS = 1_000_000
WIDTH = 6
SMALL_PAGE = 60  # no exchange sends fewer bars at a time
_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """Bars in time order, each time once: ``rows`` holds open, high, low, close, volume."""

    ts: NDArray[np.int64]
    rows: FloatArray
    duplicates: int = 0

    def __len__(self) -> int:
        return int(self.ts.size)

    def between(self, start_ns: int, until_ns: int) -> Page:
        """Return the bars that open in [start, until)."""
        low, high = np.searchsorted(self.ts, (start_ns, until_ns))
        return Page(self.ts[low:high], self.rows[low:high])

    def at(self, ts_ns: int) -> FloatArray | None:
        """Return the bar that opens at this time, if it is here."""
        place = int(np.searchsorted(self.ts, ts_ns))
        found = place < len(self) and int(self.ts[place]) == ts_ns
        return self.rows[place] if found else None


EMPTY = Page(np.zeros(0, dtype=np.int64), np.zeros((0, WIDTH - 1)))


def read_page(raw: Sequence[Sequence[Any]]) -> Page:
    """Return a page from the exchange's rows: sorted, without repeated bars.

    Raises:
        Hiccup: If the rows are not a table of numbers, as after a broken transfer.
        DataError: If two different bars open at one time.
    """
    if not raw:
        return EMPTY
    try:
        table = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise Hiccup(f"a page of bars is not a table of numbers: {error}") from error
    if table.ndim != 2 or table.shape[1] != WIDTH:
        raise Hiccup(f"a page of bars has the shape {table.shape}, not (rows, {WIDTH})")
    if not np.all(np.isfinite(table[:, 0])) or np.any(table[:, 0] % 1.0):
        raise Hiccup("a page of bars has times that are not whole milliseconds")
    ts = table[:, 0].astype(np.int64) * MS_NS
    order = np.argsort(ts, kind="stable")
    ts, rows = ts[order], table[order, 1:]
    again = np.flatnonzero(ts[1:] == ts[:-1]) + 1
    for at in again:
        if not np.array_equal(rows[at], rows[at - 1], equal_nan=True):
            raise two_values(int(ts[at]), rows[at - 1], rows[at])
    keep = np.ones(ts.size, dtype=np.bool_)
    keep[again] = False
    return Page(ts[keep], rows[keep], duplicates=again.size)


def two_values(ts_ns: int, first: FloatArray, second: FloatArray) -> DataError:
    """Return the error for an exchange that contradicts itself."""
    return DataError(
        "the exchange sent two different bars for one time",
        where=format_time(ts_ns),
        found=f"{first.tolist()} and {second.tolist()}",
        remedy="Fetch again; if it stays so, the exchange's history is not to be trusted here",
    )


@dataclass(slots=True)
class Walk:
    """Asks for page after page until a span is covered.

    Each request begins at the last bar that is known, so that neighbouring pages overlap by one
    bar: a page that only repeats itself is recognised, and so is a history that changes.

    Args:
        ask: Returns the page that begins at a time.
        period_ns: Length of a bar.
        page_limit: Most bars in a page.
        keep_gaps: Step over a stretch without bars instead of raising.
    """

    ask: Callable[[int], Page]
    period_ns: int
    page_limit: int
    keep_gaps: bool = False
    pages: int = 0
    duplicates: int = 0
    largest: int = 0

    def span(self, start_ns: int, until_ns: int) -> Iterator[tuple[Page, int]]:
        """Yield new bars of [start, until) and the time up to which all bars are now known."""
        cursor = start_ns
        last: tuple[int, FloatArray] | None = None
        while cursor < until_ns:
            page = self._fresh(cursor, last)
            if len(page):
                newest = int(page.ts[-1])
                last = (newest, page.rows[-1])
                cursor = newest + self.period_ns
            elif self.keep_gaps:
                cursor = (cursor if last is None else last[0]) + self._reach * self.period_ns
                last = None
            else:
                raise DataError(
                    "the exchange sends no further bars",
                    where=f"after {format_time(cursor - self.period_ns)}",
                    found="an empty page, or the same page again, in two requests",
                    expected=f"bars from {format_time(cursor)} to {format_time(until_ns - 1)}",
                    remedy="Ask for a span the exchange has; to accept holes, keep gaps",
                )
            yield page.between(start_ns, until_ns), min(cursor, until_ns)

    @property
    def _reach(self) -> int:
        """Return how many bars ahead an exchange surely looks, as far as its pages have shown."""
        return min(self.page_limit, max(self.largest, SMALL_PAGE))

    def _fresh(self, cursor: int, last: tuple[int, FloatArray] | None) -> Page:
        """Return the bars from the cursor on; an empty answer is asked for once more."""
        since = cursor if last is None else last[0]
        for _ in range(2):
            page = self.ask(since)
            self.pages += 1
            self.largest = max(self.largest, len(page))
            self.duplicates += page.duplicates
            known = self._same_as_before(page, last)
            fresh = page.between(cursor, _FAR)
            if len(fresh):
                self.duplicates += len(page) - len(fresh) - known
                return fresh
        return EMPTY

    def _same_as_before(self, page: Page, last: tuple[int, FloatArray] | None) -> bool:
        """Return whether the page begins with the last known bar; another value is an error."""
        again = None if last is None else page.at(last[0])
        if last is None or again is None:
            return False
        if not np.array_equal(again, last[1], equal_nan=True):
            raise two_values(last[0], last[1], again)
        return True
