"""The compiled flow of trades: how many, how large, and who was the aggressor.

Flow follows the price and never leads it: no part of the walk reads what is made here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray
from agent_gym.markets.synthetic import draws, price_kernel
from agent_gym.markets.synthetic.draws import base_of, normal
from agent_gym.markets.synthetic.price_kernel import BUSY, CLOSE, HEAT, HIGH, LOW, OPEN
from agent_gym.markets.synthetic.records import FLOW_RECORD

# Rows of the work table, one column a bar: seasons come in, logs go out.
SEASON, TRADES_SEASON, SIZE_SEASON, TRADES, NOISE, SIZE, TILT = range(7)
WORK_ROWS = 7
# Rows of a table of noises or memories, one column a time scale.
DECAY, SCALE, LOAD = 0, 1, 1
# Streams, in the order of their keys.
TRADE_NOISE, SIZE_NOISE, TILT_NOISE, FLOW_HABITS = range(4)

BURST_SLOT = 32
SHAPED = 3  # only the fastest noises have heavy or skewed tails, slower ones are sums of many
LEAST_SURPRISE, LEAST_RANGE = -2.5, -3.2
USUAL_RANGE = 0.45  # log range over sigma of an ordinary bar
USUAL_BODY, USUAL_BODY_SQUARE, LARGEST_MOVE = 0.58, 0.4, 3.0

_FLOATS = numba.float64[::1]
_TABLE = numba.float64[:, ::1]
_FILL = numba.void(numba.uint64[::1], FLOW_RECORD[::1], _TABLE, _TABLE, _TABLE)
_FILL_MORE = numba.void(numba.uint64[::1], FLOW_RECORD[::1], _TABLE, _TABLE, _TABLE, _TABLE)


class Candle(NamedTuple):
    """One bar as flow sees it: logs, and shares of the range."""

    size: float  # log range less the usual range of the market
    body: float  # signed, -1 to 1
    wick: float  # upper less lower, -1 to 1


@inlined
def candle_of(p: Any, opened: float, high: float, low: float, closed: float) -> Candle:
    """Return the candle of a bar."""
    span = max(high - low, p.tick)
    size = np.log(span / opened) - p.level - USUAL_RANGE
    wick = (high - max(opened, closed)) - (min(opened, closed) - low)
    return Candle(size, (closed - opened) / span, wick / span)


@inlined
def shaped(z: float, kurtosis: float, skew: float) -> float:
    """Return a normal number with heavier tails and a skew."""
    unit = np.sqrt(1.0 + 6.0 * kurtosis + 15.0 * kurtosis * kurtosis)
    made: float = z * (1.0 + kurtosis * z * z) / unit + skew * (z * z - 1.0)
    return made


@inlined
def log_trades(p: Any, candle: Candle, heat: float, busy: float, burst: float) -> float:
    """Return log trades before season and noise: some come steadily, some with the range."""
    body = abs(candle.body)
    surprise = max(candle.size - heat, LEAST_SURPRISE)
    steady = 1.0 - p.trades_burst_share
    push = p.trades_burst_power * surprise + p.trades_burst_noise * burst
    many: float = (
        np.log(steady + p.trades_burst_share * np.exp(push))
        + p.trades_busy * busy
        + p.trades_body * (body * body - USUAL_BODY_SQUARE)
        + p.trades_body_range * (body - USUAL_BODY) * surprise
    )
    return many


@inlined
def tilt_of(p: Any, candle: Candle, move: float, rich: float, odd: float) -> float:
    """Return the taker imbalance that goes with a candle.

    ``rich`` is log trades and ``odd`` log range, each less its usual value.
    """
    body = p.takers_body + p.takers_body_trades * rich + p.takers_body_range * odd
    pull = p.takers_move + p.takers_move_trades * rich
    tilt: float = body * candle.body + pull * move
    return tilt


@door(
    numba.float64(_FLOATS, _TABLE, numba.uint64, numba.float64, numba.float64, numba.float64),
    parts=(draws,),
)
def noise_of(
    state: FloatArray,
    scales: FloatArray,
    base: np.uint64,
    spread: float,
    kurtosis: float,
    skew: float,
) -> float:
    """Move a noise of many time scales on by a bar, in place, and return it."""
    total = 0.0
    for k in range(state.size):
        z = normal(base, k)
        if k < SHAPED:
            z = spread * shaped(z, kurtosis, skew)
        state[k] = scales[DECAY, k] * state[k] + scales[SCALE, k] * z
        total += state[k]
    return total


@door(_FILL, parts=(draws, price_kernel))
def fill_trades(
    keys: NDArray[np.uint64], record: Any, scales: FloatArray, prices: FloatArray, work: FloatArray
) -> None:
    """Fill log trades, and the part of them that is noise."""
    p = record[0]
    noise = np.zeros(scales.shape[1])
    begin = base_of(keys[TRADE_NOISE], -1)
    for k in range(noise.size):
        noise[k] = scales[SCALE, k] * normal(begin, k) / np.sqrt(1.0 - scales[DECAY, k] ** 2)
    burst, keep = normal(begin, BURST_SLOT), p.trades_burst_memory
    habit, before = normal(base_of(keys[FLOW_HABITS], -1), 4), 0.0
    for t in range(work.shape[1]):
        if t % int(p.habit_bars) == 0:
            fresh = normal(base_of(keys[FLOW_HABITS], t), 4)
            habit = p.habit_memory * habit + p.habit_noise * fresh
        base = base_of(keys[TRADE_NOISE], t)
        candle = candle_of(p, prices[OPEN, t], prices[HIGH, t], prices[LOW, t], prices[CLOSE, t])
        burst = keep * burst + np.sqrt(1.0 - keep * keep) * normal(base, BURST_SLOT)
        heat = prices[HEAT, t] - work[SEASON, t]
        other = noise_of(noise, scales, base, 1.0, p.trades_kurtosis, p.trades_skew)
        work[TRADES, t] = (
            p.trades_level
            + work[TRADES_SEASON, t]
            + heat * (p.trades_heat + p.trades_heat_square * heat)
            + log_trades(p, candle, prices[HEAT, t], prices[BUSY, t], burst)
            + (p.trades_echo + p.trades_echo_drift * habit) * before
            + other
        )
        work[NOISE, t] = other
        before = max(candle.size - prices[HEAT, t], LEAST_SURPRISE)


@door(_FILL_MORE, parts=(draws, price_kernel))
def fill_sizes(
    keys: NDArray[np.uint64],
    record: Any,
    scales: FloatArray,
    past: FloatArray,
    prices: FloatArray,
    work: FloatArray,
) -> None:
    """Fill the log of the mean size of a trade; ``past`` is how it remembers past trades."""
    p = record[0]
    noise = np.zeros(scales.shape[1])
    memory = np.zeros(past.shape[1])
    begin = base_of(keys[SIZE_NOISE], -1)
    for k in range(noise.size):
        noise[k] = scales[SCALE, k] * normal(begin, k) / np.sqrt(1.0 - scales[DECAY, k] ** 2)
    habit = normal(base_of(keys[FLOW_HABITS], -1), 0)
    for t in range(work.shape[1]):
        if t % int(p.habit_bars) == 0:
            fresh = normal(base_of(keys[FLOW_HABITS], t), 0)
            habit = p.habit_memory * habit + p.habit_noise * fresh
        candle = candle_of(p, prices[OPEN, t], prices[HIGH, t], prices[LOW, t], prices[CLOSE, t])
        rich = work[TRADES, t] - p.trades_level
        spread = np.exp(p.sizes_drift * habit - p.sizes_calm * rich)
        base = base_of(keys[SIZE_NOISE], t)
        size = noise_of(noise, scales, base, spread, p.sizes_kurtosis, p.sizes_skew)
        size += p.sizes_level + work[SIZE_SEASON, t] + p.sizes_trades_noise * work[NOISE, t]
        size += rich * (p.sizes_trades + p.sizes_trades_square * rich)
        size += p.sizes_range * max(candle.size, LEAST_RANGE)
        for k in range(memory.size):
            size += past[LOAD, k] * memory[k]
            memory[k] = past[DECAY, k] * memory[k] + (1.0 - past[DECAY, k]) * rich
        work[SIZE, t] = size


@door(_FILL_MORE, parts=(draws, price_kernel))
def fill_tilt(
    keys: NDArray[np.uint64],
    record: Any,
    scales: FloatArray,
    past: FloatArray,
    prices: FloatArray,
    work: FloatArray,
) -> None:
    """Fill the taker imbalance; ``past`` holds the loads on the candles before."""
    p = record[0]
    noise = np.zeros(scales.shape[1])
    begin = base_of(keys[FLOW_HABITS], -1)
    of_slope, of_noise = normal(begin, 1), normal(begin, 2)
    of_lean, of_size = normal(begin, 3), normal(begin, 5)
    keep = np.exp(-1.0 / p.takers_range_tau)
    usual = last = second = third = 0.0
    before = prices[OPEN, 0]
    for t in range(work.shape[1]):
        if t % int(p.habit_bars) == 0:
            base = base_of(keys[FLOW_HABITS], t)
            of_slope = p.habit_memory * of_slope + p.habit_noise * normal(base, 1)
            of_noise = p.habit_memory * of_noise + p.habit_noise * normal(base, 2)
            of_lean = p.habit_memory * of_lean + p.habit_noise * normal(base, 3)
            of_size = p.habit_memory * of_size + p.habit_noise * normal(base, 5)
        candle = candle_of(p, prices[OPEN, t], prices[HIGH, t], prices[LOW, t], prices[CLOSE, t])
        size = max(candle.size, LEAST_RANGE)
        rich, odd = work[TRADES, t] - p.trades_level, size - usual
        move = np.log(prices[CLOSE, t] / before) / np.exp(usual + p.level + USUAL_RANGE)
        move = min(max(move, -LARGEST_MOVE), LARGEST_MOVE)
        lean = p.takers_noise_trades + p.takers_noise_trades_drift * of_lean
        scale = p.takers_noise + p.takers_noise_drift * of_noise + lean * rich
        lean = p.takers_noise_size + p.takers_noise_size_drift * of_size
        scale += lean * (work[SIZE, t] - p.sizes_level) + p.takers_noise_range * odd
        other = noise_of(noise, scales, base_of(keys[TILT_NOISE], t), 1.0, 0.0, 0.0)
        tilt = np.exp(p.takers_body_drift * of_slope) * tilt_of(p, candle, move, rich, odd)
        tilt += p.takers_level + p.takers_wick * candle.wick + np.exp(scale) * other
        tilt += past[0, 0] * last + past[0, 1] * second + past[0, 2] * third
        work[TILT, t] = np.tanh(tilt)
        last, second, third, before = candle.body, last, second, prices[CLOSE, t]
        usual = keep * usual + (1.0 - keep) * size
