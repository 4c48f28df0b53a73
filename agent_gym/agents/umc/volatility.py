"""How much the next bar will shake: averages of squared returns, mixed as the past asks for.

One average is too slow for a market whose storms last for hours and too quick for a calm one. A
model of the direction that stands on the wrong volatility takes storms for trends. So the variance
is a mixture of averages of different memory, and the shares are those that make the past most
likely.
"""

from __future__ import annotations

import math

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

SMALLEST_SIGMA = 1e-6
SWEEPS = 400
CLOSE, WEIGHT_AT = 0, 1


@door("void(float64[::1], float64[::1], float64[::1], float64[::1], float64[:,::1])")
def follow_volatility(
    close: FloatArray, decays: FloatArray, shares: FloatArray, memory: FloatArray, out: FloatArray
) -> None:
    """Write the return, its expected and the new deviation of each bar.

    ``memory`` holds the last close (NaN before the first), then for each average its sum of weights
    and its sum of squares. Behind the three figures the averages themselves are written, if ``out``
    has room for them: what each of them expected of the bar.
    """
    n = decays.size
    for t in range(close.size):
        last = memory[CLOSE]
        known = memory[WEIGHT_AT] > 0.0
        value = close[t] / last - 1.0 if last == last else 0.0
        variance = 0.0
        for i in range(n):
            average = math.nan
            if known:
                average = memory[WEIGHT_AT + n + i] / memory[WEIGHT_AT + i]
                variance += shares[i] * average
            if out.shape[1] > 3:
                out[t, 3 + i] = average
        out[t, 0] = value
        out[t, 1] = max(math.sqrt(variance), SMALLEST_SIGMA) if known else math.nan
        variance = 0.0
        if last == last:
            for i in range(n):
                memory[WEIGHT_AT + i] = decays[i] * memory[WEIGHT_AT + i] + 1.0
                squares = decays[i] * memory[WEIGHT_AT + n + i] + value * value
                memory[WEIGHT_AT + n + i] = squares
                variance += shares[i] * squares / memory[WEIGHT_AT + i]
        out[t, 2] = max(math.sqrt(variance), SMALLEST_SIGMA)
        memory[CLOSE] = close[t]


class Volatility:
    """A mixture of averages of squared returns; any pieces of a series give the same bits."""

    def __init__(self, half_lives_bars: tuple[float, ...]) -> None:
        self._decays = np.array([0.5 ** (1.0 / bars) for bars in half_lives_bars])
        self.shares = np.full(len(half_lives_bars), 1.0 / len(half_lives_bars))

    def fit(self, close: FloatArray) -> None:
        """Choose the shares that make the squares of the past most likely.

        Each sweep multiplies a share by how far its average was asked for where it stood; under the
        density of a Gaussian of unknown variance no sweep makes the past less likely.
        """
        table = np.empty((close.size, 3 + self._decays.size))
        own = np.array(close, dtype=np.float64, order="C")
        follow_volatility(own, self._decays, self.shares, self.begin(), table)
        warm = min(close.size // 4, 200)
        squares, averages = table[warm:, 0] ** 2, table[warm:, 3:]
        rows = np.isfinite(averages).all(axis=1) & (averages.min(axis=1) > 0.0)
        squares, averages = squares[rows], averages[rows]
        if not squares.any():
            raise DataError(
                "a market that stands still teaches nothing",
                where="umc",
                found=f"{close.size} bars",
                remedy="Give it more bars, or bars that move",
            )
        shares = np.full(self._decays.size, 1.0 / self._decays.size)
        for _ in range(SWEEPS):
            variance = averages @ shares
            asked = averages.T @ (squares / variance**2)
            given = averages.T @ (1.0 / variance)
            shares = shares * np.sqrt(asked / given)
        self.restore(shares)

    def restore(self, shares: FloatArray) -> None:
        """Take over the shares of an earlier fit."""
        if shares.shape != self._decays.shape or not (shares >= 0.0).all():
            raise DataError(
                "these shares belong to other averages",
                where="umc volatility",
                found=shares.shape,
                expected=self._decays.shape,
            )
        self.shares = np.array(shares, dtype=np.float64)

    def begin(self) -> FloatArray:
        """Return a memory that has seen nothing."""
        memory = np.zeros(1 + 2 * self._decays.size)
        memory[CLOSE] = math.nan
        return memory

    def read(self, close: FloatArray, memory: FloatArray) -> FloatArray:
        """Return return, expected and new deviation, one row a bar, and move the memory on."""
        out = np.empty((close.size, 3))
        own = np.array(close, dtype=np.float64, order="C")
        follow_volatility(own, self._decays, self.shares, memory, out)
        return out
