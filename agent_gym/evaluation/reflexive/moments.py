"""What a simulated market is compared by: moments of returns, and how surely each is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars

RETURN_LAGS = (1, 2, 5, 10)
SIZE_LAGS = ((1, 1), (2, 5), (6, 20), (21, 50))  # of absolute returns, averaged from .. to
VOLATILITY_BARS = 24
TAIL_SHARE = 0.05
FEWEST_BARS = 200
RESAMPLES = 60
BLOCKS = 12  # pieces that a resampled series is put together from; long, to keep their memory
LEAST_SCALE = {"kurtosis": 0.2, "hill": 0.2, "skew": 0.05, "deviation_bp": 0.2}
USUAL_LEAST_SCALE = 0.01  # of correlations and of the volatility's own spread


def autocorrelation(series: FloatArray, lag: int) -> float:
    """Return the correlation of a series with itself some steps later."""
    away = series - series.mean()
    total = float(away @ away)
    return float(away[lag:] @ away[:-lag]) / total if total > 0.0 else 0.0


def tail_exponent(sizes: FloatArray) -> float:
    """Return Hill's estimate from the largest sizes; a smaller one means a heavier tail."""
    k = max(10, int(TAIL_SHARE * sizes.size))
    largest = np.sort(sizes)[-k - 1 :]
    if largest[0] <= 0.0:
        return 0.0
    mean = float(np.log(largest[1:] / largest[0]).mean())
    return 1.0 / mean if mean > 0.0 else 0.0


def moments_of(returns: FloatArray) -> dict[str, float]:
    """Return the moments of log returns by name."""
    away = returns - returns.mean()
    deviation = float(away.std())
    if returns.size < FEWEST_BARS or not deviation > 0.0:
        raise DataError(
            "too few or too still returns to have moments",
            found=f"{returns.size} returns, deviation {deviation}",
            expected=f"at least {FEWEST_BARS} that move",
        )
    scaled, sizes = away / deviation, np.abs(away)
    parts = returns[: returns.size // VOLATILITY_BARS * VOLATILITY_BARS]
    local = parts.reshape(-1, VOLATILITY_BARS).std(axis=1)
    memory = [autocorrelation(sizes, lag) for lag in range(1, SIZE_LAGS[-1][1] + 1)]
    return {
        "deviation_bp": 1e4 * deviation,
        "skew": float((scaled**3).mean()),
        "kurtosis": float((scaled**4).mean()),
        **{f"acf_r{lag}": autocorrelation(returns, lag) for lag in RETURN_LAGS},
        **{f"acf_abs{a}_{b}": float(np.mean(memory[a - 1 : b])) for a, b in SIZE_LAGS},
        "vol_of_vol": float(np.log(np.maximum(local, 1e-12)).std()),
        "hill": tail_exponent(sizes),
    }


@dataclass(frozen=True, slots=True, eq=False)
class RealismTarget:
    """The moments that a market should have, and how far off each may well be by chance.

    A scale is the deviation of a moment over series put together from random blocks of the given
    one, times the root of two because the series compared has an error of its own, about as large
    if it is about as long.
    """

    values: dict[str, float]
    scales: dict[str, float]
    fingerprint: str

    @classmethod
    def of(cls, bars: Bars) -> RealismTarget:
        """Return the moments of a series; its own seeds draw the blocks, always the same ones."""
        returns = _returns(bars)
        values = moments_of(returns)
        dice = Seeds(0).child("realism", "blocks").rng()
        length = -(-returns.size // BLOCKS)
        starts = dice.integers(returns.size, size=(RESAMPLES, BLOCKS, 1))
        rows = ((starts + np.arange(length)) % returns.size).reshape(RESAMPLES, -1)
        drawn = [moments_of(returns[row[: returns.size]]) for row in rows]
        scales = {}
        for name in values:
            error = float(np.std([one[name] for one in drawn], ddof=1))
            least = LEAST_SCALE.get(name, USUAL_LEAST_SCALE)
            scales[name] = math.sqrt(2.0) * max(error, least)
        return cls(values, scales, bars.fingerprint)

    def misses(self, bars: Bars) -> dict[str, float]:
        """Return by how many scales each moment of a series is off."""
        found = moments_of(_returns(bars))
        return {name: (found[name] - self.values[name]) / self.scales[name] for name in found}

    def distance(self, bars: Bars) -> float:
        """Return the root of the mean squared miss: about 1 for another piece of the same kind."""
        misses = np.array(list(self.misses(bars).values()))
        return float(np.sqrt((misses**2).mean()))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports."""
        return {"values": self.values, "scales": self.scales, "fingerprint": self.fingerprint}


def _returns(bars: Bars) -> FloatArray:
    returns: FloatArray = np.diff(np.log(bars.close))
    return returns
