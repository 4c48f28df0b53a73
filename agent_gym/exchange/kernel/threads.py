"""Door 2 on several threads; opt-in, because a busy machine makes barriers slow."""

from __future__ import annotations

import numpy as np
from numba import prange

from agent_gym.core.kernels import door
from agent_gym.exchange.kernel import lanes
from agent_gym.exchange.kernel.lanes import step_lanes

PARTS = (*lanes.PARTS, lanes)


@door("int64(int64, int64, int64)", parts=PARTS, parallel=True)
def step_spot_threads(context: int, n: int, chunks: int) -> int:
    """Step all lanes in as many chunks as threads; every lane gives the bits of the serial door."""
    events = np.zeros(chunks, np.int64)
    for k in prange(chunks):
        events[k] = step_lanes(context, n * k // chunks, n * (k + 1) // chunks, False)
    total: int = events.sum()
    return total


@door("int64(int64, int64, int64)", parts=PARTS, parallel=True)
def step_margin_threads(context: int, n: int, chunks: int) -> int:
    """Step all lanes in parallel, with margin."""
    events = np.zeros(chunks, np.int64)
    for k in prange(chunks):
        events[k] = step_lanes(context, n * k // chunks, n * (k + 1) // chunks, True)
    total: int = events.sum()
    return total
