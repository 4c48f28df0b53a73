"""Perfect foresight under costs: the largest growth that any series of decisions had. A scale only.

No skill reaches it and no share of it means anything; it says how much there was to move in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import DataError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray
from agent_gym.markets.known.config import BP

RUINED = -1e300


@dataclass(frozen=True, slots=True, eq=False)
class Foresight:
    """The best decisions in hindsight: targets at each close, and the log growth they give.

    The growth counts positions that are brought back to size at every close, without a cost for
    that; a venue that lets them drift comes close to it.
    """

    growth: float
    targets: FloatArray

    @property
    def bp_per_bar(self) -> float:
        """Return the log growth a bar in basis points."""
        return self.growth / max(self.targets.size - 1, 1) / BP


def foresight(close: FloatArray, cost_bp: float, *, allow_short: bool = True) -> Foresight:
    """Return the best decisions for one who knows every close.

    Example:
        >>> foresight(np.array([100.0, 110.0, 110.0, 99.0]), 10).targets.tolist()
        [1.0, 0.0, -1.0, -1.0]
    """
    prices = np.ascontiguousarray(close, dtype=np.float64)
    if prices.ndim != 1 or prices.size < 2 or not (np.isfinite(prices) & (prices > 0.0)).all():
        raise DataError(
            "foresight needs a series of prices",
            found=prices.shape,
            expected="two positive numbers or more",
        )
    chosen = np.zeros((prices.size, 3), dtype=np.int8)
    targets = np.empty(prices.size)
    lowest = 0 if allow_short else 1
    growth = best_path(prices.copy(), cost_bp * BP, lowest, chosen, targets)
    return Foresight(growth, targets)


@door("float64(float64[::1], float64, int64, int8[:,::1], float64[::1])")
def best_path(
    close: FloatArray, cost: float, lowest: int, chosen: NDArray[np.int8], targets: FloatArray
) -> float:
    """Write the best target at each close and return the growth; place 1 is out of the market.

    Goes backward: ``ahead[p]`` is the most that can still be gained with position ``p`` held.
    """
    ahead, fresh = np.zeros(3), np.zeros(3)
    for t in range(close.size - 2, -1, -1):
        change = close[t + 1] / close[t] - 1.0
        for p in range(3):
            fresh[p] = RUINED
            for step in range(3):
                q = (p + step) % 3  # what is held comes first, so that it is kept on a tie
                factor = (1.0 - cost * abs(q - p)) * (1.0 + (q - 1) * change)
                if q >= lowest and factor > 0.0 and math.log(factor) + ahead[q] > fresh[p]:
                    fresh[p] = math.log(factor) + ahead[q]
                    chosen[t, p] = q
        ahead[:] = fresh
    held = 1
    for t in range(close.size - 1):
        held = chosen[t, held]
        targets[t] = held - 1.0
    targets[close.size - 1] = held - 1.0
    growth: float = ahead[1]
    return growth
