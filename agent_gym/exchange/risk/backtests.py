"""Is a VaR right? Coverage (Kupiec) and independence (Christoffersen) of its exceedances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class VarTest:
    """A likelihood-ratio test: a small p-value speaks against the VaR."""

    exceedances: int
    days: int
    statistic: float
    p_value: float

    @property
    def rate(self) -> float:
        """Return the share of days with an exceedance."""
        return self.exceedances / self.days


def exceedances(close: FloatArray, var_long: FloatArray, day_bars: int) -> NDArray[np.bool_]:
    """Return for consecutive days whether a long unit lost more than the VaR known at its start.

    Days do not overlap, or one crash would be counted many times. Days without a VaR are left out.
    """
    starts = np.arange(0, close.size - day_bars, day_bars)
    starts = starts[~np.isnan(var_long[starts])]
    losses = 1.0 - close[starts + day_bars] / close[starts]
    return np.asarray(losses > var_long[starts])


def kupiec_pof(hits: NDArray[np.bool_], rate: float) -> VarTest:
    """Test whether exceedances come at the stated rate (proportion of failures, 1 degree).

    Example:
        >>> hits = np.zeros(250, dtype=np.bool_)
        >>> hits[:7] = True
        >>> round(kupiec_pof(hits, 0.01).statistic, 2)
        5.5
    """
    count, days = _counted(hits)
    if not 0.0 < rate < 1.0:
        raise DataError("a rate of exceedances lies between 0 and 1", found=rate)
    statistic = 2.0 * (_likelihood(count, days, count / days) - _likelihood(count, days, rate))
    return _test(count, days, statistic)


def christoffersen(hits: NDArray[np.bool_]) -> VarTest:
    """Test whether an exceedance makes another one on the next day more or less likely."""
    count, days = _counted(hits)
    before, after = hits[:-1], hits[1:]
    calm_hits, calm_days = int(np.sum(~before & after)), int(np.sum(~before))
    rough_hits, rough_days = int(np.sum(before & after)), int(np.sum(before))
    pairs, followed = calm_days + rough_days, calm_hits + rough_hits
    dependent = _likelihood(calm_hits, calm_days, calm_hits / max(calm_days, 1)) + _likelihood(
        rough_hits, rough_days, rough_hits / max(rough_days, 1)
    )
    independent = _likelihood(followed, pairs, followed / max(pairs, 1))
    return _test(count, days, 2.0 * (dependent - independent))


def _counted(hits: NDArray[np.bool_]) -> tuple[int, int]:
    if hits.ndim != 1 or hits.size == 0 or hits.dtype != np.bool_:
        raise DataError("exceedances are a row of true and false, one a day", found=hits.dtype)
    return int(hits.sum()), int(hits.size)


def _likelihood(count: int, days: int, rate: float) -> float:
    return float(special.xlogy(count, rate) + special.xlog1py(days - count, -rate))


def _test(count: int, days: int, statistic: float) -> VarTest:
    # Rounding can leave a statistic of 0 a hair below it.
    statistic = max(0.0, statistic)
    return VarTest(count, days, statistic, float(special.chdtrc(1.0, statistic)))
