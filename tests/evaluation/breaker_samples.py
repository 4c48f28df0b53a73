"""What tests of the drawdown breaker share: an account with one, and bars from returns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent_gym.evaluation.config import BacktestConfig
from agent_gym.markets.bars import Bars
from agent_gym.markets.instrument import Instrument

LIMIT = 0.15
HOUR_NS = 3_600 * 10**9
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
