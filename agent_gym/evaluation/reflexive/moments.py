"""What a simulated market is compared by: moments of returns, and how they vary among real ones.

A market is not one set of moments: a stretch of it has another volatility and other tails than the
next. So a simulated stretch is held against real stretches of the same length, and its distance is
counted in that of another real stretch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars

RETURN_LAGS = (1, 2, 5, 10)
SIZE_LAGS = ((1, 1), (2, 5), (6, 20), (21, 50))  # of absolute returns, averaged from .. to
VOLATILITY_BARS = 24
TAIL_SHARE = 0.05
FEWEST_BARS = 200
FEWEST_STRETCHES = 4
STRETCH_BARS = 2_000
MIDDLE = (16.0, 50.0, 84.0)  # percentiles: one deviation about the middle, were they normal
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
    """The moments that a stretch of a market should have, and how far off each usually is.

    Attributes:
        values: The middle one of each moment over all stretches of the given bars.
        scales: How far two thirds of the stretches lie from it.
        usual: Root mean squared miss of a real stretch, by those that share no bar with it: the
            middle one of all; what ``distance`` counts in.
        stretches: Distance of every real stretch, by those that share no bar with it.
        stretch_bars: Length of a stretch, and of what is compared.
        fingerprint: Of the given bars.
    """

    values: dict[str, float]
    scales: dict[str, float]
    usual: float
    stretches: tuple[float, ...]
    stretch_bars: int
    fingerprint: str

    @classmethod
    def of(cls, bars: Bars, stretch_bars: int = STRETCH_BARS) -> RealismTarget:
        """Return what stretches of a series look like; they overlap by half.

        Args:
            bars: The real ones.
            stretch_bars: Length of a stretch; a fourth of the bars at most.
        """
        returns = _returns(bars)
        length = min(stretch_bars, returns.size // FEWEST_STRETCHES)
        if length < FEWEST_BARS:
            raise DataError(
                "too few bars to tell how their stretches differ",
                found=f"{len(bars)} bars",
                expected=f"at least {FEWEST_STRETCHES * FEWEST_BARS + 1}",
                remedy="Give more bars, or shorter ones",
            )
        starts = np.arange(0, returns.size - length + 1, length // 2)
        found = [moments_of(returns[start : start + length]) for start in starts]
        names = tuple(found[0])
        table = np.array([[each[name] for name in names] for each in found])
        apart = np.abs(starts[:, None] - starts) >= length
        off = np.array(
            [_off(row, *_middle(table[own], names)) for row, own in zip(table, apart, strict=True)]
        )
        usual = float(np.median(off))
        values, scales = _middle(table, names)
        return cls(
            dict(zip(names, values.tolist(), strict=True)),
            dict(zip(names, scales.tolist(), strict=True)),
            usual,
            tuple((off / usual).tolist()),
            length,
            bars.fingerprint,
        )

    def misses(self, bars: Bars) -> dict[str, float]:
        """Return by how many scales each moment of a series is off."""
        found = moments_of(_returns(bars))
        return {name: (found[name] - self.values[name]) / self.scales[name] for name in found}

    def distance(self, bars: Bars) -> float:
        """Return how far off a series is: 1 as another stretch of the real bars usually is."""
        misses = np.array(list(self.misses(bars).values()))
        return float(np.sqrt((misses**2).mean())) / self.usual

    def real_share(self, distance: float) -> float:
        """Return the share of real stretches that lie no further off than this."""
        return float(np.mean(np.array(self.stretches) <= distance))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports."""
        return asdict(self) | {"stretches": list(self.stretches)}


def _middle(table: FloatArray, names: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Return the middle of each column and how far two thirds of it reach, or the least scale."""
    low, middle, high = np.percentile(table, MIDDLE, axis=0)
    least = np.array([LEAST_SCALE.get(name, USUAL_LEAST_SCALE) for name in names])
    return middle, np.maximum(0.5 * (high - low), least)


def _off(row: FloatArray, values: FloatArray, scales: FloatArray) -> float:
    return float(np.sqrt((((row - values) / scales) ** 2).mean()))


def _returns(bars: Bars) -> FloatArray:
    returns: FloatArray = np.diff(np.log(bars.close))
    return returns
