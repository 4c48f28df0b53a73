"""The page: one HTML file with everything inside, that asks nobody for anything.

Its content security policy names the very scripts that it carries by their hash, so that nothing
else runs in it, and allows no address at all.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from agent_gym.core.clock import DAY_NS
from agent_gym.evaluation.tearsheet import sections
from agent_gym.evaluation.tearsheet.axes import Option, short
from agent_gym.evaluation.tearsheet.history import (
    deepest_drawdowns,
    monthly_returns,
    rolling_sharpe,
)
from agent_gym.evaluation.tearsheet.markup import embedded, paragraph
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
    body = (
        f"<header><div><h1>{escape(sheet.title)}</h1>",
        f"{paragraph(sections.summary(sheet), 'faint')}</div>",
        '<button type="button" id="theme" class="controls">Dark</button></header>',
        "<main>",
        sections.verdict(sheet),
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
        sections.provenance(sheet),
        '</main>\n<div id="tip" popover="manual" role="tooltip"></div>',
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
    text = _document(sheet.title, "\n".join(filter(None, body)), data)
    # A name with bytes that are no text is shown as its escape, not refused.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _document(title: str, body: str, data: dict[str, Any]) -> str:
    library, script = _asset(LIBRARY), _asset(SCRIPT)
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(script)}; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>{_asset(STYLE)}</style>\n</head>",
            f"<body>\n{body}",
            f'<script type="application/json" id="data">{embedded(data)}</script>',
            f"<script>{library}</script>\n<script>{script}</script>\n</body>\n</html>\n",
        )
    )


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


@cache
def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
