"""What charts are made of: lines, axes, zoom, shades and numbers that are short enough to send."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.tearsheet.sheet import Regime, Sheet
from agent_gym.evaluation.tearsheet.thinning import fewer_spans, thin

Option: TypeAlias = dict[str, Any]

FAINT, AGENT, BOUGHT, SOLD = "#8a8a8a", "#0072B2", "#009E73", "#D55E00"
SHADES = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#8a8a8a", "#F0E442", "#D55E00")
DIGITS = 6
LOG_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
LOG_BASE = 1.1  # the axis ends at a power of it, so close to the data
MS = 1_000_000  # nanoseconds in a millisecond, the unit of time axes


def regime_colours(regimes: Iterable[Regime]) -> dict[str, str]:
    """Return a colour for each name, in the order of names, so that a longer run keeps them."""
    return dict(zip(sorted({span.name for span in regimes}), cycle(SHADES), strict=False))


def line(name: str, colour: str, *, width: float, dashes: str | list[int] = "solid") -> Option:
    """Return a line without symbols."""
    return {
        "type": "line",
        "name": name,
        "showSymbol": False,
        "lineStyle": {"width": width, "type": dashes, "color": colour},
        "itemStyle": {"color": colour},
    }


def time_axis(sheet: Sheet, grid: int, *, shown: bool = True) -> Option:
    """Return a time axis; all of a sheet span the same time, so that their zoom is the same."""
    low = int(sheet.ts[0]) - sheet.period_ns
    return {
        "type": "time",
        "gridIndex": grid,
        "min": low // MS,
        "max": int(sheet.ts[-1]) // MS,
        "axisLabel": {"show": shown, "hideOverlap": True},
        "axisTick": {"show": shown},
        "axisLine": {"onZero": False},
        "splitLine": {"show": True},
    }


def value_axis(name: str, grid: int, *, middle: bool = False, ticks: int = 4) -> Option:
    """Return an axis of numbers, named at its end or in the middle."""
    return {
        "type": "value",
        "scale": True,
        "gridIndex": grid,
        "name": name,
        "nameLocation": "middle" if middle else "end",
        "nameTextStyle": {"align": "center" if middle else "left"},
        "nameGap": 28 if middle else 8,
        "axisLabel": {"hideOverlap": True},
        "splitNumber": ticks,
    }


def log_axis(name: str, grid: int, low: float, high: float) -> Option:
    """Return a logarithmic axis that names round numbers and keeps close to the data."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = LOG_STEPS if high < 30.0 * low else (1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,)
    round_numbers = [short(step * 10.0**power) for power in powers for step in steps]
    ticks = {"customValues": round_numbers}
    axis = value_axis(name, grid)
    return axis | {
        "type": "log",
        "logBase": LOG_BASE,
        "axisLabel": axis["axisLabel"] | ticks,
        "axisTick": ticks,
    }


def category_axis(names: Sequence[str], **more: Any) -> Option:
    """Return an axis of names."""
    return {"type": "category", "data": list(names), "splitArea": {"show": False}, **more}


def zoom(places: list[int]) -> list[Option]:
    """Return a slider and zoom by Ctrl and wheel, so that the page can still be scrolled."""
    return [
        {
            "id": "inside",
            "type": "inside",
            "xAxisIndex": places,
            "zoomOnMouseWheel": "ctrl",
            "moveOnMouseWheel": False,
        },
        {"id": "slider", "type": "slider", "xAxisIndex": places, "bottom": 8, "height": 26},
    ]


def shades(regimes: Sequence[Regime]) -> Option:
    """Return the regimes as areas behind a series."""
    colours = regime_colours(regimes)
    return {
        "silent": True,
        "label": {"show": False},
        "data": [
            [
                {
                    "xAxis": span.start_ns // MS,
                    "itemStyle": {"color": colours[span.name], "opacity": 0.16},
                },
                {"xAxis": span.end_ns // MS},
            ]
            for span in fewer_spans(regimes)
        ],
    }


def points(ts: NDArray[np.int64], values: FloatArray, most: int) -> list[list[float]]:
    """Return time and value of the points to draw."""
    at = thin(values, most)
    return [list(row) for row in zip(milliseconds(ts[at]), shortened(values[at]), strict=True)]


def indexed(equity: FloatArray) -> FloatArray:
    """Return a curve that starts at 100."""
    curve: FloatArray = 100.0 * equity / equity[0]
    return curve


def milliseconds(ts: NDArray[np.int64]) -> list[int]:
    """Return nanoseconds as the milliseconds of a time axis."""
    times: list[int] = (ts // MS).tolist()
    return times


def shortened(values: FloatArray) -> list[float]:
    """Return values of six digits."""
    return [short(value) for value in values.tolist()]


def short(value: float) -> float:
    """Return a value of six digits."""
    return float(f"{value:.{DIGITS}g}")


def percent(value: float) -> float:
    """Return a fraction in percent, as tables show it."""
    return round(100.0 * value, 2)
