"""What a download is asked for, how far it has come, and what it lacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.bars import Bars
from agent_gym.markets.cache_months import Span
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import format_time

Gaps: TypeAlias = Literal["raise", "keep"]


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a download has come; bars from the cache are not counted."""

    loaded: int
    expected: int
    pages: int
    elapsed_s: float

    @property
    def eta_s(self) -> float | None:
        """Return the seconds still to go at the pace so far, None before the first bar."""
        if self.loaded == 0:
            return None
        return self.elapsed_s * max(self.expected - self.loaded, 0) / self.loaded


@dataclass(frozen=True, slots=True)
class Wanted:
    """Bars of one period that open in [start, end] and have closed by ``as_of``."""

    period_ns: int
    start_ns: int
    end_ns: int
    as_of_ns: int
    gaps: Gaps = "raise"

    @property
    def timeframe(self) -> str:
        """Return the period's name."""
        return format_period(self.period_ns)

    @property
    def last_ns(self) -> int:
        """Return the latest open time of a wanted bar that can be finished."""
        return min(self.end_ns, self.as_of_ns - self.period_ns)

    @property
    def text(self) -> str:
        """Return the span in words."""
        return f"{format_time(self.start_ns)} to {format_time(self.end_ns)}"

    def check(self) -> None:
        """Raise unless at least one finished bar is wanted."""
        if self.start_ns > self.end_ns or self.start_ns < 0:
            raise ConfigError("the start is after the end, or before 1970", found=self.text)
        if self.last_ns < self.start_ns:
            raise DataError(
                "no bar of this span is finished yet",
                where=self.text,
                found=f"it is {format_time(self.as_of_ns)}",
                remedy="Ask for an earlier start",
            )


def gaps_of(bars: Bars, start_ns: int, last_ns: int) -> list[Span]:
    """Return each hole as the open times of the bars before and after it.

    A hole at the start or the end of [start, last] counts as well; bars need not open on round
    times, only on one grid.
    """
    period_ns = bars.period_ns
    first = int(bars.ts[0]) - (int(bars.ts[0]) - start_ns) // period_ns * period_ns - period_ns
    beyond = int(bars.ts[-1]) + (last_ns - int(bars.ts[-1])) // period_ns * period_ns + period_ns
    ts = np.concatenate(([first], bars.ts, [beyond]))
    return [(int(ts[at]), int(ts[at + 1])) for at in np.flatnonzero(np.diff(ts) > period_ns)]


def gap_error(holes: list[Span], period_ns: int) -> DataError:
    """Return the error for missing bars."""
    low, high = holes[0]
    lacking = sum((high - low) // period_ns - 1 for low, high in holes)
    return DataError(
        "bars are missing",
        where=f"from {format_time(low + period_ns)} to {format_time(high - period_ns)}",
        found=f"{lacking} missing bars in {len(holes)} gaps so far",
        remedy="If the exchange stood still then, fetch with --keep-gaps (gaps='keep')",
    )
