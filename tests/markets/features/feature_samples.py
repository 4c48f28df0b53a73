from __future__ import annotations

from dataclasses import replace

import numpy as np

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars
from agent_gym.markets.features import FeatureConfig, FeatureTable
from agent_gym.markets.instrument import Instrument

EXTRA_OF = {
    "taker_imbalance": "taker_buy",
    "book_imbalance": "obi",
    "order_flow": "ofi",
    "spread_ratio": "spread",
    "funding_z": "funding",
}
# Short memories, so that every feature is known within a short series.
QUICK = FeatureConfig(
    volatility_half_life=5.0,
    momentum_horizons=(1, 3, 6, 12),
    fast_half_life=3.0,
    slow_half_life=9.0,
    volume_half_life=6.0,
    order_flow_half_life=4.0,
    spread_half_life=7.0,
    funding_half_life=2.0,
)


def make_bars(
    num_bars: int,
    *,
    seed: int = 0,
    extras: bool = True,
    period_ns: int = HOUR_NS,
    holes: bool = False,
) -> Bars:
    """A random market with fat tails; with holes, some values are missing or degenerate."""
    rng = Seeds(seed).child("feature_samples").rng()
    close = 60_000.0 * np.exp(np.cumsum(0.006 * rng.standard_t(4, num_bars)))
    opened = np.concatenate([close[:1], close[:-1]])
    high = np.maximum(opened, close) * (1.0 + np.abs(rng.normal(0.0, 0.002, num_bars)))
    low = np.minimum(opened, close) * (1.0 - np.abs(rng.normal(0.0, 0.002, num_bars)))
    volume = np.exp(rng.normal(3.0, 1.0, num_bars))
    extra = {
        "taker_buy": volume * rng.random(num_bars),
        "obi": rng.uniform(-1.0, 1.0, num_bars),
        "ofi": rng.normal(0.0, 5.0, num_bars),
        "spread": 0.1 * rng.integers(1, 6, num_bars),
        "funding": np.where(np.arange(num_bars) % 3 == 0, rng.normal(1e-4, 2e-4, num_bars), 0.0),
    }
    if holes:
        volume[rng.random(num_bars) < 0.2] = 0.0
        flat = rng.random(num_bars) < 0.2
        high[flat] = low[flat] = close[flat]
        close[rng.random(num_bars) < 0.05] = np.nan
        for column in extra.values():
            column[rng.random(num_bars) < 0.2] = np.nan
    ts = 1_700_000_000 * 10**9 + period_ns * np.arange(num_bars, dtype=np.int64)
    return Bars(
        Instrument(),
        period_ns,
        ts,
        opened,
        high,
        low,
        close,
        volume,
        extra if extras else {},
    )


def poisoned(bars: Bars, after: int, value: float) -> Bars:
    """The same bars up to and with ``after``, nonsense behind."""
    columns = {name: column.copy() for name, column in bars.columns().items()}
    for column in columns.values():
        column[after + 1 :] = value
    prices = {name: columns.pop(name) for name in ("open", "high", "low", "close", "volume")}
    return replace(bars, extra=columns, **prices)


def same_bits(a: FeatureTable, b: FeatureTable) -> bool:
    return a.names == b.names and a.values.tobytes() == b.values.tobytes()
