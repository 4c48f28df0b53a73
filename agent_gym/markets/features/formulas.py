"""The scalar formulas of the features; unknown is NaN on the way in and on the way out.

Every average is exponentially weighted over all that was seen, with weights that add up to one from
the first value on, so no seed value is invented. ``weight`` is the share of the full weight that
has been seen; it is 1/2 after one half-life. A feature is unknown until its averages have seen
enough, because an average of a few values is mostly luck and would scale the feature by that luck.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from agent_gym.core.kernels import inlined

NAN = math.nan
# Prices, sizes and rates beyond these are not of this world; inside them no formula overflows.
SMALLEST = 1e-60
LARGEST = 1e60
# Below this the deviation of a logarithm or a rate is rounding noise, not information.
DEVIATION_FLOOR = 1e-9
ROUNDING = 1e-9
TURN = 2.0 * math.pi


class Ewma(NamedTuple):
    """An exponentially weighted mean and variance, and how much of its weight has been seen."""

    mean: float
    variance: float
    weight: float


@inlined
def updated(seen: Ewma, x: float, decay: float) -> Ewma:
    """Return the average with one more value; an unknown value changes nothing."""
    if x != x:
        return seen
    weight = decay * seen.weight + (1.0 - decay)
    share = (1.0 - decay) / weight
    step = x - seen.mean
    variance = (1.0 - share) * (seen.variance + share * step * step)
    return Ewma(seen.mean + share * step, variance, weight)


@inlined
def volatility(squares: Ewma, ready: float, floor: float) -> float:
    """Return the root of an average of squared returns, not below the floor."""
    if squares.weight < ready:
        return NAN
    return max(math.sqrt(squares.mean), floor)


@inlined
def standardised(x: float, seen: Ewma, ready: float) -> float:
    """Return how many deviations a value stands from its average."""
    if x != x or seen.weight < ready:
        return NAN
    return (x - seen.mean) / max(math.sqrt(seen.variance), DEVIATION_FLOOR)


@inlined
def relative(x: float, sizes: Ewma, ready: float) -> float:
    """Return a value over the average of its sizes; nothing over nothing is 0."""
    if x != x or sizes.weight < ready:
        return NAN
    if sizes.mean <= 0.0:
        return 0.0
    return x / sizes.mean


@inlined
def clipped(x: float, bound: float) -> float:
    """Return x within the bounds; unknown stays unknown."""
    if x > bound:
        return bound
    if x < -bound:
        return -bound
    return x


@inlined
def known(x: float) -> float:
    """Return x if it is a number of a sane size."""
    return x if abs(x) < LARGEST else NAN


@inlined
def logarithm(x: float) -> float:
    """Return the natural logarithm of a positive number of a sane size."""
    if x > SMALLEST and x < LARGEST:
        return math.log(x)
    return NAN


@inlined
def log_range(high: float, low: float, close: float) -> float:
    """Return ln(high / low) of a candle that holds its close."""
    if low <= close and close <= high:
        return logarithm(high) - logarithm(low)
    return NAN


@inlined
def close_location(high: float, low: float, close: float) -> float:
    """Return where the close stands in the candle, -1/2 to 1/2; unknown if it has no height."""
    if low > SMALLEST and high < LARGEST and low < high and low <= close and close <= high:
        return (close - low) / (high - low) - 0.5
    return NAN


@inlined
def taker_imbalance(bought: float, volume: float) -> float:
    """Return (taker buys - taker sells) / volume; unknown without trades or beyond the volume."""
    if volume > 0.0 and bought >= 0.0 and bought <= volume * (1.0 + ROUNDING):
        return clipped(2.0 * (bought / volume) - 1.0, 1.0)
    return NAN


@inlined
def book_imbalance(x: float) -> float:
    """Return a book imbalance if it is one, -1 to 1."""
    return clipped(x, 1.0) if abs(x) <= 1.0 + ROUNDING else NAN


@inlined
def spread_bp(spread: float, close: float) -> float:
    """Return the quoted spread in hundredths of a per cent of the price."""
    if spread > SMALLEST and spread < LARGEST and close > SMALLEST and close < LARGEST:
        return spread / close * 1e4
    return NAN


@inlined
def settled(rate: float) -> float:
    """Return a funding rate that fell due; bars where none does carry 0."""
    return NAN if rate == 0.0 else rate


@inlined
def phase(now_ns: int, cycle_ns: int) -> float:
    """Return the angle of a moment in a cycle that began at 1970."""
    return TURN * ((now_ns % cycle_ns) / cycle_ns)
