"""What befalls a market: when a shock comes, how large it is, and what it does to the bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.scenarios.market_config import (
    FlashCrashConfig,
    FundingSpikeConfig,
    MarketSetting,
    PriceGapConfig,
)
from agent_gym.markets.bars import Bars

FADE = 4.0  # a recovery runs through so many of its own time constants


class Shock(NamedTuple):
    """The bars from ``start`` up to ``end`` (not included), and how large it is, with a sign."""

    start: int
    end: int
    size: float


def draw_shocks(
    setting: MarketSetting, seeds: Seeds, size: float, down_share: float
) -> tuple[Shock, ...]:
    """Draw when the shocks come and how large they are; each has numbers of its own.

    So another count or length of shocks changes no draw but its own, and a larger size makes the
    same shocks larger.

    Args:
        setting: How many there are and how long each lasts.
        seeds: The stream that they are drawn from.
        size: The middle of the sizes.
        down_share: The chance that a shock has a negative sign.
    """
    length, slot = setting.bars(setting.shock_minutes), setting.slot_bars
    shocks = []
    for index in range(setting.shocks):
        place, scale, way = seeds.child(index).rng().random(3)
        start = setting.first_bar + index * slot + int(place * (slot - length + 1))
        drawn = size * (1.0 + setting.spread_of_size * (2.0 * scale - 1.0))
        shocks.append(Shock(start, start + length, -drawn if way < down_share else drawn))
    return tuple(shocks)


def crash(bars: Bars, shocks: Sequence[Shock], setting: FlashCrashConfig) -> Bars:
    """Let the price fall and come back in part; volume and spread rise."""
    opens, closes, busy, wide = (np.zeros(len(bars)) for _ in range(4))
    falling = setting.bars(setting.fall_minutes)
    for start, end, size in shocks:
        deepest = math.log1p(-min(abs(size), 0.99))
        at_close = np.arange(1.0, end - start + 1.0)
        fallen = np.minimum(at_close / falling, 1.0)
        returned = np.clip((at_close - falling) / max(1, end - start - falling), 0.0, 1.0)
        path = deepest * (fallen - setting.recovered_share * _fading(returned))
        _lay(opens, closes, start, end, path)
        busy[start : start + falling] = math.log(setting.volume_factor)
        wide[start:end] = math.log(setting.spread_factor)
    return _changed(bars, opens, closes, busy, wide)


def gap(bars: Bars, shocks: Sequence[Shock], setting: PriceGapConfig) -> Bars:
    """Let the price jump at an open, and come back in part."""
    opens, closes, wide = (np.zeros(len(bars)) for _ in range(3))
    for start, end, size in shocks:
        jump = math.log1p(max(size, -0.99))
        share = np.arange(1.0, end - start + 1.0) / (end - start)
        _lay(opens, closes, start, end, jump * (1.0 - setting.retraced_share * _fading(share)))
        opens[start] += jump  # the path begins at 0; the jump is there at the open already
        wide[start:end] = math.log(setting.spread_factor)
    return _changed(bars, opens, closes, np.zeros(len(bars)), wide)


def drift(bars: Bars, shocks: Sequence[Shock]) -> Bars:
    """Let the price move in a straight line during each shock and stay there."""
    opens, closes = np.zeros(len(bars)), np.zeros(len(bars))
    for start, end, size in shocks:
        share = np.arange(1.0, end - start + 1.0) / (end - start)
        _lay(opens, closes, start, end, math.log1p(max(size, -0.99)) * share)
    return _changed(bars, opens, closes, np.zeros(len(bars)), np.zeros(len(bars)))


def thin(bars: Bars, shocks: Sequence[Shock], spread_factor: float) -> Bars:
    """Leave a share of the volume, the size of the shock, and open the spread."""
    busy, wide = np.zeros(len(bars)), np.zeros(len(bars))
    for start, end, size in shocks:
        busy[start:end], wide[start:end] = math.log(min(size, 1.0)), math.log(spread_factor)
    return _changed(bars, np.zeros(len(bars)), np.zeros(len(bars)), busy, wide)


def charge(bars: Bars, shocks: Sequence[Shock], setting: FundingSpikeConfig) -> Bars:
    """Put high funding rates in the place of the usual ones; longs pay a positive rate."""
    rates = bars.extra["funding"].copy()
    every = setting.bars(setting.settle_minutes)
    for start, end, size in shocks:
        rates[start:end] = 0.0
        rates[start:end:every] = -size * 1e-4  # a shock below 0 is one for those who are long
    return replace(bars, extra={**bars.extra, "funding": rates})


def _fading(share: FloatArray) -> FloatArray:
    """Return how much of a recovery has happened: fast at first, all of it at the end."""
    done: FloatArray = (1.0 - np.exp(-FADE * share)) / (1.0 - math.exp(-FADE))
    return done


def _lay(opens: FloatArray, closes: FloatArray, start: int, end: int, path: FloatArray) -> None:
    """Add a log price path, given at the closes of a shock; what it ends at stays for good."""
    closes[start:end] += path
    opens[start + 1 : end] += path[:-1]
    opens[end:] += path[-1]
    closes[end:] += path[-1]


def _changed(
    bars: Bars, opens: FloatArray, closes: FloatArray, volume: FloatArray, spread: FloatArray
) -> Bars:
    """Return bars moved by log factors; high and low reach as far as either end was moved."""
    shifts = {
        "open": opens,
        "high": np.maximum(opens, closes),
        "low": np.minimum(opens, closes),
        "close": closes,
    }
    tick = bars.instrument.tick
    prices: dict[str, Any] = {
        name: _moved(getattr(bars, name), shift, tick) for name, shift in shifts.items()
    }
    flow = np.exp(volume)
    extra = dict(bars.extra)
    for name in ("trades", "taker_buy"):
        extra[name] = extra[name] * flow
    # The spread stands in quote units: it keeps its share of the price, times its own factor.
    extra["spread"] = extra["spread"] * np.exp(spread + opens)
    return replace(bars, volume=bars.volume * flow, extra=extra, **prices)


def _moved(price: FloatArray, shift: FloatArray, tick: float) -> FloatArray:
    """Return a price moved by a log factor, on the grid of ticks; others stay to the last bit."""
    moved = price * np.exp(shift)
    if tick > 0.0:
        moved = np.maximum(np.round(moved / tick), 1.0) * tick
    return np.where(shift == 0.0, price, moved)
