"""Fewer points that look the same: lines that keep their extremes, candles of longer periods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import tsdownsample
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.tearsheet.sheet import Regime
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period

Places: TypeAlias = NDArray[np.intp]
MAX_POINTS = 4_000
MAX_SPANS = 400
# The page shows the finest of these that does not crowd the part that is zoomed into.
CANDLE_LEVELS = (600, 2_400, 9_600)
_WEEK_NS, _MONDAY_NS = 7 * DAY_NS, 4 * DAY_NS  # 1970-01-05; weeks open on Monday
_MINUTES = tuple(n * MINUTE_NS for n in (1, 3, 5, 15, 30))
_HOURS = tuple(n * HOUR_NS for n in (1, 2, 4, 8, 12))
_PERIODS = (*_MINUTES, *_HOURS, DAY_NS, 2 * DAY_NS, _WEEK_NS, 2 * _WEEK_NS, 4 * _WEEK_NS)
_tsdownsample: Any = tsdownsample  # the library leaves its constructors untyped
_thinner = _tsdownsample.MinMaxLTTBDownsampler()


@dataclass(frozen=True, slots=True, eq=False)
class Candles:
    """Candles by open time; ``size`` bars of the series make one, at most."""

    period: str
    size: int
    ts: NDArray[np.int64]
    open: FloatArray
    high: FloatArray
    low: FloatArray
    close: FloatArray


def thin(values: FloatArray, points: int = MAX_POINTS) -> Places:
    """Return the places to draw: MinMaxLTTB, both ends, the lowest and the highest value.

    Example:
        >>> thin(np.array([0.0, 9.0, 1.0])).tolist()
        [0, 1, 2]
    """
    if values.size <= points:
        return np.arange(values.size)
    chosen = _thinner.downsample(np.ascontiguousarray(values, np.float64), n_out=points)
    sure = [0, int(values.argmin()), int(values.argmax()), values.size - 1]
    places: Places = np.unique(np.concatenate([chosen.astype(np.intp), sure]))
    return places


def candles(bars: Bars, most: int) -> Candles:
    """Return at most ``most`` candles, of a period that people use where there is one.

    No high or low is lost, and the first candle opens with the first bar.
    """
    period_ns = _period_for(bars, most)
    origin = _MONDAY_NS if period_ns % _WEEK_NS == 0 else 0
    opens = bars.ts if period_ns == bars.period_ns else bars.ts - (bars.ts - origin) % period_ns
    starts = np.flatnonzero(np.diff(opens, prepend=opens[0] - 1))
    lasts = np.append(starts[1:], opens.size) - 1
    return Candles(
        period=format_period(period_ns),
        size=period_ns // bars.period_ns,
        ts=np.maximum(opens[starts], bars.ts[0]),
        open=bars.open[starts],
        high=np.maximum.reduceat(bars.high, starts),
        low=np.minimum.reduceat(bars.low, starts),
        close=bars.close[lasts],
    )


def candle_levels(bars: Bars, levels: Sequence[int] = CANDLE_LEVELS) -> list[Candles]:
    """Return candles from coarse to fine, each period once."""
    made = {}
    for most in levels:
        level = candles(bars, most)
        made[level.size] = level
    return list(made.values())


def regime_spans(ts: NDArray[np.int64], period_ns: int, names: Sequence[str]) -> list[Regime]:
    """Return stretches of one name from one name a bar; ``ts`` are close times.

    Example:
        >>> spans = regime_spans(np.array([10, 20, 30]), 10, ["up", "up", "down"])
        >>> [(span.start_ns, span.end_ns, span.name) for span in spans]
        [(0, 20, 'up'), (20, 30, 'down')]
    """
    seen = np.asarray(names)
    starts = np.flatnonzero(np.append(True, seen[1:] != seen[:-1]))
    ends = np.append(starts[1:], seen.size) - 1
    return [
        Regime(int(ts[start]) - period_ns, int(ts[end]), str(seen[start]))
        for start, end in zip(starts, ends, strict=True)
    ]


def fewer_spans(spans: Sequence[Regime], most: int = MAX_SPANS) -> list[Regime]:
    """Return the regimes as they are, or the longest in each of ``most`` equal stretches."""
    if len(spans) <= most:
        return list(spans)
    starts = np.array([span.start_ns for span in spans])
    ends = np.array([span.end_ns for span in spans])
    opened, length = spans[0].start_ns, spans[-1].end_ns - spans[0].start_ns
    made: list[Regime] = []
    for low, high in pairwise(opened + length * at // most for at in range(most + 1)):
        first = int(np.searchsorted(ends, low, side="right"))
        last = max(int(np.searchsorted(starts, high, side="left")), first + 1)
        inside = np.minimum(ends[first:last], high) - np.maximum(starts[first:last], low)
        names: dict[str, int] = {}
        for span, shared in zip(spans[first:last], inside.tolist(), strict=True):
            names[span.name] = names.get(span.name, 0) + shared
        name = max(names, key=lambda each: names[each])
        if made and made[-1].name == name and made[-1].end_ns == low:
            made[-1] = Regime(made[-1].start_ns, high, name)
        else:
            made.append(Regime(low, high, name))
    return made


def _period_for(bars: Bars, most: int) -> int:
    if len(bars) <= most:
        return bars.period_ns
    span = int(bars.ts[-1] - bars.ts[0]) + bars.period_ns
    own = bars.period_ns
    fitting = [each for each in _PERIODS if each > own and each % own == 0]
    # Two buckets may be cut by the ends, so one candle more than whole periods fit.
    enough = [each for each in fitting if span // each + 2 <= most]
    return enough[0] if enough else own * -(-span // (own * max(most - 2, 1)))
