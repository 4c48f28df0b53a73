"""What a statistic is given: rows and tables of finite numbers, checked once at the door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the interval that holds the truth with probability ``level``."""

    estimate: float
    low: float
    high: float
    level: float

    def holds(self, value: float) -> bool:
        """Return whether a value lies in the interval, its ends included."""
        return self.low <= value <= self.high

    def as_dict(self) -> dict[str, float]:
        """Return the fields by name."""
        return {
            "estimate": self.estimate,
            "low": self.low,
            "high": self.high,
            "level": self.level,
        }


def row_of(values: ArrayLike, least: int = 1) -> FloatArray:
    """Return one-dimensional finite numbers; at least ``least`` of them."""
    row = _finite(values)
    if row.ndim != 1 or row.size < least:
        raise DataError(
            "this takes one row of numbers", found=row.shape, expected=f"at least {least} values"
        )
    return row


def table_of(values: ArrayLike, rows: int = 1, columns: int = 1) -> FloatArray:
    """Return a table of finite numbers; one row of numbers becomes one column."""
    table = _finite(values)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or table.shape[0] < rows or table.shape[1] < columns:
        raise DataError(
            "this takes a table of numbers",
            found=table.shape,
            expected=f"at least {rows} rows and {columns} columns",
        )
    return table


def check_bootstrap(reps: int, level: float) -> None:
    """Raise unless a bootstrap can be made of this."""
    inside("a level", level, 0.0, 1.0)
    if reps < 1:
        raise DataError("a bootstrap takes at least one resample", found=reps)


def percentile_interval(
    estimate: float, drawn: FloatArray, level: float, tail: float | None = None
) -> Interval:
    """Return the interval between two quantiles of resampled estimates, the tails being equal."""
    tail = 0.5 * (1.0 - level) if tail is None else tail
    low, high = np.quantile(drawn, [tail, 1.0 - tail])
    return Interval(estimate, float(low), float(high), level)


def inside(name: str, value: float, low: float, high: float) -> None:
    """Raise unless a number lies strictly between two others."""
    if not low < value < high:
        raise DataError(f"{name} is out of range", found=value, expected=f"{low} to {high}")


def _finite(values: ArrayLike) -> FloatArray:
    numbers: FloatArray = np.ascontiguousarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all():
        where: Any = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise DataError("a value is not a finite number", where=f"index {where}")
    return numbers
