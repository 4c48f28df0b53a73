"""The page of a backtest: charts that move together, tables that can be read without scripts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from agent_gym.core.clock import DAY_NS
from agent_gym.evaluation.page import Own, Page, paragraph, whole_page
from agent_gym.evaluation.tearsheet import sections
from agent_gym.evaluation.tearsheet.axes import Option, short
from agent_gym.evaluation.tearsheet.history import (
    deepest_drawdowns,
    monthly_returns,
    rolling_sharpe,
)
from agent_gym.evaluation.tearsheet.options import (
    candle_rows,
    candles_option,
    costs_option,
    equity_log_axis,
    equity_option,
    monthly_option,
    price_log_axis,
    rolling_option,
    versus_option,
)
from agent_gym.evaluation.tearsheet.sheet import Sheet
from agent_gym.evaluation.tearsheet.tables import Trip, costs_of, trips_of
from agent_gym.evaluation.tearsheet.thinning import candle_levels

MARKS_AT_ONCE = 400
MS = 1_000_000
LIBRARY, SCRIPT, STYLE = "echarts.min.js", "sheet.js", "sheet.css"
NO_SCRIPT = "Charts and round trips need the scripts inside this file; the tables do not."


def page_of(sheet: Sheet) -> str:
    """Return the page as HTML; equal sheets give equal text."""
    years = monthly_returns(sheet.ts, sheet.curve)
    rolled = rolling_sharpe(sheet.ts, sheet.period_ns, sheet.curve)
    falls = deepest_drawdowns(sheet.ts, sheet.period_ns, sheet.curve)
    trips, costs = trips_of(sheet), costs_of(sheet)
    listed = _largest(trips)
    parts = (
        sections.key_figures(sheet),
        f"<noscript>{paragraph(NO_SCRIPT)}</noscript>",
        sections.curves(sheet),
        sections.prices(sheet),
        sections.months(years),
        sections.rolling(rolled, sheet.period_ns, DAY_NS),
        sections.drawdown_table(falls),
        sections.trip_table(len(listed), len(trips)),
        sections.cost_table(costs, sheet.quote),
        sections.beside(sheet),
        sections.risk(sheet.caps),
        '<div id="tip" popover="manual" role="tooltip"></div>',
    )
    charts: dict[str, Option] = {
        "equity": equity_option(sheet),
        "monthly": monthly_option(years),
    }
    if rolled is not None:
        charts["rolling"] = rolling_option(sheet, rolled)
    if costs is not None:
        charts["costs"] = costs_option(costs, sheet.quote)
    if sheet.versus:
        charts["versus"] = versus_option(sheet.versus)
    data: dict[str, Any] = {"candles": [], "most_marks": MARKS_AT_ONCE}
    if sheet.bars is not None:
        levels = candle_levels(sheet.bars)
        charts["candles"] = candles_option(sheet, levels[0])
        data["candles"] = [{"period": each.period, "rows": candle_rows(each)} for each in levels]
    if sections.has_log(sheet):
        data["log_axes"] = {"equity": equity_log_axis(sheet)}
        if sheet.bars is not None and sheet.bars.low.min() > 0.0:
            data["log_axes"]["candles"] = price_log_axis(sheet, sheet.bars)
    data |= {"charts": charts, "trips": [_trip_row(trip) for trip in listed]}
    page = Page(
        kind=sheet.kind,
        about=sections.summary(sheet),
        title=sheet.title,
        answer=sections.answer(sheet),
        sections=parts,
        origin=sections.origin(sheet),
    )
    # The library of charts puts styles on its elements and pictures into addresses of data.
    own = Own(
        scripts=(_asset(LIBRARY), _asset(SCRIPT)),
        style=_asset(STYLE),
        no_script=".chart, .controls { display: none; }",
        data={"data": data},
        sources=("img-src data:",),
        inline_styles=True,
    )
    return whole_page(page, own)


def _largest(trips: list[Trip]) -> list[Trip]:
    """Return the trips with the largest results, in the order in which they closed."""
    if len(trips) <= sections.MAX_TRIPS:
        return trips
    order = sorted(range(len(trips)), key=lambda at: -abs(trips[at].net))
    return [trips[at] for at in sorted(order[: sections.MAX_TRIPS])]


def _trip_row(trip: Trip) -> list[Any]:
    numbers = (None if value is None else short(value) for value in trip[3:])
    return [trip.entry_ns // MS, trip.exit_ns // MS, trip.side, *numbers]


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
