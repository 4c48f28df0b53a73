"""Markets that tests of realism share: made ones, bad imitations, and real minutes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from agent_gym.core import Seeds
from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.types import FloatArray
from agent_gym.markets import Bars, Instrument
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.synthetic import DEFAULT_START_NS, GeneratorConfig, generate

DAY = 1440
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "BTCUSDT_perp_1m_2024.parquet"


@cache
def made(seed: int, days: int = 42) -> Bars:
    return generate(GeneratorConfig(n_bars=days * DAY), Seeds(seed)).bars


@cache
def real_minutes(start: str = "2024-02-01", end: str = "2024-04-12T23:59") -> Bars:
    if not REAL.exists():
        pytest.skip(f"no real data at {REAL}")
    return read_bars(REAL, request=ReadRequest(start=start, end=end))


def bars_from_returns(returns: FloatArray, seed: int = 0, tick: float = 0.1) -> Bars:
    """Minutes with the given returns, wicks of a few steps, and a volume that knows nothing."""
    rng = Seeds(seed).child("imitation").rng()
    close = 60_000.0 * np.exp(np.cumsum(returns))
    opened = np.concatenate([[60_000.0], close[:-1]])
    reach = np.abs(rng.normal(0.0, returns.std(), (2, returns.size)))
    high = np.maximum(opened, close) * np.exp(0.5 * reach[0])
    low = np.minimum(opened, close) * np.exp(-0.5 * reach[1])
    volume = np.exp(rng.normal(4.6, 1.0, returns.size))
    grid = [np.round(column / tick) * tick for column in (opened, high, low, close)]
    ts = DEFAULT_START_NS + MINUTE_NS * np.arange(returns.size)
    extra = {"trades": np.ceil(20.0 * volume), "taker_buy": volume * rng.random(returns.size)}
    return Bars(Instrument(tick=tick), MINUTE_NS, ts, *grid, volume, extra)


def gaussian_bars(days: int = 42, seed: int = 0) -> Bars:
    rng = Seeds(seed).child("gaussian").rng()
    return bars_from_returns(rng.normal(0.0, 7.6e-4, days * DAY), seed)


def garch_bars(days: int = 42, seed: int = 0) -> Bars:
    """GARCH(1,1) with Student innovations: the usual simple imitation of a market."""
    rng = Seeds(seed).child("garch").rng()
    n, mean_square = days * DAY, (7.6e-4) ** 2
    shocks = rng.standard_t(4.0, n) / np.sqrt(2.0)
    returns, square = np.empty(n), mean_square
    for t in range(n):
        returns[t] = np.sqrt(square) * shocks[t]
        square = 0.02 * mean_square + 0.08 * returns[t] ** 2 + 0.9 * square
    return bars_from_returns(returns, seed)
