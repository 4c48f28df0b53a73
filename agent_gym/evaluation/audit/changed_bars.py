"""Bars that an audit makes: other futures, time turned round, a lesson, gaps, no move at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars

PRICES = ("open", "high", "low", "close")
RUN_BARS = 12
MOVE, JITTER = 0.008, 0.001
GAP, WICK = 0.03, 0.001
PLENTY = 1e12  # quote units a bar: nobody moves this market


def other_future(bars: Bars, cut: int, factor: float, length: int) -> Bars:
    """Return the bars up to and with row ``cut``, then ``length`` rows of another future.

    Prices jump by the factor, and every other column takes values that it did not have.
    """
    part = bars.rows(0, min(len(bars), cut + 1 + length))
    later = np.arange(len(part)) > cut
    columns = {
        name: np.where(later, getattr(part, name) * factor, getattr(part, name)) for name in PRICES
    }
    volume = np.where(later, part.volume * 3.0 * factor + 1.0, part.volume)
    extra = {
        name: np.where(later, _other(name, column, volume), column)
        for name, column in part.extra.items()
    }
    return replace(part, **columns, volume=volume, extra=extra)


def _other(name: str, column: FloatArray, volume: FloatArray) -> FloatArray:
    if name == "taker_buy":
        return volume * 0.9
    if name == "funding":
        return np.where(column == 0.0, 0.0, 0.002)
    return -0.5 * column if name in ("obi", "ofi") else 2.0 * column + 1e-4


def turned_round(bars: Bars) -> Bars:
    """Return bars with the same returns in reverse order.

    Each bar keeps its shape and its move from the bar before, so that holding all of it earns the
    same both ways; only what comes after what is turned round.
    """
    before = np.concatenate([bars.open[:1], bars.close[:-1]])
    shape = {name: np.log(getattr(bars, name) / before)[::-1] for name in PRICES}
    level = bars.open[0] * np.exp(np.concatenate([[0.0], np.cumsum(shape["close"])[:-1]]))
    prices = {name: level * np.exp(moves) for name, moves in shape.items()}
    extra = {name: column[::-1] for name, column in bars.extra.items()}
    return replace(bars, **prices, volume=bars.volume[::-1], extra=extra)


def lesson(like: Bars, n: int, seed: int) -> Bars:
    """Return the planted bandit: runs of rising and of falling bars, plain to see.

    Whoever holds long in a rising run and short in a falling one is right eleven times of twelve.
    The side shows in the bar itself, in volume and range, in every extra column, and, in hours, in
    the time of the day.
    """
    rng = Seeds(seed).child("audit", "lesson").rng()
    ts = like.ts[0] - like.ts[0] % (24 * like.period_ns) + like.period_ns * np.arange(n)
    side = np.where((np.arange(n) // RUN_BARS) % 2 == 0, 1.0, -1.0)
    moves = side * MOVE + rng.normal(0.0, JITTER, n)
    close = _level(like) * np.exp(np.cumsum(moves))
    opened = np.concatenate([[_level(like)], close[:-1]])
    wick = np.exp(WICK * (1.5 + side) * rng.uniform(0.5, 1.5, n))
    volume = PLENTY / close * np.exp(0.5 * side + rng.normal(0.0, 0.1, n))
    made = replace(
        like.rows(0, 0),
        ts=ts,
        open=opened,
        high=np.maximum(opened, close) * wick,
        low=np.minimum(opened, close) / wick,
        close=close,
        volume=volume,
        extra={},
    )
    extra = {name: _told(name, side, made, rng) for name in like.extra}
    return replace(made, extra=extra)


def _told(name: str, side: FloatArray, bars: Bars, rng: np.random.Generator) -> FloatArray:
    if name == "funding":
        return np.zeros(len(bars))
    if name == "taker_buy":
        return bars.volume * (0.5 + 0.3 * side)
    if name == "trades":
        return np.round(1_000.0 * np.exp(0.5 * side))
    if name == "spread":
        return bars.close * 1e-5 * (1.5 + side)
    return 0.6 * side + rng.normal(0.0, 0.05, len(bars))


def gapped(like: Bars, n: int, seed: int) -> Bars:
    """Return bars that open far from the last close: a fill shows at which price it was made."""
    rng = Seeds(seed).child("audit", "gaps").rng()
    gap = GAP * np.where(np.arange(n) % 2 == 0, 1.0, -1.0) * rng.uniform(0.8, 1.2, n)
    inside = rng.normal(0.0, WICK, n)
    close = _level(like) * np.exp(np.cumsum(gap + inside))
    opened = close / np.exp(inside)
    return _plain(like, opened, close)


def level(like: Bars, n: int) -> Bars:
    """Return bars whose price stands still: all that is lost there are costs."""
    price = np.full(n, _level(like))
    return _plain(like, price, price)


def _plain(like: Bars, opened: FloatArray, close: FloatArray) -> Bars:
    n = len(close)
    return replace(
        like.rows(0, 0),
        ts=like.ts[0] + like.period_ns * np.arange(n),
        open=opened,
        high=np.maximum(opened, close),
        low=np.minimum(opened, close),
        close=close,
        volume=PLENTY / close,
        extra={name: np.zeros(n) for name in like.extra},
    )


def _level(like: Bars) -> float:
    return float(like.close[0])
