"""The compiled part of the planner: what positions are worth along a chain of edges."""

from __future__ import annotations

import numpy as np

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

HUGE = 1e300


@door("int64(float64[:,::1], float64[:,::1], float64[:,::1], float64[::1], float64[:,::1])")
def iterate_values(
    chain: FloatArray, paid: FloatArray, costs: FloatArray, knobs: FloatArray, worth: FloatArray
) -> int:
    """Run relative value iteration into ``worth``; return the sweeps, 0 if it did not settle.

    ``chain[x, y]`` is the chance that edge y follows edge x, ``paid[x, a]`` what position a brings
    at edge x, ``costs[p, a]`` what it costs to go there from p. ``worth[x, a]`` is what it is worth
    to hold a at x from now on, before the cost of getting there. Knobs: tolerance, most sweeps.
    """
    n, k = paid.shape
    value = np.zeros((n, k))
    for sweep in range(1, int(knobs[1]) + 1):
        worth[:] = np.dot(chain, value)
        worth += paid
        low, high = HUGE, -HUGE
        for x in range(n):
            for p in range(k):
                best = -HUGE
                for a in range(k):
                    best = max(best, worth[x, a] - costs[p, a])
                low, high = min(low, best - value[x, p]), max(high, best - value[x, p])
                value[x, p] = best
        base = value[n // 2, 0]
        value -= base
        if high - low < knobs[0]:
            return sweep
    return 0
