"""The compiled walk of a price: volatility with memory, moves inside the bar, prints, funding."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray
from agent_gym.markets.synthetic import bar_path, bar_print, draws, funding, habits
from agent_gym.markets.synthetic.bar_print import Walker, Weather, next_bar
from agent_gym.markets.synthetic.draws import base_of, exponential, normal, uniform
from agent_gym.markets.synthetic.funding import PERIOD_MIN, first_funding, funding_rank, settle
from agent_gym.markets.synthetic.habits import drifted, first_habits
from agent_gym.markets.synthetic.records import PRICE_RECORD

# Rows of the output, one column a bar.
OPEN, HIGH, LOW, CLOSE, HEAT, BUSY, JUMPED, SHOCK, DRIFT, FUNDING = range(10)
OUTPUTS = 10
# Rows of the table of volatility parts, one column a part.
START, DECAY, SCALE, GAUSS, SHOT, CHANCE, RESPONDS = range(7)
PART_ROWS = 7
# Rows of the inputs, one column a bar.
SEASON, OFFSET, PUSH, SETTLES = range(4)
INPUT_ROWS = 4
# Streams, in the order of their keys.
VOLATILITY, PATH, EVENTS, HABITS, RATES, QUOTES = range(6)

SHOT_SLOT = 64
LARGEST_SHOCK, LARGEST_LEVER, LARGEST_GAIN = 4.0, 0.6, 3.0
ARCH_CAP, MEAN_ABS_NORMAL = 6.0, 0.798
WIDE_CAP = 0.9

_FLOATS = numba.float64[::1]
_TABLE = numba.float64[:, ::1]


@door(numba.float64(numba.float64, _FLOATS, _FLOATS))
def interpolated(x: float, places: FloatArray, values: FloatArray) -> float:
    """Return the height at x of the line through the points."""
    i = 1
    while i < places.size - 1 and x > places[i]:
        i += 1
    part = min(max((x - places[i - 1]) / (places[i] - places[i - 1]), 0.0), 1.0)
    return float(values[i - 1] + part * (values[i] - values[i - 1]))


@inlined
def shot_of(draw: float, chance: float) -> float:
    """Return a number of mean zero: rarely an exponential, else a little below zero."""
    shot: float = -np.log(draw / chance) - chance if draw < chance else -chance
    return shot


@inlined
def gain_of(p: Any, heat: float) -> float:
    """Return how strongly the volatility answers returns: hardly in a calm, much in a storm."""
    gain: float = min(np.exp(p.volatility_response_heat * heat), LARGEST_GAIN)
    return gain


@inlined
def response_of(p: Any, score: float, lever: float, gain: float) -> float:
    """Return how the last return moves the fast volatility: falls and large moves raise it."""
    held = min(max(score, -LARGEST_SHOCK), LARGEST_SHOCK)
    answer: float = (
        gain * p.volatility_arch * (min(abs(score), ARCH_CAP) - MEAN_ABS_NORMAL)
        - lever * held
        - gain * p.volatility_leverage_square * held * abs(held)
    )
    return answer


@door(
    numba.float64(_FLOATS, _TABLE, numba.uint64, numba.float64, numba.float64),
    parts=(draws,),
)
def stirred(
    level: FloatArray, parts: FloatArray, base: np.uint64, rest: float, answer: float
) -> float:
    """Move every part of the log volatility on by a bar, in place, and return their sum.

    The fast parts take ``answer`` from the last return and ``rest`` of their own news.
    """
    total = 0.0
    for k in range(level.size):
        news = parts[GAUSS, k] * normal(base, k)
        if parts[SHOT, k] > 0.0:
            news += parts[SHOT, k] * shot_of(uniform(base, SHOT_SLOT + k), parts[CHANCE, k])
        if parts[RESPONDS, k] > 0.0:
            news = rest * news + answer
        level[k] = parts[DECAY, k] * level[k] + parts[SCALE, k] * news
        total += level[k]
    return total


@door(
    numba.void(
        numba.uint64[::1],
        PRICE_RECORD[::1],
        _TABLE,
        _TABLE,
        _TABLE,
        _TABLE,
    ),
    parts=(draws, bar_path, bar_print, funding, habits),
)
def walk(
    keys: NDArray[np.uint64],
    record: Any,
    parts: FloatArray,
    inputs: FloatArray,
    rates: FloatArray,
    out: FloatArray,
) -> None:
    """Walk a whole series.

    Args:
        keys: One key a stream.
        record: The parameters.
        parts: The parts of the log volatility.
        inputs: Season, activity offset, asked drift in sigmas and whether the bar opens at a
            settlement of funding, one column a bar.
        rates: Probabilities of the funding distribution and its rates in bp.
        out: Filled with one column a bar.
    """
    p = record[0]
    level = np.empty(parts.shape[1])
    begin = base_of(keys[VOLATILITY], -1)
    for k in range(level.size):
        level[k] = parts[START, k] * normal(begin, k)
    habit = first_habits(base_of(keys[HABITS], -1))
    owed = first_funding(p, base_of(keys[RATES], -1))
    next_bp = 0.0
    fade = np.exp(-p.dt_min / p.jumps_memory_min)
    first = np.floor(p.start_price / p.tick)
    walker = Walker(np.log(p.start_price), first, 0.0, 0.0, 0.0, 0.0, 0.0)
    heat = 0.0
    for t in range(out.shape[1]):
        out[FUNDING, t] = next_bp * 1e-4 * inputs[SETTLES, t]
        if inputs[SETTLES, t] > 0.0 or t == 0:
            base = base_of(keys[RATES], t)
            owed = settle(p, base, owed, np.exp(walker.log_price))
            next_bp = interpolated(funding_rank(p, base, owed), rates[0], rates[1])
        if t % int(p.habit_bars) == 0:
            habit = drifted(p, base_of(keys[HABITS], t), habit)
        gain = gain_of(p, heat)
        lever = gain * (p.volatility_leverage + p.volatility_leverage_drift * habit.leverage)
        lever = min(max(lever, -LARGEST_LEVER), LARGEST_LEVER)
        answer = response_of(p, walker.score, lever, gain)
        rest = np.sqrt(1.0 - lever * lever)
        calm = stirred(level, parts, base_of(keys[VOLATILITY], t), rest, answer)
        calm += inputs[SEASON, t] + inputs[OFFSET, t]
        kick, excited = fade * walker.kick, fade * walker.excited
        heat = calm + kick
        sigma = np.exp(p.level + heat)
        drift = inputs[PUSH, t] * sigma + p.carry * next_bp * 1e-4 * p.dt_min / PERIOD_MIN
        walker = Walker(
            walker.log_price,
            walker.last_tick,
            walker.slow,
            walker.fast,
            walker.score,
            kick,
            excited,
        )
        weather = Weather(heat, calm, sigma, drift)
        walker, bar = next_bar(
            p, base_of(keys[EVENTS], t), base_of(keys[PATH], t), walker, weather, habit
        )
        out[OPEN, t], out[HIGH, t] = bar.opened / p.per_unit, bar.high / p.per_unit
        out[LOW, t], out[CLOSE, t] = bar.low / p.per_unit, bar.closed / p.per_unit
        out[HEAT, t], out[BUSY, t] = weather.heat, bar.busy
        out[JUMPED, t], out[SHOCK, t], out[DRIFT, t] = bar.jump, bar.shock, drift


@door(
    numba.void(numba.uint64, PRICE_RECORD[::1], _FLOATS, _FLOATS),
    parts=(draws,),
)
def quote(key: np.uint64, record: Any, heat: FloatArray, out: FloatArray) -> None:
    """Fill the quoted spread at each close: one tick, sometimes many."""
    p = record[0]
    for t in range(out.size):
        base = base_of(key, t)
        wide = p.spread_wide_rate * np.exp(p.spread_wide_elasticity * heat[t])
        ticks = 1.0
        if uniform(base, 0) < min(WIDE_CAP, wide):
            scale = p.spread_wide_ticks * np.exp(p.spread_wide_ticks_elasticity * heat[t])
            ticks = 2.0 + np.floor(scale * exponential(base, 1))
        out[t] = ticks / p.per_unit
