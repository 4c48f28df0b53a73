"""How flow and news become a bar: compiled, without memory of its own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

SUB_STEPS = 12


class Physics(NamedTuple):
    """The law of a market as numbers, in this order in the kernel's first argument.

    ``paid`` is the share of the impact that the flow itself pays; ``fading`` the share of what is
    transient that goes back in a bar.
    """

    square_root: float
    strength: float
    sigma: float
    bars_per_day: float
    transient: float
    fading: float
    paid: float
    pull: float


class Formed(NamedTuple):
    """A bar as the kernel writes it: prices, then logarithms, then what is still to go back."""

    open: float
    high: float
    low: float
    close: float
    log_open: float
    log_high: float
    log_low: float
    log_close: float
    worth: float
    transient: float


@door("void(float64[::1], float64[::1], float64[::1], float64, float64[::1])")
def form_bar(
    physics: FloatArray, state: FloatArray, news: FloatArray, flow: float, out: FloatArray
) -> None:
    """Write the bar that a net flow, in average daily volumes, and its news make of a market.

    ``state`` holds log price, log worth and the transient part of the price, and stays as it is:
    a bar can be tried more than once. The open is what the flow pays.
    """
    strength, share = physics[1], abs(flow)
    moved = strength * flow
    if physics[0] != 0.0:
        size = strength * physics[2] * math.sqrt(share * physics[3])
        moved = math.copysign(size, flow) if share > 0.0 else 0.0
    begin, worth, transient = state[0], state[1], state[2]
    steps = news.size
    back = physics[5] * transient / steps
    pull = physics[7] / steps
    price, first = begin + moved, begin + physics[6] * moved
    high, low = max(first, price), min(first, price)
    for j in range(steps):
        price = (price + (pull * (worth - price) - back)) + news[j]
        worth += news[j]
        high, low = max(high, price), min(low, price)
    o, c = math.exp(first), math.exp(price)
    out[0], out[3] = o, c
    out[1], out[2] = max(math.exp(high), o, c), min(math.exp(low), o, c)
    out[4], out[5], out[6], out[7] = first, high, low, price
    out[8], out[9] = worth, transient - physics[5] * transient + physics[4] * moved


@door("float64(float64, float64, float64, float64)")
def next_variance(variance: float, close: float, before: float, decay: float) -> float:
    """Return the average squared log return after one more bar."""
    r = math.log(close / before)
    return decay * variance + (1.0 - decay) * r * r


@door("float64(float64, float64)")
def range_variance(high: float, low: float) -> float:
    """Return the variance that the range of one bar speaks of."""
    spread = math.log(high / low)
    return spread * spread / (4.0 * math.log(2.0))


@door("float64[::1](float64[::1], float64)")
def remember(shocks: FloatArray, memory: float) -> FloatArray:
    """Return an AR(1) series of variance 1 from independent normal numbers."""
    series = np.empty_like(shocks)
    fresh = math.sqrt(1.0 - memory * memory)
    last = shocks[0]
    series[0] = last
    for i in range(1, shocks.size):
        last = memory * last + fresh * shocks[i]
        series[i] = last
    return series
