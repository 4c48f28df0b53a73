"""What each family wants to hold after a bar: compiled parts, one a family.

A part gets addresses: ``own`` of the echo's slots, ``seen`` of the ring of bars, and reads bar t
and those before it. The result is the wanted position in units of the echo's capital.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.agents.echo.layout import (
    BREAKOUT,
    CLOSE,
    ENTRY,
    FIRST_PARAMETER,
    HIGH,
    KEY,
    LOW,
    MARKET_MAKER,
    MEAN_REVERSION,
    MOMENTUM,
    NOISE,
    POSITION,
    SEEN_SLOTS,
    SIDE,
    SIGMA,
    STAGE,
    TREND_VOL_TARGET,
    VALUE,
    VALUE_TRADER,
)
from agent_gym.agents.rules.memory import count, number, set_number
from agent_gym.core.kernels import inlined

FAIR_BARS = 24  # over which a maker takes the mean to be fair
NOISE_MEMORY, NOISE_STEP = 0.95, 0.3
DEPTH_PER_CAPITAL = 4.0


@inlined
def seen_at(seen: int, mask: int, t: int, slot: int) -> float:
    """Return one number of bar t from the ring."""
    return number(seen, (t & mask) * SEEN_SLOTS + slot)


@inlined
def parameter(own: int, place: int) -> float:
    """Return one of an echo's parameters."""
    return number(own, FIRST_PARAMETER + place)


@inlined
def within(value: float, bound: float) -> float:
    """Cut a value to plus or minus the bound."""
    return min(max(value, -bound), bound)


@inlined
def trend(seen: int, mask: int, t: int, bars: int) -> float:
    """Return the move over some bars in its usual deviations."""
    move = seen_at(seen, mask, t, CLOSE) - seen_at(seen, mask, t - bars, CLOSE)
    return move / (seen_at(seen, mask, t, SIGMA) * math.sqrt(float(bars)))


@inlined
def follow(own: int, seen: int, mask: int, t: int) -> float:
    """Momentum: go with a move that is large enough, in full size."""
    bars = min(int(parameter(own, 0)), t)
    if bars < 1:
        return 0.0
    score = trend(seen, mask, t, bars)
    if abs(score) <= parameter(own, 1):
        return 0.0
    return math.copysign(parameter(own, 2), score)


@inlined
def revert(own: int, seen: int, mask: int, t: int) -> float:
    """Mean reversion: against a price far from its mean, out when it is back or runs away."""
    bars = min(int(parameter(own, 0)), t)
    if bars < 3:
        return 0.0
    total = 0.0
    for j in range(t - bars + 1, t + 1):
        total += seen_at(seen, mask, j, CLOSE)
    mean, squares = total / bars, 0.0
    for j in range(t - bars + 1, t + 1):
        squares += (seen_at(seen, mask, j, CLOSE) - mean) ** 2
    deviation, stage = math.sqrt(squares / bars), number(own, STAGE)
    if deviation <= 0.0:
        return stage
    score = (seen_at(seen, mask, t, CLOSE) - mean) / deviation
    if stage == 0.0:
        far = abs(score) > parameter(own, 1) and abs(score) < parameter(own, 3)
        stage = -math.copysign(1.0, score) if far else 0.0
    elif stage * score > -parameter(own, 2) or -stage * score > parameter(own, 3):
        stage = 0.0
    set_number(own, STAGE, stage)
    return stage


@inlined
def break_out(own: int, seen: int, mask: int, t: int) -> float:
    """Breakout: go with a new extreme, out when the price falls back by some usual ranges."""
    bars = min(int(parameter(own, 0)), t)
    if bars < 2:
        return 0.0
    close, stage = seen_at(seen, mask, t, CLOSE), number(own, STAGE)
    highest, lowest, ranges = -1e300, 1e300, 0.0
    for j in range(t - bars, t):
        past = seen_at(seen, mask, j, CLOSE)
        highest, lowest = max(highest, past), min(lowest, past)
        ranges += seen_at(seen, mask, j, HIGH) - seen_at(seen, mask, j, LOW)
    best = number(own, ENTRY)
    if close > highest:
        stage, best = 1.0, close
    elif close < lowest:
        stage, best = -1.0, close
    elif stage * (close - best) > 0.0:
        best = close
    elif stage * (close - best) < -parameter(own, 1) * ranges / bars:
        stage = 0.0
    set_number(own, STAGE, stage)
    set_number(own, ENTRY, best)
    return stage


@inlined
def quote(own: int, seen: int, mask: int, t: int) -> float:
    """Market maker: lean against a price away from fair, a share of the way a bar."""
    bars = min(FAIR_BARS, t)
    position = number(own, POSITION)
    if bars < 1:
        return position
    total = 0.0
    for j in range(t - bars, t):
        total += seen_at(seen, mask, j, CLOSE)
    gap = seen_at(seen, mask, t, CLOSE) - total / bars
    usual = parameter(own, 0) * seen_at(seen, mask, t, SIGMA) * math.sqrt(float(bars))
    wanted = -parameter(own, 2) * within(gap / usual, 1.0)
    return position + parameter(own, 1) * (wanted - position)


@inlined
def follow_smoothly(own: int, seen: int, mask: int, t: int) -> float:
    """Trend at a target volatility: go with the move, by less when the market shakes more."""
    bars = min(int(parameter(own, 0)), t)
    if bars < 1:
        return 0.0
    share = min(1.0, parameter(own, 1) / seen_at(seen, mask, t, SIGMA))
    return math.tanh(trend(seen, mask, t, bars)) * share


@inlined
def value(own: int, seen: int, mask: int, t: int) -> float:
    """Value: towards the anchor, fully once the gap is as wide as it waits for."""
    gap = seen_at(seen, mask, t, VALUE) - seen_at(seen, mask, t, CLOSE)
    return within(gap / parameter(own, 0), 1.0)


@inlined
def dice(key: int, t: int) -> float:
    """Return a number from 0 to 1 that depends on the key and the bar alone."""
    z = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(t + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inlined
def wander(own: int, seen: int, mask: int, t: int) -> float:
    """Noise: buy or sell by chance; what is held fades, or it would grow without end."""
    step = NOISE_STEP * parameter(own, 0) * (2.0 * dice(count(own, KEY), t) - 1.0)
    return within(NOISE_MEMORY * number(own, POSITION) + step, 1.0)


@inlined
def hold_with_stop(own: int, seen: int, mask: int, t: int) -> float:
    """Stop cascade: a levered position on one side that is thrown away at its trailing stop."""
    close, side = seen_at(seen, mask, t, CLOSE), number(own, SIDE)
    stage, best = number(own, STAGE), number(own, ENTRY)
    held = stage != 2.0
    if stage == 0.0:
        stage, best = 1.0, close
    gain, stop = side * (close - best), parameter(own, 1)
    if (held and gain < -stop) or (not held and gain > stop):
        stage, best = (2.0 if held else 1.0), close
    elif (held and gain > 0.0) or (not held and gain < 0.0):
        best = close
    set_number(own, STAGE, stage)
    set_number(own, ENTRY, best)
    return side * parameter(own, 0) if stage == 1.0 else 0.0


@inlined
def trending(family: int, own: int, seen: int, mask: int, t: int) -> float:
    """Decide for the families that go with the price."""
    if family == MOMENTUM:
        return follow(own, seen, mask, t)
    if family == BREAKOUT:
        return break_out(own, seen, mask, t)
    if family == TREND_VOL_TARGET:
        return follow_smoothly(own, seen, mask, t)
    return hold_with_stop(own, seen, mask, t)


@inlined
def wanted(family: int, own: int, seen: int, mask: int, t: int) -> float:
    """Return what an echo of any family wants to hold after bar t."""
    if family == MEAN_REVERSION:
        return revert(own, seen, mask, t)
    if family == MARKET_MAKER:
        return quote(own, seen, mask, t)
    if family == VALUE_TRADER:
        return value(own, seen, mask, t)
    if family == NOISE:
        return wander(own, seen, mask, t)
    return trending(family, own, seen, mask, t)
