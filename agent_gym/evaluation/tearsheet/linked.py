"""Prices, equity, drawdown and position in one chart: one zoom and one pointer for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from agent_gym.evaluation.tearsheet.axes import Option, time_axis, zoom
from agent_gym.evaluation.tearsheet.options import candles_option, equity_option
from agent_gym.evaluation.tearsheet.sheet import Sheet
from agent_gym.evaluation.tearsheet.thinning import candles, thin

MOST_CANDLES, MOST_POINTS = 1_200, 1_000  # what a page shows at once without a wait
# Top and height of the panels in percent, from the prices down.
PANELS = ((6, 34), (46, 22), (72, 8), (84, 6))


def linked_option(sheet: Sheet, most_candles: int = MOST_CANDLES) -> Option:
    """Return one ECharts option with candles and fills above equity, drawdown and position.

    Without bars it is the chart of equity alone.
    """
    lower = equity_option(sheet)
    if sheet.bars is None:
        return lower
    upper = candles_option(sheet, candles(sheet.bars, most_candles))
    places = list(range(1 + len(lower["grid"])))
    series = [*upper["series"], *(_moved(_thinned(each)) for each in lower["series"])]
    named = [*upper["legend"]["data"], *lower["legend"]["data"]]
    return lower | {
        "legend": lower["legend"] | {"data": named},
        "axisPointer": {"link": [{"xAxisIndex": "all"}]},
        "grid": [
            {"left": 62, "right": 16, "top": f"{top}%", "height": f"{height}%"}
            for top, height in PANELS[: len(places)]
        ],
        "xAxis": [time_axis(sheet, place, shown=place == places[-1]) for place in places],
        "yAxis": [*upper["yAxis"], *(each | {"gridIndex": at + 1} for at, each in _axes(lower))],
        "dataZoom": zoom(places),
        "series": series,
    }


def _axes(option: Option) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(option["yAxis"]))


def _thinned(series: dict[str, Any]) -> dict[str, Any]:
    """Return a curve with fewer points that looks the same."""
    rows = series["data"]
    if len(rows) <= MOST_POINTS:
        return series
    places = thin(np.array([row[1] for row in rows], dtype=np.float64), MOST_POINTS)
    return series | {"data": [rows[place] for place in places.tolist()]}


def _moved(series: dict[str, Any]) -> dict[str, Any]:
    """Return a series one panel further down."""
    place = int(series.get("xAxisIndex", 0)) + 1
    return series | {"xAxisIndex": place, "yAxisIndex": place}
