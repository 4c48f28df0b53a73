"""What is true of a generated market and must not be read by agents: kept apart from its bars."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agent_gym.core.files import atomic_path
from agent_gym.core.types import FloatArray
from agent_gym.markets.synthetic.activity import ACTIVE, CLASSES, NORMAL, QUIET, SHOCK, Segments

REGIMES = (
    "range",
    "trend_up",
    "trend_down",
    "breakout",
    "capitulation",
    "accumulation",
    "distribution",
)
RANGE, TREND_UP, TREND_DOWN, BREAKOUT, CAPITULATION, ACCUMULATION, DISTRIBUTION = range(7)
_TREND_SCORE, _SHOCK_SCORE, _QUIET_SCORE, _SEGMENTS_BEFORE = 0.75, 0.5, 0.5, 4


@dataclass(frozen=True, slots=True, eq=False)
class MarketTruth:
    """The state behind each bar.

    Attributes:
        ts: Open time of the bar.
        activity: Index into CLASSES; drawn before the segment, says nothing of direction.
        regime: Index into REGIMES; named in hindsight, so it tells the future of its segment.
        sigma: Standard deviation of the bar's log return.
        drift: Expected log return of the bar: carry and any drift that was asked for.
        direction: Direction drawn for the segment; it moves the price only where drift is asked.
        jump: Whether the bar had a jump.
    """

    ts: NDArray[np.int64]
    activity: NDArray[np.int8]
    regime: NDArray[np.int8]
    sigma: FloatArray
    drift: FloatArray
    direction: NDArray[np.int8]
    jump: NDArray[np.bool_]

    def __len__(self) -> int:
        return int(self.ts.size)

    def activity_names(self) -> list[str]:
        """Return the activity class of each bar in words."""
        return [CLASSES[index] for index in self.activity]

    def regime_names(self) -> list[str]:
        """Return the regime of each bar in words."""
        return [REGIMES[index] for index in self.regime]


def name_regimes(
    segments: Segments, shock: FloatArray, sigma: FloatArray, *, planned: bool
) -> NDArray[np.int8]:
    """Name each segment by what the price did in it, or by the direction that was planned.

    Without a planned drift a name is a function of the path and never an input to it, so no name
    can be traded on before its segment has ended.
    """
    starts = np.flatnonzero(segments.elapsed == 0)
    activity = segments.activity[starts]
    if planned:
        way = segments.direction[starts].astype(np.float64)
        names = _names(activity, way, -way)  # what is accumulated will rise
    else:
        moved = np.add.reduceat(shock, starts)
        expected = np.add.reduceat(sigma**2, starts)
        names = _names(activity, moved / np.sqrt(expected), _score_before(moved, expected))
    lengths = np.diff(np.append(starts, shock.size))
    return np.repeat(names, lengths).astype(np.int8)


def _score_before(moved: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the move of the few segments before each one, in standard deviations."""
    before = np.zeros_like(moved)
    for place in range(1, moved.size):
        last = slice(max(0, place - _SEGMENTS_BEFORE), place)
        before[place] = moved[last].sum() / np.sqrt(expected[last].sum())
    return before


def _names(activity: NDArray[np.int8], score: FloatArray, before: FloatArray) -> NDArray[np.int64]:
    names = np.full(activity.size, RANGE)
    moving = (activity == NORMAL) | (activity == ACTIVE)
    names[moving & (score > _TREND_SCORE)] = TREND_UP
    names[moving & (score < -_TREND_SCORE)] = TREND_DOWN
    names[activity == SHOCK] = BREAKOUT
    names[(activity == SHOCK) & (score < -_SHOCK_SCORE)] = CAPITULATION
    names[(activity == QUIET) & (before < -_QUIET_SCORE)] = ACCUMULATION
    names[(activity == QUIET) & (before > _QUIET_SCORE)] = DISTRIBUTION
    return names


def write_truth(path: Path, truth: MarketTruth) -> None:
    """Write the truth as Parquet, beside the bars and never in them."""
    table = pa.table(
        {
            "ts": pa.array(truth.ts).cast(pa.timestamp("ns", tz="UTC")),
            "activity": pa.array(truth.activity_names()).dictionary_encode(),
            "regime": pa.array(truth.regime_names()).dictionary_encode(),
            "sigma": pa.array(truth.sigma),
            "drift": pa.array(truth.drift),
            "direction": pa.array(truth.direction),
            "jump": pa.array(truth.jump),
        }
    )
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
