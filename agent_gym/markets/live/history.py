"""One download of past bars: cached months first, pages for the rest, checks at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from agent_gym.core.clock import Clock
from agent_gym.core.errors import DataError
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance
from agent_gym.markets.cache import BarCache
from agent_gym.markets.cache_months import Span, months_of
from agent_gym.markets.faults import BAD_ROWS
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.live.config import LiveConfig
from agent_gym.markets.live.paging import EMPTY, Page, Walk
from agent_gym.markets.live.wanted import FetchProgress, Wanted, gap_error, gaps_of
from agent_gym.markets.quality import (
    COVERAGE_TOLERANCE,
    Expected,
    Issue,
    check_bars,
    format_time,
)

GAPS_LISTED = 20


@dataclass(slots=True)
class Download:
    """Fetches what a cache lacks, page by page, and hands over the checked whole."""

    config: LiveConfig
    wanted: Wanted
    instrument: Callable[[], Instrument]
    walk: Walk
    clock: Clock
    retries: Callable[[], int]
    cache: BarCache | None = None
    progress: Callable[[FetchProgress], None] | None = None
    _landed: list[Page] = field(default_factory=list)
    _loaded: int = 0
    _expected: int = 0
    _lacking: int = 0
    _phase_ns: int | None = None
    _started_s: float = 0.0

    def run(self) -> Bars:
        """Return the bars, or raise DataError; what was fetched whole stays in the cache."""
        wanted = self.wanted
        wanted.check()
        lacking = [(wanted.start_ns, wanted.last_ns + 1)]
        if self.cache is not None:
            lacking = self.cache.missing(*self._key(), wanted.start_ns, wanted.last_ns)
        self._expected = sum(-((low - high) // wanted.period_ns) for low, high in lacking)
        self._started_s = self.clock.monotonic_s()
        for span in lacking:
            self._land(span)
        if self.cache is None:
            bars = self._bars(self._landed)
        else:
            bars = self.cache.load(*self._key(), wanted.start_ns, wanted.last_ns)
        return self._checked(bars)

    def _key(self) -> tuple[str, str, str]:
        return self.config.exchange, self.config.symbol, self.wanted.timeframe

    def _land(self, span: Span) -> None:
        """Walk a span; whole months go to the cache as they come, the rest whatever happens."""
        held: list[Page] = []
        stored_to = known_to = span[0]
        try:
            for page, reached in self.walk.span(*span):
                self._check_rows(page)
                held.append(page)
                self._loaded += len(page)
                self._lacking += (reached - known_to) // self.wanted.period_ns - len(page)
                known_to = reached
                month_end = next(months_of(stored_to, known_to + 1))[1][1]
                if month_end <= known_to:
                    self._store(held, (stored_to, known_to))
                    held, stored_to = [], known_to
                self._report()
                self._check_steps(page)
                self._check_count(reached)
        finally:
            self._store(held, (stored_to, known_to))

    def _report(self) -> None:
        if self.progress is not None:
            spent_s = self.clock.monotonic_s() - self._started_s
            self.progress(FetchProgress(self._loaded, self._expected, self.walk.pages, spent_s))

    def _store(self, pages: list[Page], span: Span) -> None:
        if self.cache is None:
            self._landed.extend(pages)
        elif span[0] < span[1]:
            bars = self._bars(pages)
            # No bar opens between the last one and its end: the span is known up to there.
            last_end = int(bars.ts[-1]) + bars.period_ns if len(bars) else 0
            self.cache.store(bars, covered=(span[0], max(span[1], last_end)))

    def _bars(self, pages: list[Page]) -> Bars:
        pages = [EMPTY, *pages]
        rows = np.concatenate([page.rows for page in pages])
        prices: dict[str, Any] = {name: rows[:, at] for at, name in enumerate(PRICE_COLUMNS)}
        return Bars(
            instrument=self.instrument(),
            period_ns=self.wanted.period_ns,
            ts=np.concatenate([page.ts for page in pages]),
            provenance=self._provenance({}),
            **prices,
        )

    def _provenance(self, details: dict[str, Any]) -> Provenance:
        return Provenance(
            source="exchange",
            origin=self.config.exchange,
            sandbox=self.config.sandbox,
            details={"server": self.config.server} | details,
        )

    def _check_rows(self, page: Page) -> None:
        """Raise before bars that cannot be true, or are of another period, reach the cache."""
        if not len(page):
            return
        if self._phase_ns is None:
            self._phase_ns = int(page.ts[0]) % self.wanted.period_ns
        off = np.flatnonzero(page.ts % self.wanted.period_ns != self._phase_ns)
        if off.size:
            raise DataError(
                "the exchange sent bars of another period",
                where=f"{self._where} at {format_time(int(page.ts[off[0]]))}",
                expected=f"bars of {self.wanted.timeframe}",
                remedy="Ask for a period that the exchange serves",
            )
        report = check_bars(self._bars([page]), source_name=self._where, examples=1)
        self._refuse([issue for issue in report.issues if issue.kind in BAD_ROWS])

    def _refuse(self, faults: Sequence[Issue]) -> None:
        for fault in faults:
            raise DataError(
                f"the exchange's bars are not usable: {fault.kind.replace('_', ' ')}",
                where=fault.where,
                found=f"{fault.value}; {fault.reason}",
                remedy="Ask for a span the exchange has whole; nothing is filled in or made up",
            )

    @property
    def _where(self) -> str:
        return f"{self.config.symbol} on {self.config.exchange}"

    def _check_steps(self, page: Page) -> None:
        """Raise at the first hole inside a page, unless holes are kept."""
        steps = np.diff(page.ts)
        if self.wanted.gaps == "raise" and np.any(steps != self.wanted.period_ns):
            at = int(np.flatnonzero(steps != self.wanted.period_ns)[0])
            raise gap_error([(int(page.ts[at]), int(page.ts[at + 1]))], self.wanted.period_ns)

    def _check_count(self, reached: int) -> None:
        """Raise as soon as too many bars are missing, rather than walk on through nothing."""
        wanted = self.wanted
        total = (wanted.last_ns - wanted.start_ns) // wanted.period_ns + 1
        if wanted.gaps == "keep" and self._lacking > COVERAGE_TOLERANCE * total + 1:
            raise DataError(
                "too few bars",
                where=self._where,
                found=f"{self._lacking} missing up to {format_time(reached)}",
                expected=f"{total} bars from {wanted.text}",
                remedy="Ask for a span the exchange has whole; nothing is filled in or made up",
            )

    def _checked(self, bars: Bars) -> Bars:
        wanted = self.wanted
        if bars.provenance.details.get("server") != self.config.server:
            raise DataError(
                "the cache holds bars of another server",
                where=str(self.cache.root) if self.cache else None,
                found=bars.provenance.details.get("server"),
                expected=self.config.server,
                remedy="Use one cache directory for each server",
            )
        if not len(bars):
            raise DataError(
                "the exchange has no bars of this span",
                where=self._where,
                expected=wanted.text,
                remedy="Ask for a span the exchange has; no other data is put in its place",
            )
        holes = gaps_of(bars, wanted.start_ns, wanted.last_ns)
        if holes and wanted.gaps == "raise":
            raise gap_error(holes, wanted.period_ns)
        span = Expected(wanted.start_ns, wanted.last_ns, wanted.as_of_ns)
        report = check_bars(bars, source_name=self._where, expected=span)
        self._refuse([issue for issue in report.issues if issue.kind != "gap"])
        details = {
            "requested": [format_time(wanted.start_ns), format_time(wanted.end_ns)],
            "first_bar": format_time(int(bars.ts[0])),
            "last_bar": format_time(int(bars.ts[-1])),
            "bars": len(bars),
            "fingerprint": bars.fingerprint,
            "bars_from_cache": len(bars) - self._loaded,
            "pages": self.walk.pages,
            "retries": self.retries(),
            "duplicates_dropped": self.walk.duplicates,
            "gaps": [[format_time(low), format_time(high)] for low, high in holes[:GAPS_LISTED]],
            "gap_count": len(holes),
        }
        return replace(bars, provenance=self._provenance(details))
