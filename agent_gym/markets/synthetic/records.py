"""Parameters as one record that compiled code reads by name."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from agent_gym.core.registry import Config
from agent_gym.markets.synthetic import parameters as known

PRICE_SECTIONS: tuple[type[Config], ...] = (
    known.Volatility,
    known.Activity,
    known.Moves,
    known.Overshoot,
    known.Jumps,
    known.Prints,
    known.Spread,
    known.Funding,
)
FLOW_SECTIONS: tuple[type[Config], ...] = (known.Trades, known.Sizes, known.Takers)
CLOCK = (
    "dt_min",
    "start_price",
    "habit_memory",
    "habit_noise",
    "habit_bars",
    "carry",
    "tick",
    "per_unit",
    "level",
    "unit_move",
    "log_slow_memory",
)


def _scalars(section: type[Config]) -> list[str]:
    plain = (float, int, known.Positive, known.Natural, known.Share)
    return [
        f"{section.__name__.lower()}_{name}"
        for name, field in section.model_fields.items()
        if field.annotation in plain
    ]


def _dtype(sections: tuple[type[Config], ...]) -> np.dtype[Any]:
    names = [name for section in sections for name in _scalars(section)]
    return np.dtype([(name, np.float64) for name in (*CLOCK, *names)])


PRICE_DTYPE = _dtype(PRICE_SECTIONS)
FLOW_DTYPE = _dtype(FLOW_SECTIONS)
PRICE_RECORD: Any = numba.from_dtype(PRICE_DTYPE)
FLOW_RECORD: Any = numba.from_dtype(FLOW_DTYPE)


def fill(dtype: np.dtype[Any], parameters: known.Parameters, clock: dict[str, float]) -> Any:
    """Return an array of one record with the scalars of every section the record names."""
    made = np.zeros(1, dtype=dtype)
    for name in dtype.names or ():
        if name in clock:
            made[name] = clock[name]
        else:
            section, _, field = name.partition("_")
            made[name] = getattr(getattr(parameters, section), field)
    return made
