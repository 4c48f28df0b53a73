"""What tests of the drawdown breaker share: bars from returns, and the law that it has to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument

LIMIT = 0.15
HOUR_NS = 3_600 * 10**9
ROUNDING = 1e-9
FREE = {
    "taker_bps": 0.0,
    "slippage_bps": 0.0,
    "half_spread_bps": 0.0,
    "impact": 0.0,
    "participation": None,
    "missing_funding": "zero",
}


def account(leverage: float = 2.0, **changes: object) -> BacktestConfig:
    """Return an account that holds what it is asked for, with the breaker at the limit."""
    said = {"max_leverage": leverage, "position_size": leverage, "max_drawdown": LIMIT, **changes}
    return BacktestConfig.model_validate(said)


def bars_of(moves: Sequence[float], gaps: Sequence[float]) -> Bars:
    """Return bars that jump by a gap at each open and move until the close, as log returns."""
    steps = np.cumsum(np.column_stack([gaps, moves]).ravel())
    opened, close = 100.0 * np.exp(steps[0::2]), 100.0 * np.exp(steps[1::2])
    ts = np.arange(close.size) * HOUR_NS
    high, low = np.maximum(opened, close), np.minimum(opened, close)
    volume = np.full(close.size, 1e9)
    return Bars(Instrument(kind="perpetual"), HOUR_NS, ts, opened, high, low, close, volume)


@dataclass(frozen=True, slots=True)
class Fall:
    """How deep an account fell, in shares of its peak.

    Attributes:
        deepest: The largest drawdown.
        passing: What the bar lost in which the limit was passed; 0 if it never was.
        leaving: What the bar after it lost: the way to its open, and the costs of getting out.
        after: What was lost later still, at most.
    """

    deepest: float
    passing: float
    leaving: float
    after: float


def fall_of(equity: FloatArray, limit: float = LIMIT) -> Fall:
    """Take a path of equity apart at the first close that lies beyond the limit."""
    peak = np.maximum.accumulate(equity)
    down = 1.0 - equity / peak
    beyond = np.flatnonzero(down >= limit)
    if not beyond.size:
        return Fall(float(down.max()), 0.0, 0.0, 0.0)
    at = int(beyond[0])
    lost = np.append(np.diff(down), 0.0)
    rest = down[at + 1 :] - down[min(at + 1, down.size - 1)]
    return Fall(
        deepest=float(down.max()),
        passing=float(lost[at - 1]),
        leaving=max(0.0, float(lost[at])),
        after=max(0.0, float(rest.max(initial=0.0))),
    )


def holds(fall: Fall, *, gaps: bool, limit: float = LIMIT) -> bool:
    """Say whether the breaker kept the limit plus one bar; gaps: and the way to the next open."""
    allowed = limit + fall.passing + (fall.leaving if gaps else 0.0)
    return fall.deepest <= allowed + ROUNDING and fall.after <= ROUNDING
