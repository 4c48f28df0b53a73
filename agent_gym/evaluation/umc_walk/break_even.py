"""The break-even sheet: how far prices move, against what a round trip costs, before any model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agent_gym.core.clock import DAY_NS
from agent_gym.core.types import FloatArray

HORIZONS = (1, 6, 24, 72, 168)
IN_BP = 1e4


@dataclass(frozen=True, slots=True)
class BreakEven:
    """One horizon.

    Attributes:
        bars: The horizon.
        move_bp: Mean size of the move over it.
        round_trip_bp: Cost of going in and out.
        skill: Correlation of forecast and move at which a trade earns back what it costs; above 1
            nobody can.
        trades_per_day: As many as fit without overlap.
    """

    bars: int
    move_bp: float
    round_trip_bp: float
    skill: float
    trades_per_day: float

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def break_even(close: FloatArray, period_ns: int, cost_bp: float) -> tuple[BreakEven, ...]:
    """Return the sheet for the closes of a training span, horizons that fit into it often enough.

    A forecast with a correlation of c that trades its sign earns about c times the mean move.
    """
    logs, found = np.log(close), []
    for bars in HORIZONS:
        if logs.size < 4 * bars:
            break
        moved = float(np.abs(logs[bars:] - logs[:-bars]).mean()) * IN_BP
        skill = 2.0 * cost_bp / moved if moved > 0.0 else float("inf")
        found.append(BreakEven(bars, moved, 2.0 * cost_bp, skill, DAY_NS / period_ns / bars))
    return tuple(found)
