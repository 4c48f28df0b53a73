"""The compiled passes over a series: one visit a bar, all memory carried in arrays.

The whole series and a live bar go through the same doors; a live bar is a series of one. What a
door remembers between calls is in ``state`` (one row an average) and ``ring`` (past log prices).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.clock import DAY_NS
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray
from agent_gym.markets.features import formulas
from agent_gym.markets.features.formulas import (
    NAN,
    Ewma,
    book_imbalance,
    clipped,
    close_location,
    known,
    log_range,
    logarithm,
    phase,
    relative,
    settled,
    spread_bp,
    standardised,
    taker_imbalance,
    updated,
    volatility,
)

COLUMNS = ("high", "low", "close", "volume", "taker_buy", "obi", "ofi", "spread", "funding")
HIGH, LOW, CLOSE, VOLUME, TAKER, OBI, OFI, SPREAD, FUNDING = range(9)
STATE_SHAPE = (5, 3)  # up to four averages and a row of single values, for either door
WEEK_NS = 7 * DAY_NS
MONDAY_NS = 4 * DAY_NS  # 1970 began on a Thursday


class PriceKnobs(NamedTuple):
    """Constants of the price pass."""

    ready: float
    decay: float
    fast: float
    slow: float
    floor: float
    return_clip: float
    momentum_clip: float


class FlowKnobs(NamedTuple):
    """Constants of the flow pass."""

    ready: float
    volume: float
    order_flow: float
    spread: float
    funding: float


@door(
    "void(float64[:,::1], float64[::1], int64[::1], float64[:,::1], float64[::1], float64[:,::1])",
    parts=(formulas,),
)
def price_features(
    rows: FloatArray,
    knobs: FloatArray,
    horizons: NDArray[np.int64],
    state: FloatArray,
    ring: FloatArray,
    out: FloatArray,
) -> None:
    """Write features 1 to 8 (return, momenta, volatility ratio, range, close location)."""
    k = PriceKnobs(knobs[0], knobs[1], knobs[2], knobs[3], knobs[4], knobs[5], knobs[6])
    steady = Ewma(state[0, 0], state[0, 1], state[0, 2])
    fast = Ewma(state[1, 0], state[1, 1], state[1, 2])
    slow = Ewma(state[2, 0], state[2, 1], state[2, 2])
    last = state[3, 0]
    bars_seen = int(state[3, 1])
    wrap = ring.size - 1
    for t in range(rows.shape[0]):
        high, low, close = rows[t, HIGH], rows[t, LOW], rows[t, CLOSE]
        log_close = logarithm(close)
        change = log_close - last
        last = log_close
        out[t, 0] = clipped(change / volatility(steady, k.ready, k.floor), k.return_clip)
        steady = updated(steady, change * change, k.decay)
        fast = updated(fast, change * change, k.fast)
        slow = updated(slow, change * change, k.slow)
        sigma = volatility(steady, k.ready, k.floor)
        for j in range(4):
            past = ring[(bars_seen - horizons[j]) & wrap]
            moved = (log_close - past) / (sigma * math.sqrt(horizons[j]))
            out[t, 1 + j] = clipped(moved, k.momentum_clip)
        ring[bars_seen & wrap] = log_close
        bars_seen += 1
        ratio = volatility(fast, k.ready, k.floor) / volatility(slow, k.ready, k.floor)
        out[t, 5] = math.log(ratio) if log_close == log_close else NAN
        out[t, 6] = log_range(high, low, close) / sigma
        out[t, 7] = close_location(high, low, close)
    state[0, 0], state[0, 1], state[0, 2] = steady.mean, steady.variance, steady.weight
    state[1, 0], state[1, 1], state[1, 2] = fast.mean, fast.variance, fast.weight
    state[2, 0], state[2, 1], state[2, 2] = slow.mean, slow.variance, slow.weight
    state[3, 0], state[3, 1] = last, bars_seen


@door("void(float64[:,::1], float64[::1], float64[:,::1], float64[:,::1])", parts=(formulas,))
def flow_features(rows: FloatArray, knobs: FloatArray, state: FloatArray, out: FloatArray) -> None:
    """Write features 9 to 14 (volume, takers, book, order flow, spread, funding)."""
    k = FlowKnobs(knobs[0], knobs[1], knobs[2], knobs[3], knobs[4])
    volumes = Ewma(state[0, 0], state[0, 1], state[0, 2])
    flows = Ewma(state[1, 0], state[1, 1], state[1, 2])
    spreads = Ewma(state[2, 0], state[2, 1], state[2, 2])
    rates = Ewma(state[3, 0], state[3, 1], state[3, 2])
    last_rate = state[4, 0]
    for t in range(rows.shape[0]):
        log_volume = logarithm(rows[t, VOLUME])
        volumes = updated(volumes, log_volume, k.volume)
        out[t, 8] = standardised(log_volume, volumes, k.ready)
        out[t, 9] = taker_imbalance(rows[t, TAKER], rows[t, VOLUME])
        out[t, 10] = book_imbalance(rows[t, OBI])
        flow = known(rows[t, OFI])
        flows = updated(flows, abs(flow), k.order_flow)
        out[t, 11] = relative(flow, flows, k.ready)
        width = spread_bp(rows[t, SPREAD], rows[t, CLOSE])
        spreads = updated(spreads, width, k.spread)
        out[t, 12] = math.log(relative(width, spreads, k.ready))
        quoted = known(rows[t, FUNDING])
        rate = settled(quoted)
        rates = updated(rates, rate, k.funding)
        last_rate = rate if rate == rate else last_rate
        current = last_rate if quoted == quoted else NAN
        out[t, 13] = standardised(current, rates, k.ready)
    state[0, 0], state[0, 1], state[0, 2] = volumes.mean, volumes.variance, volumes.weight
    state[1, 0], state[1, 1], state[1, 2] = flows.mean, flows.variance, flows.weight
    state[2, 0], state[2, 1], state[2, 2] = spreads.mean, spreads.variance, spreads.weight
    state[3, 0], state[3, 1], state[3, 2] = rates.mean, rates.variance, rates.weight
    state[4, 0] = last_rate


@door("void(int64[::1], float64[:,::1])", parts=(formulas,))
def time_features(closes_ns: NDArray[np.int64], out: FloatArray) -> None:
    """Write features 15 to 18: where the close stands in the UTC day and in the week."""
    for t in range(closes_ns.size):
        day = phase(closes_ns[t], DAY_NS)
        week = phase(closes_ns[t] - MONDAY_NS, WEEK_NS)
        out[t, 14], out[t, 15] = math.sin(day), math.cos(day)
        out[t, 16], out[t, 17] = math.sin(week), math.cos(week)
