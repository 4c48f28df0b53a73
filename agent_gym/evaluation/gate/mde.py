"""The smallest loss that a comparison would see, and the one that it ought to see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.gate.paired import Bounds
from agent_gym.evaluation.gate.policy import GatePolicy

HALVINGS = 12


@dataclass(frozen=True, slots=True)
class Hurdle:
    """One test that a loss has to pass: its seeds, its p-value, and whether tolerances count."""

    n: NDArray[np.int64]
    p: FloatArray
    decides: bool


def smallest_seen(
    sd: FloatArray, tolerance: FloatArray, hurdles: Sequence[Hurdle], policy: GatePolicy
) -> FloatArray:
    """Return the true loss that passes all hurdles with the policy's power.

    The noise is taken to be normal. Without noise the answer is the tolerance.
    """
    each = [_bars(hurdle, sd, tolerance, policy) for hurdle in hurdles]
    bars = [bar for of_one in each for bar in of_one]
    # One hurdle alone is not missed more often than all of them, and if the miss is shared evenly
    # they are not missed too often together; the truth lies between.
    low = _beyond(bars, tolerance, 1.0 - policy.power)
    high = _beyond(bars, tolerance, (1.0 - policy.power) / len(hurdles))
    for _ in range(HALVINGS if len(hurdles) > 1 else 0):
        middle = 0.5 * (low + high)
        passed = np.ones_like(middle)
        for of_one in each:
            passed *= _passed(middle, of_one)
        enough = passed >= policy.power
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(sd > 0.0, high, tolerance)


def seen_twice(
    sd: FloatArray, tolerance: FloatArray, hurdle: Hurdle, policy: GatePolicy
) -> FloatArray:
    """Return the true loss that passes one hurdle two times running with the policy's power."""
    bars = _bars(hurdle, sd, tolerance, policy)
    return np.where(sd > 0.0, _beyond(bars, tolerance, 1.0 - policy.power**0.5), tolerance)


def _bars(
    hurdle: Hurdle, sd: FloatArray, tolerance: FloatArray, policy: GatePolicy
) -> list[tuple[FloatArray, FloatArray]]:
    """Return the mean losses beyond which a hurdle is passed, each with its standard error.

    The error of the noise itself is in the first one (the usual approximation to the noncentral t).
    """
    freedom = np.maximum(hurdle.n - 1, 1)
    error = sd / np.sqrt(np.maximum(hurdle.n, 1))
    t = np.asarray(stdtrit(freedom, 1.0 - hurdle.p), dtype=np.float64)
    bar = t * (1.0 - 0.25 / freedom) * error
    spread = error * np.sqrt(1.0 + 0.5 * t * t / freedom)
    if not hurdle.decides:
        return [(bar, spread)]
    if policy.null == "tolerance":
        return [(tolerance + bar, spread)]
    return [(bar, spread), (tolerance, error)]


def _passed(loss: FloatArray, bars: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return how often a loss passes the harder of the bars."""
    passed = np.ones_like(loss)
    for bar, error in bars:
        passed = np.minimum(passed, ndtr((loss - bar) / np.where(error > 0.0, error, 1.0)))
    return passed


def _beyond(
    bars: Sequence[tuple[FloatArray, FloatArray]], tolerance: FloatArray, miss: float
) -> FloatArray:
    """Return the loss that each bar by itself misses no more often than this."""
    margin = float(ndtri(1.0 - miss))
    needed = tolerance
    for bar, error in bars:
        needed = np.maximum(needed, bar + margin * error)
    return needed


def required_loss(
    base: FloatArray, tolerance: FloatArray, bounds: Bounds, policy: GatePolicy
) -> FloatArray:
    """Return the loss that a comparison ought to see, in the metric's unit.

    It is the required share of the baseline (of the floor, where the baseline is below it), but
    never less than twice the tolerance: a loss within the tolerance is none.
    """
    share = policy.required_effect * np.maximum(np.abs(base), bounds.floor)
    return np.maximum(share, 2.0 * tolerance)
