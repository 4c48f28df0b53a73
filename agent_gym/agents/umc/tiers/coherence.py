"""How well a model explains the market of late, next to a plain Gaussian of the same deviation.

Coherence is the exponential of the mean lead in log score over the trailing bars, cut at 1: a model
that foretells as well as the plain Gaussian or better is fully coherent, one that is worse by 0.36
nats a bar has 0.7 left. Every bar is scored by what was said before it, so coherence is causal.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.agents.umc.tiers.contract import Series
from agent_gym.core.errors import DataError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

COHERENCE_BARS = 500
LARGEST = 10.0  # nats of one bar that count; far out a Gaussian is wrong without bounds
HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@door("void(float64[::1], float64[::1], float64[::1])")
def follow_leads(leads: FloatArray, memory: FloatArray, out: FloatArray) -> None:
    """Write the coherence after each bar; memory is how many leads were met, then the last ones.

    The sum is taken anew each time, so no rounding is carried on for ever.
    """
    window = memory.size - 1
    for t in range(leads.size):
        if leads[t] == leads[t]:
            memory[1 + int(memory[0]) % window] = min(max(leads[t], -LARGEST), LARGEST)
            memory[0] += 1.0
        count, total = min(int(memory[0]), window), 0.0
        for i in range(count):
            total += memory[1 + i]
        out[t] = math.exp(min(total / max(count, 1), 0.0))


def begin_coherence(bars: int = COHERENCE_BARS) -> FloatArray:
    """Return a memory that has seen nothing, for so many trailing bars."""
    if bars < 1:
        raise DataError("coherence is of at least one bar", found=bars)
    return np.zeros(1 + bars)


def follow_coherence(
    scores: FloatArray, baseline_scores: FloatArray, memory: FloatArray
) -> FloatArray:
    """Return the coherence after each bar and move the memory on in place.

    A bar without a score leaves it as it was; before any score nothing speaks against the model,
    and it is 1.
    """
    out = np.empty(scores.size)
    follow_leads(np.ascontiguousarray(scores - baseline_scores), memory, out)
    return out


def coherence(
    scores: FloatArray, baseline_scores: FloatArray, bars: int = COHERENCE_BARS
) -> FloatArray:
    """Return the coherence after each bar of a whole series.

    Example:
        >>> coherence(np.array([np.nan, -2.0, 0.0]), np.full(3, -1.0), bars=1).round(3).tolist()
        [1.0, 0.368, 1.0]
    """
    return follow_coherence(scores, baseline_scores, begin_coherence(bars))


def plain_scores(seen: Series) -> FloatArray:
    """Return the log density of each bar by a Gaussian of mean 0 and the expected deviation."""
    told: FloatArray = -0.5 * seen.standard**2 - HALF_LOG_TAU - np.log(seen.expected_sigma)
    return told
