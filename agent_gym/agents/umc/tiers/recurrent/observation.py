"""What the recurrent model sees of a bar: scaled numbers, and which of them are known.

Only sums, products and quotients are used here, which are rounded the same way for one bar and for
a whole series, so the pieces in which a series is shown leave no trace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.agents.umc.tiers.contract import Series
from agent_gym.agents.umc.tiers.scaling import Normaliser
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

LARGEST_OBSERVED = 8.0
"""Where a number that the model sees is cut, in deviations."""
LARGEST_TARGET = 20.0
"""Where a return that the model learns from is cut; a crash teaches, but does not overrule."""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """One row a bar; the first column is the return in deviations, then come the inputs.

    Attributes:
        values: Scaled numbers, 0 where not known (the network puts a learned number there).
        known: 1 where a number is known, else 0.
    """

    values: FloatArray
    known: FloatArray


def observe(seen: Series, normaliser: Normaliser) -> Observed:
    """Return what the model sees of each bar."""
    columns = normaliser.mean.size
    if seen.inputs.shape != (len(seen), columns):
        raise DataError(
            "the inputs are not those of the model",
            where="umc/recurrent",
            found=f"an array of shape {seen.inputs.shape}",
            expected=f"{(len(seen), columns)}",
        )
    scaled = np.empty((len(seen), 1 + columns))
    scaled[:, 0] = seen.standard
    scaled[:, 1:] = normaliser.scaled(seen.inputs)
    known = np.isfinite(scaled)
    values = np.where(known, np.clip(scaled, -LARGEST_OBSERVED, LARGEST_OBSERVED), 0.0)
    return Observed(values, known.astype(np.float64))


def returns_ahead(seen: Series, horizon_bars: int) -> FloatArray:
    """Return the next returns in deviations known at each close, one column a bar ahead.

    NaN where the series ends before.

    Example:
        >>> flat = np.full(3, 0.1)
        >>> bars = Series(np.array([0.0, 0.1, 0.3]), flat, flat, np.empty((3, 0)), ())
        >>> returns_ahead(bars, 2).round(6)
        array([[ 1.,  3.],
               [ 3., nan],
               [nan, nan]])
    """
    ahead = np.full((len(seen), horizon_bars), np.nan)
    for j in range(1, min(horizon_bars, len(seen) - 1) + 1):
        ahead[:-j, j - 1] = seen.returns[j:] / seen.sigma[:-j]
    cut: FloatArray = np.clip(ahead, -LARGEST_TARGET, LARGEST_TARGET)
    return cut


def usable_past(past: Series) -> Series:
    """Return the past from where deviations are known; refuse what cannot be learned from."""
    known = np.isfinite(past.expected_sigma)
    kept = past.rows(int(np.argmax(known)), len(past))
    for what, right in (
        ("a return is not a number", np.isfinite(kept.returns)),
        ("an expected deviation is not above 0", _above_zero(kept.expected_sigma)),
        ("a deviation is not above 0", _above_zero(kept.sigma)),
        ("an input is infinite", ~np.isinf(kept.inputs).any(axis=1)),
    ):
        if not right.all():
            raise DataError(
                what,
                where=f"umc/recurrent, bar {len(past) - len(kept) + int(np.argmin(right))}",
                expected="finite numbers, deviations above 0, NaN for an unknown input",
            )
    return kept


def _above_zero(values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return np.isfinite(values) & (values > 0.0)
