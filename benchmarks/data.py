"""The bars that every contestant runs on, made from one seed and shared as one file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.seeds import Seeds

Floats = NDArray[np.float64]

SEED = 20240607
FIRST_PRICE = 100.0
SIGMA = 7e-4


@dataclass(frozen=True)
class Series:
    """Plain columns of a random walk; prices are not rounded, so two averages never tie."""

    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats

    def __len__(self) -> int:
        return int(self.close.size)

    def head(self, n_bars: int) -> Series:
        """Return the first bars as contiguous columns."""
        return Series(*(column[:n_bars].copy() for column in self.columns()))

    def columns(self) -> tuple[Floats, ...]:
        """Return open, high, low, close, volume."""
        return (self.open, self.high, self.low, self.close, self.volume)

    def save(self, path: Path) -> None:
        """Write the columns as one (5, T) array that the peers load."""
        np.save(path, np.stack(self.columns()))


def random_walk(n_bars: int) -> Series:
    """Return bars whose opens gap a little from the close before."""
    rng = Seeds(SEED).child("benchmark", "bars").rng()
    close = FIRST_PRICE * np.exp(np.cumsum(SIGMA * rng.standard_normal(n_bars)))
    before = np.concatenate(([FIRST_PRICE], close[:-1]))
    open_ = before * (1.0 + 1e-4 * rng.standard_normal(n_bars))
    top, bottom = np.maximum(open_, close), np.minimum(open_, close)
    high = top * (1.0 + 2e-4 * np.abs(rng.standard_normal(n_bars)))
    low = bottom * (1.0 - 2e-4 * np.abs(rng.standard_normal(n_bars)))
    volume = 1e6 * np.exp(0.5 * rng.standard_normal(n_bars))
    return Series(open_, high, low, close, volume)


def sma_pairs() -> list[tuple[int, int]]:
    """Return the 200 (fast, slow) windows of the sweep."""
    return [(fast, slow) for fast in range(5, 55, 5) for slow in range(60, 260, 10)]
