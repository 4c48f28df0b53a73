"""Small markets that many tests share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agent_gym.core import Seeds
from agent_gym.core.clock import HOUR_NS
from agent_gym.core.types import FloatArray
from agent_gym.markets import Bars, Instrument

START_NS = 1_704_067_200_000_000_000  # 2024-01-01 UTC


def random_bars(
    n: int = 400,
    seed: int = 0,
    *,
    kind: str = "perpetual",
    start_price: float = 100.0,
    sigma: float = 0.01,
    volume: float = 1e6,
    funding: float = 0.0,
) -> Bars:
    """Return a random walk with gaps between close and open, and real wicks.

    A perpetual always has its column of funding, spot only if a rate is asked for.
    """
    rng = Seeds(seed).child("sample").rng()
    close = start_price * np.exp(np.cumsum(rng.normal(0.0, sigma, n)))
    opened = np.concatenate([[start_price], close[:-1]]) * np.exp(rng.normal(0.0, sigma / 4, n))
    wick = np.exp(np.abs(rng.normal(0.0, sigma / 2, (2, n))))
    high = np.maximum(opened, close) * wick[0]
    low = np.minimum(opened, close) / wick[1]
    extra = {}
    if funding or kind == "perpetual":
        extra["funding"] = np.where(np.arange(n) % 8 == 0, funding, 0.0)
    return Bars(
        Instrument(kind=kind),
        HOUR_NS,
        START_NS + HOUR_NS * np.arange(n),
        opened,
        high,
        low,
        close,
        volume * np.exp(rng.normal(0.0, 0.5, n)),
        extra,
    )


def flat_bars(n: int = 50, price: float = 100.0, volume: float = 1e9, kind: str = "spot") -> Bars:
    """Return bars whose price never moves."""
    level = np.full(n, price)
    return bars_of(level, level, level, level, volume=volume, kind=kind)


def bars_of(
    opened: FloatArray,
    high: FloatArray,
    low: FloatArray,
    close: FloatArray,
    *,
    volume: float = 1e9,
    kind: str = "spot",
) -> Bars:
    """Return bars from their prices."""
    n = len(close)
    ts = START_NS + HOUR_NS * np.arange(n)
    prices = (opened, high, low, close, np.full(n, volume))
    return Bars(Instrument(kind=kind), HOUR_NS, ts, *prices, no_funding(kind, n))


def no_funding(kind: str, n: int) -> dict[str, FloatArray]:
    """Return the extra columns of bars on which no funding falls due."""
    return {"funding": np.zeros(n)} if kind == "perpetual" else {}


def renamed(bars: Bars, symbol: str) -> Bars:
    """Return the same bars, funding included, of an instrument of another name."""
    return replace(bars, instrument=bars.instrument.model_copy(update={"symbol": symbol}))


def without_funding(bars: Bars) -> Bars:
    """Return the bars without their column of funding."""
    extra = {name: column for name, column in bars.extra.items() if name != "funding"}
    return replace(bars, extra=extra)
