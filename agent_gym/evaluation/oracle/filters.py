"""What can be known of the hidden state at each close, exactly, from what agents are shown.

Every filter is a door with the same arguments: the column it reads, its constants, a memory that is
carried from call to call, and the two coordinates of the state that it writes. So one bar and a
whole series go through the same code and give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray

SIGNATURE = "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])"
LARGEST_EVIDENCE = 500.0


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """A door, the column it reads, its constants and the memory it starts with."""

    column: str
    run: Callable[[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray], None]
    knobs: tuple[float, ...] = ()
    start: tuple[float, ...] = ()

    def begin(self) -> FloatArray:
        """Return the memory before the first bar."""
        return np.array(self.start, dtype=np.float64)

    def states(self, column: FloatArray, memory: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both coordinates at each moment and carry the memory on."""
        xs, ys = np.empty(column.size), np.empty(column.size)
        self.run(column, np.array(self.knobs, dtype=np.float64), memory, xs, ys)
        return xs, ys


def nothing_filter() -> Filter:
    """Return the filter of a market in which there is nothing to know."""
    return Filter("close", keep_nothing)


def signal_filter(column: str, scale: float) -> Filter:
    """Return the filter of a state that is shown: the column in other units."""
    return Filter(column, take_signal, (scale,))


def drift_filter(mean: float, sigma: float, stay: float) -> Filter:
    """Return the filter of M1: the chance that the drift points up, from closes."""
    return Filter("close", follow_drift, (mean, sigma, stay), (math.nan, 0.5))


def regime_filter(share: float, sigma: float, stay: float) -> Filter:
    """Return the filter of M3: the chance of momentum, and the last return, from closes."""
    return Filter("close", follow_regime, (share, sigma, stay), (math.nan, 0.5, 0.0))


def mispricing_filter(memory: float, shock: float, sigma: float) -> Filter:
    """Return the filter of M2 when it is hidden: the steady Kalman estimate, from closes."""
    gain, _ = kalman_gain(memory, shock, sigma)
    return Filter("close", follow_mispricing, (memory, gain), (math.nan, 0.0))


def kalman_gain(memory: float, shock: float, sigma: float) -> tuple[float, float]:
    """Return the gain of the steady estimate and the variance of its surprises.

    A return holds the change of the mispricing and the noise of the fair price. So the error of the
    estimate enters the surprise with ``memory - 1`` and the next error with ``memory``.
    """
    # The variance of the error stays the same for ever if it solves a x^2 + b x = c:
    a = (1.0 - memory) ** 2
    b, c = (1.0 - memory**2) * sigma**2, shock**2 * sigma**2
    variance = 2.0 * c / (b + math.sqrt(b * b + 4.0 * a * c))
    surprise = a * variance + shock**2 + sigma**2
    gain = ((memory - 1.0) * memory * variance + shock**2) / surprise
    return gain, surprise


@inlined
def simple_return(close: float, last: float) -> float:
    """Return the return of a bar, 0 for the first."""
    return close / last - 1.0 if last == last else 0.0


@inlined
def updated(belief: float, stay: float, evidence: float) -> float:
    """Return the belief after one more bar; evidence is the log of the ratio of likelihoods."""
    ahead = stay * belief + (1.0 - stay) * (1.0 - belief)
    ratio = math.exp(min(max(evidence, -LARGEST_EVIDENCE), LARGEST_EVIDENCE))
    return ahead * ratio / (ahead * ratio + 1.0 - ahead)


@door(SIGNATURE)
def keep_nothing(
    column: FloatArray, knobs: FloatArray, memory: FloatArray, xs: FloatArray, ys: FloatArray
) -> None:
    """Write zeros."""
    xs[:] = 0.0
    ys[:] = 0.0


@door(SIGNATURE)
def take_signal(
    column: FloatArray, knobs: FloatArray, memory: FloatArray, xs: FloatArray, ys: FloatArray
) -> None:
    """Write the column times the scale; ``knobs`` hold the scale."""
    for t in range(column.size):
        xs[t] = knobs[0] * column[t]
        ys[t] = 0.0


@door(SIGNATURE)
def follow_drift(
    column: FloatArray, knobs: FloatArray, memory: FloatArray, xs: FloatArray, ys: FloatArray
) -> None:
    """Write the chance that the drift of the bar that closed pointed up."""
    mean, sigma, stay = knobs[0], knobs[1], knobs[2]
    last, belief = memory[0], memory[1]
    for t in range(column.size):
        evidence = 2.0 * mean * simple_return(column[t], last) / (sigma * sigma)
        last = column[t]
        belief = updated(belief, stay, evidence)
        xs[t] = belief
        ys[t] = 0.0
    memory[0], memory[1] = last, belief


@door(SIGNATURE)
def follow_regime(
    column: FloatArray, knobs: FloatArray, memory: FloatArray, xs: FloatArray, ys: FloatArray
) -> None:
    """Write the chance of momentum in the bar that closed, and its return."""
    share, sigma, stay = knobs[0], knobs[1], knobs[2]
    last, belief, before = memory[0], memory[1], memory[2]
    for t in range(column.size):
        now = simple_return(column[t], last)
        last = column[t]
        belief = updated(belief, stay, 2.0 * share * before * now / (sigma * sigma))
        before = now
        xs[t] = belief
        ys[t] = now
    memory[0], memory[1], memory[2] = last, belief, before


@door(SIGNATURE)
def follow_mispricing(
    column: FloatArray, knobs: FloatArray, memory: FloatArray, xs: FloatArray, ys: FloatArray
) -> None:
    """Write the estimated mispricing with its sign turned: above 0 the price is expected to rise.

    ``knobs`` are the memory of the mispricing and the gain.
    """
    keep, gain = knobs[0], knobs[1]
    last, level = memory[0], memory[1]
    for t in range(column.size):
        if last == last:
            surprise = simple_return(column[t], last) + (1.0 - keep) * level
            level = keep * level + gain * surprise
        last = column[t]
        xs[t] = -level
        ys[t] = 0.0
    memory[0], memory[1] = last, level
