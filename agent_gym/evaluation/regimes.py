"""States of a market told from its own bars, and what every arm earned in each of them.

A state at a close is told from the closes up to it alone, and what is earned until the next close
counts for it. So a table of states says what somebody would have seen who looked at each close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.tearsheet.sheet import Regime
from agent_gym.evaluation.tearsheet.thinning import regime_spans
from agent_gym.markets.bars import Bars

RISING, FALLING, SIDEWAYS, TURBULENT = "rising", "falling", "sideways", "turbulent"
STATES = (SIDEWAYS, RISING, FALLING, TURBULENT)
WINDOW = 100
ENTERS, LEAVES = 1.0, 0.5  # moves in units of their noise; two limits, so that a state lasts
STORM = 1.5  # times the usual volatility
LEAST_WINDOWS = 3
TINY = 1e-12  # a market that does not move has no noise to divide by


@dataclass(frozen=True, slots=True, eq=False)
class MarketStates:
    """The state at each close from ``first`` on, as places in ``STATES``."""

    ts: NDArray[np.int64]
    period_ns: int
    first: int
    state: NDArray[np.int64]

    def spans(self) -> list[Regime]:
        """Return stretches of one state in time order."""
        names = [STATES[each] for each in self.state.tolist()]
        return regime_spans(self.ts[self.first :], self.period_ns, names)


@dataclass(frozen=True, slots=True)
class StateFigures:
    """What happened while the market was in one state.

    Attributes:
        name: The state.
        share: Of the closes whose state is known.
        market: Return of the market over them.
        arms: Return of each arm over them; None where one was ruined.
    """

    name: str
    share: float
    market: float | None
    arms: dict[str, float | None]


def market_states(bars: Bars, ts: NDArray[np.int64]) -> MarketStates | None:
    """Return the state of a market at each close; None where there are too few bars.

    Nor are there states where only a part of the bars is marked. Told from the last 100 bars:
    turbulent if volatility is 1.5 times its median or more, else rising or falling once the move
    is larger than its noise and until it is less than half of it, else sideways.
    """
    if len(bars) < LEAST_WINDOWS * WINDOW or ts.size != len(bars):
        return None
    moves = np.diff(np.log(np.asarray(bars.close, np.float64)))
    drift = _sums(moves)
    noise = np.sqrt(np.maximum(_sums(moves**2) / WINDOW - (drift / WINDOW) ** 2, 0.0))
    state = _lasting(drift / np.maximum(noise * np.sqrt(WINDOW), TINY))
    state[noise >= STORM * max(float(np.median(noise)), TINY)] = STATES.index(TURBULENT)
    return MarketStates(ts, bars.period_ns, WINDOW, state)


def by_state(
    states: MarketStates, close: FloatArray, equity: Mapping[str, FloatArray]
) -> tuple[StateFigures, ...]:
    """Return what the market and every arm earned in each state that occurred."""
    known = states.state
    found = []
    for place, name in enumerate(STATES):
        inside = known == place
        if not inside.any():
            continue
        closes = states.first + np.flatnonzero(inside)
        starts = closes[closes < len(close) - 1]
        arms = {label: _return(curve, starts) for label, curve in equity.items()}
        found.append(StateFigures(name, float(inside.mean()), _return(close, starts), arms))
    return tuple(found)


def _sums(values: FloatArray) -> FloatArray:
    """Return the sum over each window of the last bars."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[WINDOW:] - total[:-WINDOW], np.float64)


def _lasting(score: FloatArray) -> NDArray[np.int64]:
    """Return sideways, rising or falling; between the two limits it stays what it was."""
    said = np.select(
        [score > ENTERS, score < -ENTERS, np.abs(score) < LEAVES], [1, 2, 0], default=-1
    )
    places = np.where(said >= 0, np.arange(said.size), 0)
    lasting = said[np.maximum.accumulate(places)]
    return np.asarray(np.maximum(lasting, 0), np.int64)


def _return(curve: Sequence[float] | FloatArray, starts: NDArray[np.int64]) -> float | None:
    values = np.asarray(curve, np.float64)
    before, after = values[starts], values[starts + 1]
    if (before <= 0.0).any() or (after <= 0.0).any():
        return None
    return float(np.expm1(np.log(after / before).sum()))
