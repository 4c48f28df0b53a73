"""The compiled part of learning: growth along the chain of levels held, and how chances change it.

Given the chances of each level for each level held, which level is held at a bar is a chain. Going
forward gives the chance that a level is held, going back what holding it is still worth; the two
together are the exact gradient, at the price of two passes and without a graph of all bars.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

Singles = NDArray[np.float32]


@door("void(float32[:,:,:,::1], float32[:,:,:,::1], float32[:,:,:,::1], float64[::1])")
def follow_chains(chances: Singles, growth: Singles, gradient: Singles, total: FloatArray) -> None:
    """Write the growth of each sequence and its gradient in the chances.

    Arrays are (sequence, bar, held, level). A sequence begins with every level held alike.
    """
    sequences, bars, n, _ = chances.shape
    held, worth, after = np.empty((bars + 1, n)), np.empty(n), np.empty(n)
    for s in range(sequences):
        held[:] = 0.0
        held[0] = 1.0 / n
        for t in range(bars):
            for p in range(n):
                for a in range(n):
                    held[t + 1, a] += held[t, p] * chances[s, t, p, a]
        after[:] = 0.0
        for t in range(bars - 1, -1, -1):
            worth[:] = 0.0
            for p in range(n):
                for a in range(n):
                    reached = growth[s, t, p, a] + after[a]
                    worth[p] += chances[s, t, p, a] * reached
                    gradient[s, t, p, a] = held[t, p] * reached
            after[:] = worth
        total[s] = after.mean()
