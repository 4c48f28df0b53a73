"""The compiled filter of the linear-Gaussian tier: one exact Kalman filter a head.

A head says: the next standardised return is a hidden level, plus what is linear in the regressors
known before it, plus Gaussian noise. The level goes back to 0 by its persistence and is pushed
anew at each bar; the coefficients stay, and are learned with it, so the state of a head is the
level and the coefficients together, Gaussian and exact.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray

PERSISTENCE, PUSH, NOISE, PRIOR = range(4)
LARGEST_VALUE = 8.0
"""A return beyond so many deviations moves the state as one of so many does."""
HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
TINY = 1e-300


@inlined
def gaussian_log(value: float, mean: float, variance: float) -> float:
    """Return the log density of a Gaussian."""
    gap = value - mean
    return -0.5 * (gap * gap / variance + math.log(variance)) - HALF_LOG_TAU


@door("void(float64[::1], float64[::1], float64[::1], float64[:,::1], float64[::1])")
def foresee(
    law: FloatArray, known: FloatArray, mean: FloatArray, doubt: FloatArray, out: FloatArray
) -> None:
    """Write mean and variance of the next return, then its covariance with each of the state."""
    n = mean.size
    expected = mean[0]
    for j in range(1, n):
        expected += known[j - 1] * mean[j]
    for i in range(n):
        shared = doubt[i, 0]
        for j in range(1, n):
            shared += known[j - 1] * doubt[i, j]
        out[2 + i] = shared
    variance = law[NOISE] + out[2]
    for j in range(1, n):
        variance += known[j - 1] * out[2 + j]
    out[0], out[1] = expected, variance


@door("void(float64, float64[::1], float64[::1], float64[:,::1])")
def absorb(value: float, foreseen: FloatArray, mean: FloatArray, doubt: FloatArray) -> None:
    """Move the state by a return that was foreseen so."""
    n, variance = mean.size, foreseen[1]
    gap = value - foreseen[0]
    for i in range(n):
        share = foreseen[2 + i] / variance
        mean[i] += share * gap
        for j in range(i + 1):
            doubt[i, j] -= share * foreseen[2 + j]
            doubt[j, i] = doubt[i, j]


@door("void(float64[::1], float64[::1], float64[:,::1])")
def pass_bar(law: FloatArray, mean: FloatArray, doubt: FloatArray) -> None:
    """Let a bar go by: the level goes back towards 0 and is pushed."""
    kept = law[PERSISTENCE]
    mean[0] *= kept
    for j in range(mean.size):
        doubt[0, j] *= kept
        doubt[j, 0] = doubt[0, j]
    doubt[0, 0] = doubt[0, 0] * kept + law[PUSH]


@door("float64(float64[::1], float64[:,::1], float64[:,::1], float64[::1], float64[:,::1])")
def best_log_likelihood(
    law: FloatArray, seen: FloatArray, known: FloatArray, mean: FloatArray, doubt: FloatArray
) -> float:
    """Return the log likelihood of a series at the noise that makes it most likely.

    Law and state are given in units of the noise, whose variance is written into ``seen[0, 1]``.
    """
    foreseen = np.empty(2 + mean.size)
    count, logs, squares = 0, 0.0, 0.0
    for t in range(seen.shape[0]):
        if math.isfinite(seen[t, 0]):
            value = min(max(seen[t, 0], -LARGEST_VALUE), LARGEST_VALUE)
            foresee(law, known[t], mean, doubt, foreseen)
            count += 1
            logs += math.log(foreseen[1])
            squares += (value - foreseen[0]) ** 2 / foreseen[1]
            absorb(value, foreseen, mean, doubt)
        pass_bar(law, mean, doubt)
    noise = squares / count
    seen[0, 1] = noise
    return -0.5 * (logs + count * (math.log(noise) + 1.0)) - count * HALF_LOG_TAU


@door("float64(float64[:,::1], float64, float64, float64[:,::1], float64[::1])")
def weigh_heads(
    laws: FloatArray, forget: float, value: float, foreseen: FloatArray, chance: FloatArray
) -> float:
    """Move the chances by Bayes' rule; return the log density of the return, all heads."""
    heads = chance.size
    inside = min(max(value, -LARGEST_VALUE), LARGEST_VALUE)
    logs = np.empty((2, heads))
    for k in range(heads):
        believed = math.log(max(chance[k], TINY))
        logs[0, k] = believed + gaussian_log(value, foreseen[k, 0], foreseen[k, 1])
        logs[1, k] = believed + gaussian_log(inside, foreseen[k, 0], foreseen[k, 1])
    most, most_inside = float(logs[0].max()), float(logs[1].max())
    total, total_inside = 0.0, 0.0
    for k in range(heads):
        total += math.exp(logs[0, k] - most)
        total_inside += math.exp(logs[1, k] - most_inside)
    for k in range(heads):
        after = math.exp(logs[1, k] - most_inside) / total_inside
        chance[k] = (1.0 - forget) * after + forget * laws[k, PRIOR]
    return most + math.log(total)


@door(
    "void(float64[:,::1], float64, float64[:,::1], float64[:,::1], float64[::1], float64[:,:,::1])"
)
def follow_heads(
    laws: FloatArray,
    forget: float,
    seen: FloatArray,
    known: FloatArray,
    memory: FloatArray,
    told: FloatArray,
) -> None:
    """Follow a series; write chance, mean and variance of each head, in standardised units.

    ``seen`` holds the standardised return of each bar (NaN: not known) and gets its log density
    beside it. ``known[t]`` are the regressors known before bar t, ``known[t + 1]`` after it. The
    memory holds the means, the covariances and the chances of all heads.
    """
    heads, n = laws.shape[0], known.shape[1] + 1
    means = memory[: heads * n].reshape((heads, n))
    doubts = memory[heads * n : heads * n * (n + 1)].reshape((heads, n, n))
    chance = memory[heads * n * (n + 1) :]
    foreseen = np.empty((heads, 2 + n))
    for k in range(heads):
        foresee(laws[k], known[0], means[k], doubts[k], foreseen[k])
    for t in range(seen.shape[0]):
        value = seen[t, 0]
        seen[t, 1] = math.nan
        if math.isfinite(value):
            seen[t, 1] = weigh_heads(laws, forget, value, foreseen, chance)
            value = min(max(value, -LARGEST_VALUE), LARGEST_VALUE)
            for k in range(heads):
                absorb(value, foreseen[k], means[k], doubts[k])
        for k in range(heads):
            pass_bar(laws[k], means[k], doubts[k])
            foresee(laws[k], known[t + 1], means[k], doubts[k], foreseen[k])
            told[0, t, k] = chance[k]
            told[1, t, k], told[2, t, k] = foreseen[k, 0], foreseen[k, 1]
