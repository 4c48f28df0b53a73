"""The compiled filter of the exact tier: many two-state hypotheses at once, weighted by Bayes.

A hypothesis says: the next standardised return is ``low`` or ``high`` times one regressor, as a
hidden state has it that stays with chance ``stay``, plus Student-t noise. The memory of a series is
one flat array: what is expected of the next bar comes first, then a belief and a weight for each
hypothesis.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.kernels import door, inlined
from agent_gym.core.types import FloatArray

TINY = 1e-300
LOW, HIGH, COLUMN, STAY, HEAD, PRIOR = range(6)
SCALE, FREEDOM, SHARE = range(3)


@inlined
def student_density(z: float, freedom: float, constant: float) -> float:
    """Return the density of Student's law, where ``constant`` is the log of that at 0."""
    return math.exp(constant - 0.5 * (freedom + 1.0) * math.log1p(z * z / freedom))


@door("float64(float64[:,::1], float64[::1], float64, float64[::1], float64[:,::1])")
def weigh_hypotheses(
    table: FloatArray, knobs: FloatArray, value: float, before: FloatArray, state: FloatArray
) -> float:
    """Move beliefs and weights by one standardised return; return the log density it had.

    ``state`` holds the chance of the upper state of the bar to come, and the weight, of each
    hypothesis. A share of the weight always goes back to the prior, so that a market which
    changes its law is followed.
    """
    freedom, scale, share = knobs[FREEDOM], knobs[SCALE], knobs[SHARE]
    half = 0.5 * freedom
    constant = math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(math.pi * freedom)
    constant -= math.log(scale)
    total = 0.0
    for h in range(table.shape[0]):
        x = before[int(table[h, COLUMN])]
        up = student_density((value - table[h, HIGH] * x) / scale, freedom, constant)
        down = student_density((value - table[h, LOW] * x) / scale, freedom, constant)
        ahead = state[0, h]
        both = max(ahead * up + (1.0 - ahead) * down, TINY)
        after = ahead * up / both
        stay = table[h, STAY]
        state[0, h] = stay * after + (1.0 - stay) * (1.0 - after)
        state[1, h] *= both
        total += state[1, h]
    total = max(total, TINY)
    for h in range(table.shape[0]):
        state[1, h] = (1.0 - share) * state[1, h] / total + share * table[h, PRIOR]
    return math.log(total)


@door(
    "void(float64[:,::1], float64[::1], float64[:,::1], float64[:,::1], float64[:,::1], "
    "float64[:,:,::1])"
)
def follow_hypotheses(
    table: FloatArray,
    knobs: FloatArray,
    seen: FloatArray,
    regressors: FloatArray,
    state: FloatArray,
    told: FloatArray,
) -> None:
    """Follow a series; write chance, mean and variance of each head, in standardised units.

    ``seen`` holds the standardised return of each bar (NaN: not known) and gets its log density
    beside it. ``regressors[t]`` is what was known before bar t, ``regressors[t + 1]`` after it.
    """
    noise = knobs[SCALE] ** 2
    if knobs[FREEDOM] > 2.0:
        noise *= knobs[FREEDOM] / (knobs[FREEDOM] - 2.0)
    heads = told.shape[2]
    sums = np.empty((3, heads))
    for t in range(seen.shape[0]):
        seen[t, 1] = math.nan
        if seen[t, 0] == seen[t, 0]:
            seen[t, 1] = weigh_hypotheses(table, knobs, seen[t, 0], regressors[t], state)
        sums[:] = 0.0
        for h in range(table.shape[0]):
            x = regressors[t + 1, int(table[h, COLUMN])]
            ahead, weight, head = state[0, h], state[1, h], int(table[h, HEAD])
            up, down = table[h, HIGH] * x, table[h, LOW] * x
            sums[0, head] += weight
            sums[1, head] += weight * (ahead * up + (1.0 - ahead) * down)
            sums[2, head] += weight * (ahead * up * up + (1.0 - ahead) * down * down)
        for head in range(heads):
            weight = max(sums[0, head], TINY)
            mean = sums[1, head] / weight
            told[0, t, head] = sums[0, head]
            told[1, t, head] = mean
            told[2, t, head] = noise + max(0.0, sums[2, head] / weight - mean * mean)
