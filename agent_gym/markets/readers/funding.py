"""Funding rates of perpetuals: read from their own file and laid beside the bars."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars
from agent_gym.markets.faults import Indices, common_spacing, is_increasing
from agent_gym.markets.periods import format_period
from agent_gym.markets.quality import format_time
from agent_gym.markets.readers.layout import FUNDING
from agent_gym.markets.readers.request import ReadRequest
from agent_gym.markets.readers.tables import load_table, numbers
from agent_gym.markets.readers.times import to_nanos

_LONGEST_INTERVAL_NS = 8 * HOUR_NS


@dataclass(frozen=True, slots=True)
class FundingRates:
    """Rates by the time at which they fall due, in order; longs pay a positive rate."""

    ts: Indices
    rate: FloatArray
    origin: str

    @property
    def interval_ns(self) -> int:
        """Return the usual time between two rates."""
        return max(common_spacing(self.ts)[0], 0)


def read_funding(path: Path, *, request: ReadRequest | None = None) -> FundingRates:
    """Read funding rates; times must rise, rates be finite, and no rate be left out.

    Of the request only the reading of times (``naive``, ``time_unit``) applies.
    """
    asked = request or ReadRequest()
    table = load_table(path, FUNDING)
    ts, _ = to_nanos(table, time_unit=asked.time_unit, naive=asked.naive)
    rates = FundingRates(ts, numbers(table, "rate"), path.name)
    bad = ~np.isfinite(rates.rate)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(
            "a funding rate is not a number",
            where=table.cell(at + 1),
            found=rates.rate[at],
            expected="a finite rate, such as 0.0001",
            remedy="Correct or complete the row",
        )
    if not is_increasing(ts):
        at = int(np.argmax(np.diff(ts) <= 0)) + 1
        raise DataError(
            "funding times do not rise",
            where=table.cell(at + 1),
            found=f"{format_time(int(ts[at]))} after {format_time(int(ts[at - 1]))}",
            remedy="Sort the file by time and remove repeated rows",
        )
    longest = 1.5 * max(rates.interval_ns, _LONGEST_INTERVAL_NS)
    late = np.diff(ts) > longest
    if late.any():
        at = int(np.argmax(late)) + 1
        raise DataError(
            "funding rates are missing",
            where=table.cell(at + 1),
            found=f"nothing between {format_time(int(ts[at - 1]))} and {format_time(int(ts[at]))}",
            expected=f"a rate every {format_period(rates.interval_ns)}",
            remedy="Complete the file, or attach only the part that is whole",
        )
    return rates


def attach_funding(
    bars: Bars,
    funding: FundingRates,
    *,
    outside: Literal["refuse", "missing"] = "refuse",
    in_gap: Literal["refuse", "next"] = "refuse",
) -> Bars:
    """Return the bars with a ``funding`` column: each rate stands at the bar that contains it.

    A bar holds the sum of the rates that fall due from its open to just before the next open, and 0
    where none does. Rates before the first and after the last bar are left out.

    Args:
        bars: Checked bars.
        funding: Rates from ``read_funding``.
        outside: Bars that lie beyond the first or last rate are refused, or hold NaN (missing).
        in_gap: A rate that falls due where a bar is missing is refused, or goes to the next bar.
    """
    reach = max(funding.interval_ns, _LONGEST_INTERVAL_NS)
    covered = (bars.ts + reach > funding.ts[0]) & (bars.ts < funding.ts[-1] + reach)
    if outside == "refuse" and not covered.all():
        raise DataError(
            "the funding rates do not cover the bars",
            where=funding.origin,
            found=f"{format_time(int(funding.ts[0]))} to {format_time(int(funding.ts[-1]))}",
            expected=f"{format_time(int(bars.ts[0]))} to {format_time(int(bars.ts[-1]))}",
            remedy="Cut the bars to that span, or choose outside='missing'",
        )
    due = (funding.ts >= bars.ts[0]) & (funding.ts < bars.ts[-1] + bars.period_ns)
    times, rates = funding.ts[due], funding.rate[due]
    place = np.searchsorted(bars.ts, times, side="right") - 1
    stray = times >= bars.ts[place] + bars.period_ns
    if in_gap == "refuse" and stray.any():
        raise DataError(
            "a funding rate falls due where a bar is missing",
            where=f"{funding.origin} at {format_time(int(times[np.argmax(stray)]))}",
            found=f"{int(stray.sum())} such rates",
            remedy="Fill the gaps of the bars first, or choose in_gap='next'",
        )
    column = np.zeros(len(bars))
    np.add.at(column, place + stray, rates)
    column[~covered] = np.nan
    known = bars.provenance
    details = known.details | {"funding": {"origin": funding.origin, "rates": int(due.sum())}}
    repairs = dict(known.repairs)
    if stray.any():
        repairs["funding_moved_to_next_bar"] = int(stray.sum())
    provenance = known.model_copy(update={"details": details, "repairs": repairs})
    return replace(bars, extra={**bars.extra, "funding": column}, provenance=provenance)
