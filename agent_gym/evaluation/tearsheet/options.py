"""Each chart as a pure function that returns an ECharts option: plain values, no code in it.

The page and the dashboard show the same options. Text and grid colours are left to the theme;
colours of data are those of Okabe and Ito, which people with any colour vision can tell apart.
Percentages and money are in the values, so nothing has to be computed where they are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.metrics import drawdowns
from agent_gym.evaluation.tearsheet.axes import (
    AGENT,
    BOUGHT,
    FAINT,
    SOLD,
    Option,
    category_axis,
    indexed,
    line,
    log_axis,
    milliseconds,
    percent,
    points,
    shades,
    short,
    shortened,
    time_axis,
    value_axis,
    zoom,
)
from agent_gym.evaluation.tearsheet.history import Rolling, Year
from agent_gym.evaluation.tearsheet.sheet import Sheet, Versus
from agent_gym.evaluation.tearsheet.tables import Costs, exposure_pct, turns
from agent_gym.evaluation.tearsheet.thinning import MAX_POINTS, Candles
from agent_gym.markets.bars import Bars

# Drawn as they are: the legend does not turn a symbol as the plot does.
UPWARD, DOWNWARD = "path://M0 10L10 10L5 0Z", "path://M0 0L10 0L5 10Z"
BESIDE: tuple[tuple[str, str | list[int]], ...] = (
    (FAINT, [6, 3]),
    ("#E69F00", "solid"),
    ("#CC79A7", "solid"),
    ("#56B4E9", [5, 2, 1, 2]),
    (BOUGHT, [4, 2]),
    (SOLD, [2, 2]),
)
EQUITY = "Equity, start = 100"
ALL_POINTS = 40_000
MAX_BESIDE = 5
MAX_MARKS = 4_000
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def equity_option(sheet: Sheet, *, log: bool = False) -> Option:
    """Return equity of all arms (start = 100), the subject's drawdown and position, one zoom."""
    panels = [_arms(sheet), [_drawdown(sheet)]]
    held = exposure_pct(sheet)
    if held is not None:
        panels.append([_position(sheet, held)])
    tall = len(panels) == 3
    tops = ("10%", "59%", "77%") if tall else ("10%", "66%")
    heights = ("43%", "13%", "10%") if tall else ("50%", "20%")
    names = (EQUITY, "Drawdown, %", "Position, % of equity")
    series = [
        each | {"xAxisIndex": place, "yAxisIndex": place}
        for place, lines in enumerate(panels)
        for each in lines
    ]
    if sheet.regimes:
        series[0]["markArea"] = shades(sheet.regimes)
    places = list(range(len(panels)))
    scales = [
        equity_log_axis(sheet) if log and place == 0 else value_axis(name, place, ticks=count)
        for place, name, count in zip(places, names, (4, 3, 2), strict=False)
    ]
    scales[1]["max"] = 0
    return {
        "useUTC": True,
        "animation": False,
        "legend": {
            "type": "scroll",
            "top": 0,
            "data": [sheet.subject, *sheet.beside],
            # More lines than these cannot be told apart; a click on the name shows one.
            "selected": dict.fromkeys(sheet.beside[MAX_BESIDE:], False),
        },
        "tooltip": {"trigger": "axis", "confine": True},
        "axisPointer": {"link": [{"xAxisIndex": "all"}]},
        "grid": [
            {"left": 62, "right": 16, "top": top, "height": height}
            for top, height in zip(tops, heights, strict=True)
        ],
        "xAxis": [time_axis(sheet, place, shown=place == places[-1]) for place in places],
        "yAxis": scales,
        "dataZoom": zoom(places),
        "series": series,
    }


def points_of(sheet: Sheet) -> int:
    """Return how many points a curve is drawn with: many arms share what a page can carry."""
    return min(MAX_POINTS, ALL_POINTS // len(sheet.equity))


def equity_log_axis(sheet: Sheet) -> Option:
    """Return the other scale of the equity panel."""
    return log_axis(EQUITY, 0, *equity_range(sheet))


def price_log_axis(sheet: Sheet, bars: Bars) -> Option:
    """Return the other scale of the candles."""
    return log_axis(f"Price, {sheet.quote}", 0, float(bars.low.min()), float(bars.high.max()))


def equity_range(sheet: Sheet) -> tuple[float, float]:
    """Return the lowest and highest value of all arms, start = 100."""
    curves = [indexed(curve) for curve in sheet.equity.values()]
    return min(float(c.min()) for c in curves), max(float(c.max()) for c in curves)


def candles_option(sheet: Sheet, level: Candles) -> Option:
    """Return candles with the fills that open, close or turn the position."""
    series: list[Option] = [
        {
            "type": "candlestick",
            "name": "price",
            "data": candle_rows(level),
            "large": False,
            "itemStyle": {
                "color": "transparent",
                "color0": FAINT,
                "borderColor": FAINT,
                "borderColor0": FAINT,
            },
        },
        _marks(sheet, bought=True),
        _marks(sheet, bought=False),
    ]
    if sheet.regimes:
        series[0]["markArea"] = shades(sheet.regimes)
    return {
        "useUTC": True,
        "animation": False,
        "legend": {"top": 0, "data": ["bought", "sold"]},
        "tooltip": {"trigger": "axis", "confine": True, "axisPointer": {"type": "cross"}},
        "grid": [{"left": 62, "right": 16, "top": 40, "bottom": 78}],
        "xAxis": [time_axis(sheet, 0)],
        "yAxis": [value_axis(f"Price, {sheet.quote}", 0)],
        "dataZoom": zoom([0]),
        "series": series,
    }


def candle_rows(level: Candles) -> list[list[float]]:
    """Return rows of time, open, close, low and high, as ECharts takes candles."""
    prices = (level.open, level.close, level.low, level.high)
    return [list(row) for row in zip(milliseconds(level.ts), *map(shortened, prices), strict=True)]


def monthly_option(years: Sequence[Year]) -> Option:
    """Return the heat map of monthly returns in percent, with the total of each year."""
    cells = [
        [month - 1, row, percent(value)]
        for row, year in enumerate(years)
        for month, value in year.months.items()
        if value is not None
    ]
    totals = [
        [len(MONTHS), row, percent(year.total)]
        for row, year in enumerate(years)
        if year.total is not None
    ]
    reach = max((abs(cell[2]) for cell in cells), default=0.0) or 1.0
    return {
        "animation": False,
        "tooltip": {"confine": True},
        "grid": [{"left": 48, "right": 8, "top": 28, "bottom": 8}],
        "xAxis": [category_axis((*MONTHS, "Year"), position="top")],
        "yAxis": [category_axis([str(year.year) for year in years], inverse=True)],
        "visualMap": [
            {
                "show": False,
                "type": "continuous",
                "min": -reach,
                "max": reach,
                "dimension": 2,
                "inRange": {"color": [SOLD, "#f4f4f4", AGENT]},
            }
        ],
        "series": [
            {"type": "heatmap", "name": "return, %", "data": data, "label": {"show": True}}
            for data in (cells, totals)
        ],
    }


def rolling_option(sheet: Sheet, rolling: Rolling) -> Option:
    """Return the rolling Sharpe ratio of the subject; gaps are windows without one."""
    rows = [
        [time, None if value is None else float(f"{value:.4g}")]
        for time, value in zip(milliseconds(rolling.ts), rolling.sharpe, strict=True)
    ]
    curve = line("Sharpe", AGENT, width=1.6) | {
        "data": rows,
        "markLine": {
            "silent": True,
            "symbol": "none",
            "label": {"show": False},
            "lineStyle": {"color": FAINT, "type": "solid"},
            "data": [{"yAxis": 0}],
        },
    }
    return {
        "useUTC": True,
        "animation": False,
        "tooltip": {"trigger": "axis", "confine": True},
        "grid": [{"left": 62, "right": 16, "top": 30, "bottom": 78}],
        "xAxis": [time_axis(sheet, 0)],
        "yAxis": [value_axis("Sharpe ratio a year", 0)],
        "dataZoom": zoom([0]),
        "series": [curve],
    }


def costs_option(costs: Costs, quote: str) -> Option:
    """Return the way from the profit before costs to the profit after them, as a waterfall."""
    steps = [("before costs", costs.before, 0.0, AGENT)]
    left = costs.before
    for part in costs.parts[:-1]:
        colour = SOLD if part.amount >= 0.0 else BOUGHT
        steps.append((part.name, left, left - part.amount, colour))
        left -= part.amount
    steps.append(("after costs", costs.after, 0.0, AGENT))
    # Two stacks, above and below 0, since a step may cross it: an unseen foot and what is shown.
    feet, tops, falls, lows = [], [], [], []
    for name, one, other, colour in steps:
        low, high = sorted((one, other))
        look = {"itemStyle": {"color": colour}, "name": name}
        feet.append(short(max(low, 0.0)))
        tops.append({"value": short(max(high, 0.0) - max(low, 0.0)), **look})
        lows.append(short(min(high, 0.0)))
        falls.append({"value": short(min(low, 0.0) - min(high, 0.0)), **look})
    unseen = {"itemStyle": {"color": "transparent"}, "silent": True, "tooltip": {"show": False}}
    bar = {"type": "bar", "stack": "money", "barWidth": "55%"}
    return {
        "animation": False,
        "grid": [{"left": 84, "right": 24, "top": 8, "bottom": 44}],
        "yAxis": [category_axis([step[0] for step in steps], inverse=True)],
        "xAxis": [value_axis(quote, 0, middle=True) | {"scale": False}],
        "series": [
            bar | unseen | {"data": feet},
            bar | {"data": tops},
            bar | unseen | {"data": lows},
            bar | {"data": falls},
        ],
    }


def versus_option(versus: Sequence[Versus]) -> Option:
    """Return differences to baselines with their intervals; one that crosses 0 proves nothing."""
    series: list[Option] = []
    for row, each in enumerate(versus):
        band = each.interval
        clear = band.low > 0.0 or band.high < 0.0
        colour = FAINT if not clear else BOUGHT if band.low > 0.0 else SOLD
        ends = [[short(band.low), row], [short(band.high), row]]
        series.append(
            line(each.baseline, colour, width=3.0)
            | {"data": ends, "showSymbol": True, "symbol": "rect", "symbolSize": [2, 14]}
        )
        series.append(
            {
                "type": "scatter",
                "name": each.baseline,
                "symbolSize": 11,
                "itemStyle": {"color": colour},
                "data": [[short(band.estimate), row]],
            }
        )
    zero = {"silent": True, "symbol": "none", "label": {"show": False}, "data": [{"xAxis": 0}]}
    if series:
        series[0]["markLine"] = zero | {"lineStyle": {"color": FAINT, "type": "solid"}}
    unit = versus[0].unit if versus else ""
    return {
        "animation": False,
        "tooltip": {"trigger": "item", "confine": True},
        "grid": [{"left": 150, "right": 24, "top": 8, "bottom": 44}],
        "xAxis": [value_axis(unit, 0, middle=True) | {"scale": False}],
        "yAxis": [category_axis([each.baseline for each in versus], inverse=True)],
        "series": series,
    }


def _arms(sheet: Sheet) -> list[Option]:
    looks = dict(zip(sheet.beside, cycle(BESIDE), strict=False))
    most = points_of(sheet)
    lines = [
        line(sheet.subject, AGENT, width=2.2)
        | {"z": 3, "data": points(sheet.ts, indexed(sheet.curve), most)}
    ]
    for arm, (colour, dashes) in looks.items():
        look = line(arm, colour, width=1.2, dashes=dashes)
        lines.append(look | {"data": points(sheet.ts, indexed(sheet.equity[arm]), most)})
    return lines


def _drawdown(sheet: Sheet) -> Option:
    falls = -100.0 * drawdowns(sheet.curve)
    return line("drawdown, %", SOLD, width=1.0) | {
        "areaStyle": {"opacity": 0.25},
        "data": points(sheet.ts, falls, points_of(sheet)),
    }


def _position(sheet: Sheet, held: FloatArray) -> Option:
    return line("position, %", AGENT, width=1.0) | {
        "step": "end",
        "areaStyle": {"opacity": 0.2},
        "data": points(sheet.ts, held, points_of(sheet)),
    }


def _marks(sheet: Sheet, *, bought: bool) -> Option:
    data: list[list[float]] = []
    if sheet.fills is not None and sheet.bars is not None:
        fills = marked(sheet)
        fills = fills[(fills["qty"] > 0.0) == bought]
        times = milliseconds(sheet.bars.ts[fills["bar"]])
        columns = (times, shortened(fills["price"]), shortened(np.abs(fills["qty"])))
        data = [list(row) for row in zip(*columns, strict=True)]
    return {
        "type": "scatter",
        "name": "bought" if bought else "sold",
        "symbol": UPWARD if bought else DOWNWARD,
        "symbolSize": 11,
        "z": 5,
        "itemStyle": {
            "color": BOUGHT if bought else SOLD,
            "borderColor": "#ffffff",
            "borderWidth": 0.8,
        },
        "dimensions": ["time", "price", "quantity"],
        "encode": {"x": 0, "y": 1, "tooltip": [1, 2]},
        "data": data,
    }


def marked(sheet: Sheet) -> NDArray[Any]:
    """Return the fills that are marked: all turns, or the largest of them in the order of time."""
    if sheet.fills is None:
        return np.empty(0)
    fills = sheet.fills[turns(sheet.fills)]
    if fills.size <= MAX_MARKS:
        return fills
    value = np.abs(fills["qty"]) * fills["price"]
    return fills[np.sort(np.argsort(-value, kind="stable")[:MAX_MARKS])]
