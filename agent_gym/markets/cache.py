"""Fetched bars on disk, one Parquet file a month, with a record of what has been asked for.

    <root>/<exchange>/<symbol>/<period>/2024-01.parquet

A month is complete when every bar of it has been asked for, which is not the same as every bar
being there: an exchange that stood still for an hour leaves a hole that no second request fills.
So each file carries the spans of open times it covers. Data of a test network live in a folder of
their own (``<exchange>.sandbox``) and never mix with real prices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.bars import Bars
from agent_gym.markets.cache_months import (
    REMEDY,
    Span,
    cover_of,
    joined_bars,
    merged,
    month_span,
    months_of,
    runs_of,
    with_cover,
)
from agent_gym.markets.cache_names import exchange_folder, symbol_folder
from agent_gym.markets.parquet import read_native, write_bars
from agent_gym.markets.periods import format_period, parse_period
from agent_gym.markets.quality import format_time


@dataclass(frozen=True, slots=True)
class CachedMonth:
    """What the cache holds of one month."""

    month: str
    path: Path
    rows: int
    covered: tuple[Span, ...]
    complete: bool


class BarCache:
    """Months of bars under one root; ``sandbox`` picks the test network's folders.

    Spans are half open, [from, until), in open times; ``load`` takes both ends inclusive like
    ``Bars.between``.
    """

    def __init__(self, root: Path, *, sandbox: bool = False) -> None:
        self.root = root
        self.sandbox = sandbox

    def store(self, bars: Bars, *, covered: Span | None = None) -> list[Path]:
        """Add bars to their months; a month is written whole or stays as it was.

        Args:
            bars: Finished bars of one source, in order.
            covered: The open times that were asked for, holes included; by default only those
                of the bars themselves.

        Raises:
            DataError: If the cache already holds other values, or data from elsewhere.
        """
        if bars.provenance.sandbox != self.sandbox:
            raise ConfigError(
                "bars of a test network and of the market do not mix",
                where=str(self.root),
                found=f"sandbox={bars.provenance.sandbox}",
                expected=f"sandbox={self.sandbox}",
            )
        spans = runs_of(bars) if covered is None else (covered,)
        if not spans:
            return []
        folder = self._folder(bars.instrument.exchange, bars.instrument.symbol, bars.period_ns)
        written = []
        for month, (low, high) in months_of(spans[0][0], spans[-1][1]):
            path = self._inside(folder / f"{month}.parquet")
            cover = tuple((max(a, low), min(b, high)) for a, b in spans if a < high and b > low)
            if not cover:
                continue
            fresh = with_cover(bars.between(low, high - 1), cover)
            write_bars(path, merged(self._read(path, fresh), fresh, path))
            written.append(path)
        return written

    def load(self, exchange: str, symbol: str, period: str, start_ns: int, end_ns: int) -> Bars:
        """Return the bars that open in [start, end].

        Raises:
            DataError: If a part of the span was never fetched, or a file is damaged.
        """
        if start_ns > end_ns:
            raise ConfigError(
                "the start is after the end",
                found=f"{format_time(start_ns)} to {format_time(end_ns)}",
            )
        lacking = self.missing(exchange, symbol, period, start_ns, end_ns)
        if lacking:
            raise DataError(
                "the cache does not hold the whole span",
                where=str(self.root),
                found=f"{len(lacking)} missing spans, the first from {format_time(lacking[0][0])}",
                expected=f"{format_time(start_ns)} to {format_time(end_ns)}",
                remedy="Fetch it first with `agent-gym data fetch --cache`",
            )
        parts = [
            part.between(start_ns, end_ns)
            for part in self._parts(exchange, symbol, period, start_ns, end_ns)
        ]
        return joined_bars(parts, str(self.root))

    def missing(
        self, exchange: str, symbol: str, period: str, start_ns: int, end_ns: int
    ) -> list[Span]:
        """Return the spans of [start, end] that were never fetched, in order."""
        lacking: list[Span] = []
        cursor, until = start_ns, end_ns + 1
        for part in self._parts(exchange, symbol, period, start_ns, end_ns):
            for low, high in cover_of(part):
                if cursor < low < until:
                    lacking.append((cursor, low))
                if low < until:
                    cursor = max(cursor, high)
        if cursor < until:
            lacking.append((cursor, until))
        return lacking

    def months(self, exchange: str, symbol: str, period: str) -> tuple[CachedMonth, ...]:
        """Return every cached month of a series, oldest first."""
        folder = self._folder(exchange, symbol, parse_period(period))
        found = []
        for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]-[0-9][0-9].parquet")):
            bars = self._checked(path, exchange, symbol, parse_period(period))
            cover = cover_of(bars)
            whole = cover == (month_span(path.stem),)
            found.append(CachedMonth(path.stem, path, len(bars), cover, whole))
        return tuple(found)

    def _parts(
        self, exchange: str, symbol: str, period: str, start_ns: int, end_ns: int
    ) -> Iterator[Bars]:
        period_ns = parse_period(period)
        folder = self._folder(exchange, symbol, period_ns)
        if not folder.is_dir():
            return
        for month, _ in months_of(start_ns, end_ns + 1):
            path = folder / f"{month}.parquet"
            if path.exists():
                yield self._checked(path, exchange, symbol, period_ns)

    def _read(self, path: Path, like: Bars) -> Bars | None:
        if not path.exists():
            return None
        instrument = like.instrument
        return self._checked(path, instrument.exchange, instrument.symbol, like.period_ns)

    def _checked(self, path: Path, exchange: str, symbol: str, period_ns: int) -> Bars:
        self._inside(path)
        try:
            bars = read_native(path)
        except DataError as error:
            raise _unusable(path, error.found or error.what) from error
        found = (bars.instrument.exchange, bars.instrument.symbol, bars.period_ns)
        if found != (exchange, symbol, period_ns):
            raise _unusable(path, f"bars of {found[1]} on {found[0]}, {format_period(found[2])}")
        if bars.provenance.sandbox != self.sandbox:
            raise _unusable(path, f"sandbox={bars.provenance.sandbox}")
        span = month_span(path.stem)
        if np.any(np.diff(bars.ts) <= 0) or len(bars.between(span[0], span[1] - 1)) != len(bars):
            raise _unusable(path, "bars out of order or of another month")
        return bars

    def _folder(self, exchange: str, symbol: str, period_ns: int) -> Path:
        suffix = ".sandbox" if self.sandbox else ""
        names = (exchange_folder(exchange) + suffix, symbol_folder(symbol))
        return self.root.joinpath(*names, format_period(period_ns))

    def _inside(self, path: Path) -> Path:
        """Return the path unless a link leads it out of the root."""
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise DataError(
                "a link leads out of the cache",
                where=str(path),
                found=path.resolve(),
                remedy="Remove the link",
            )
        return path


def _unusable(path: Path, found: object) -> DataError:
    return DataError("a file of the cache is unusable", where=str(path), found=found, remedy=REMEDY)
