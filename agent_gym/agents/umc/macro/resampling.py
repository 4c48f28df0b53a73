"""Surrogates by the stationary bootstrap: blocks of random length, wrapped at the end.

Within a block rows keep their order, so what is short-lived survives; between blocks the order is
lost, so a cycle that is longer than a block does not.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.kernels import door


def resampled(rows: int, block: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the rows of one surrogate, as long as the series, in blocks of a mean length."""
    path = np.empty(rows, dtype=np.int64)
    fill_surrogate(rng, max(block, 1.0), path)
    return path


@door("void(npy_rng, float64, int64[::1])")
def fill_surrogate(rng: np.random.Generator, block: float, path: NDArray[np.int64]) -> None:
    """Write the row that each row of the surrogate is taken from."""
    rows = path.size
    log_stay = math.log1p(-1.0 / block) if block > 1.0 else -math.inf
    done = 0
    while done < rows:
        at = min(int(rng.random() * rows), rows - 1)
        drawn = math.log(1.0 - rng.random()) / log_stay  # 0 where blocks hold one row
        stop = rows if drawn >= rows - done else min(rows, done + 1 + int(drawn))
        while done < stop:
            path[done] = at
            done += 1
            at = at + 1 if at + 1 < rows else 0
