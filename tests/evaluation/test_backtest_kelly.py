"""Kelly and the drawdown breaker in a backtest, against what can be worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from agent_gym.core import Seeds
from agent_gym.core.types import Decision
from tests.evaluation.backtest_samples import HOLD, Puppet, run
from tests.samples import bars_of

FREE: dict[str, Any] = {
    "taker_bps": 0.0,
    "slippage_bps": 0.0,
    "half_spread_bps": 0.0,
    "participation": None,
}
FRACTION, ERROR = 0.25, 1e-4
HALF_LIFE = 48.0


def joined_bars(n: int, seed: int, volume: float) -> Any:
    """Return bars that open where the one before closed, so that a close can be traded at."""
    steps = Seeds(seed).child("kelly").rng().normal(0.0, 0.01, n)
    close = 100.0 * np.exp(np.cumsum(steps))
    opened = np.concatenate([[100.0], close[:-1]])
    return bars_of(
        opened, np.maximum(opened, close), np.minimum(opened, close), close, volume=volume
    )


def edge_at(t: int) -> float:
    return (4.0 + 2.0 * math.sin(0.7 * t)) * 1e-4


def forecaster() -> Puppet:
    # The wish alternates, both values beyond the cap, so that the cap is followed at every bar.
    return Puppet(
        lambda t, obs: Decision(
            1.0 - 1e-3 * (t % 2),
            {"expected_return": edge_at(t), "expected_return_se": ERROR},
        )
    )


def analytic_bets(bars: Any) -> list[float]:
    """Return fraction x (edge - error) / sigma^2 with the volatility known at each close."""
    decay = 0.5 ** (1.0 / HALF_LIFE)
    spread = math.log(bars.high[0] / bars.low[0])
    variance = spread * spread / (4.0 * math.log(2.0))
    bets = []
    for t in range(len(bars)):
        if t > 0:
            change = math.log(bars.close[t] / bars.close[t - 1])
            variance = decay * variance + (1.0 - decay) * change * change
        bets.append(min(FRACTION * max(0.0, edge_at(t) - ERROR) / variance, 1.0 - 1e-3 * (t % 2)))
    return bets


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kelly_without_impact_is_the_analytic_one(seed: int) -> None:
    bars = joined_bars(250, seed, volume=1e5)
    result = run(bars, forecaster(), kelly_fraction=FRACTION, impact=0.0, **FREE)
    bets = analytic_bets(bars)
    assert result.target[:-1].tolist() == pytest.approx(bets[:-1], rel=1e-12)
    assert sum(0.05 < bet < 0.99 for bet in bets) > 100
    growth = 1.0 + np.array(bets[:-1]) * (bars.close[1:] / bars.close[:-1] - 1.0)
    wealth = 10_000.0 * np.concatenate([[1.0], np.cumprod(growth)])
    assert result.equity.tolist() == pytest.approx(wealth.tolist(), rel=1e-9)


def test_impact_costs_money_and_leaves_the_bets_alone() -> None:
    bars = joined_bars(250, 1, volume=1e5)
    free = run(bars, forecaster(), kelly_fraction=FRACTION, impact=0.0, **FREE)
    dear = run(bars, forecaster(), kelly_fraction=FRACTION, impact=1.0, **FREE)
    assert dear.target.tolist() == free.target.tolist()
    assert dear.equity[-1] < free.equity[-1]


def test_a_drawdown_cap_shrinks_in_a_few_trades() -> None:
    price = 100.0 * 0.9985 ** np.arange(400.0)
    bars = bars_of(price, price, price, price)
    held = run(bars, HOLD, max_drawdown=0.15, impact=0.0, **FREE)
    assert 3 <= held.metrics.trades <= 12  # one to enter, at most one a tenth, one to leave
    assert held.metrics.max_drawdown <= 0.15 + 0.0015
    assert held.position[-1] == 0.0
    assert held.caps["breaker_tripped_ns"] is not None
