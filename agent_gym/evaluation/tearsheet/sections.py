"""The parts of the page from answer to origin, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from agent_gym.evaluation.figures import UNDEFINED, Figure
from agent_gym.evaluation.page import Answer, Light, Origin, pairs, paragraph, section
from agent_gym.evaluation.tearsheet.axes import regime_colours
from agent_gym.evaluation.tearsheet.history import Drawdown, Rolling, Year
from agent_gym.evaluation.tearsheet.markup import band_text, chart, day, grid, tip
from agent_gym.evaluation.tearsheet.options import MAX_BESIDE, MAX_MARKS, equity_range, points_of
from agent_gym.evaluation.tearsheet.sheet import Number, Sheet
from agent_gym.evaluation.tearsheet.tables import Costs, figure_rows, turns
from agent_gym.markets.quality import format_time

KEY_FIGURES = (
    "total_return",
    "growth_pct_per_year",
    "sharpe",
    "psr",
    "max_drawdown",
    "calmar",
    "exposure",
    "cost_share",
    "round_trips",
    "hit_rate",
)
LIGHTS: dict[str, Light] = {
    "evidence of edge": "good",
    "promising": "hint",
    "no evidence of edge": "unsure",
    "worse than baseline": "bad",
}
NO_VERDICT = (
    "A single backtest is no evidence",
    "One path of one market shows what happened, not what to expect: nothing was held out, and "
    "nothing counts how many ideas were tried before this one. The command agent-gym evaluate asks "
    "whether there is an edge.",
)
TRIP_HEADS = (
    "#",
    "opened (UTC)",
    "closed (UTC)",
    "side",
    "quantity",
    "entry price",
    "exit price",
    "hours",
    "gross",
    "fees",
    "net",
    "net %",
)
MAX_TRIPS = 5_000
LOG_RATIO = 3.0  # curves that span more than this start on a log scale


def summary(sheet: Sheet) -> str:
    """Return what was traded, when, and with how much, in one line."""
    curve = sheet.curve
    money = f"opening cash {curve[0]:,.2f}, final equity {curve[-1]:,.2f} {sheet.quote}"
    span = f"{day(int(sheet.ts[0]) - sheet.period_ns)} to {day(int(sheet.ts[-1]))} UTC"
    if sheet.bars is None:
        return f"{span}, {sheet.ts.size:,} marks, {money}"
    instrument = sheet.bars.instrument
    what = f"{instrument.symbol} ({instrument.kind}, {instrument.exchange})"
    return f"{what}, {span}, {len(sheet.bars):,} bars, {money}"


def answer(sheet: Sheet) -> Answer:
    """Return what the page opens with."""
    word, why = sheet.verdict or NO_VERDICT
    light = LIGHTS.get(word.lower(), "same")
    return Answer(light, word[:1].upper() + word[1:], sheet.title, (why, *sheet.notes))


def key_figures(sheet: Sheet) -> str:
    """Return the figures that matter most, each with its interval where one is known."""
    own = sheet.figures[sheet.subject]
    known = {each.name: each for each in sheet.shown}
    first = [name for name in KEY_FIGURES if name in known and name in own]
    if own.get("share_of_attainable") is not None:
        first.insert(2, "share_of_attainable")
    first += [name for name in sheet.intervals if name in known and name not in first]
    cards = "\n".join(_card(sheet, known[name], own[name]) for name in first)
    note = "After all costs. A dash is a figure that is not defined. Names explain themselves."
    return section("Key figures", f'<ul class="tiles cards">\n{cards}\n</ul>', note=note)


def _card(sheet: Sheet, figure: Figure, value: Number) -> str:
    unit = f' <span class="unit">{escape(figure.unit)}</span>'
    if value is None or not figure.unit:
        unit = ""
    band = sheet.intervals.get(figure.name)
    words = f'<span class="faint small">{escape(band_text(figure, band))}</span>' if band else ""
    number = f'<span class="value">{escape(figure.format(value))}{unit}</span>'
    return f"<li>{tip(figure, figure.label)}{number}{words}</li>"


def curves(sheet: Sheet) -> str:
    """Return equity, drawdown and position."""
    log = ""
    if has_log(sheet):
        low, high = equity_range(sheet)
        steep = "true" if high > LOG_RATIO * low else "false"
        log = f'<button type="button" id="log" aria-pressed="{steep}">Log scale</button>'
    controls = f'<div class="controls">{log} <button type="button" id="whole">All</button></div>'
    thinned = ""
    drawn = points_of(sheet)
    if sheet.ts.size > drawn:
        thinned = f" Some {drawn:,} of {sheet.ts.size:,} marks are drawn, extremes included."
    if len(sheet.beside) > MAX_BESIDE:
        thinned += " A click on a grey name shows its line."
    note = "Zoom with the slider, Ctrl and wheel, or keys; all charts of time follow."
    return section(
        "Equity and drawdown",
        f'<div class="bar">{paragraph(note + thinned, "faint small")}{controls}</div>',
        _regime_names(sheet),
        chart("equity", "Equity, drawdown and position over time", keys=True),
    )


def has_log(sheet: Sheet) -> bool:
    """Return whether the curves have a log scale: nothing at or below 0 has a logarithm."""
    return equity_range(sheet)[0] > 0.0


def _regime_names(sheet: Sheet) -> str:
    if not sheet.regimes:
        return ""
    names = "".join(
        f'<li><span class="swatch" style="background:{colour}"></span>{escape(name)}</li>'
        for name, colour in regime_colours(sheet.regimes).items()
    )
    return f'<ul class="names"><li class="faint">Known regimes:</li>{names}</ul>'


def prices(sheet: Sheet) -> str:
    """Return candles with trades."""
    if sheet.bars is None:
        return ""
    fills = sheet.fills if sheet.fills is not None else ()
    note = f"{len(fills):,} fills; marked where the position opens, closes or turns. "
    if sheet.fills is not None and turns(sheet.fills).size > MAX_MARKS:
        note += f"Only the {MAX_MARKS:,} largest can be marked. "
    words = f'<p class="faint small">{escape(note)}<span id="candles-note"></span></p>'
    label = "Candles with the trades of the subject"
    return section("Price and trades", words, chart("candles", label, keys=True))


def months(years: Sequence[Year]) -> str:
    """Return the monthly returns."""
    note = "Return of equity in percent by calendar month (UTC); the ends may be parts of a month."
    place = chart("monthly", "Heat map of monthly returns", rows=len(years))
    return section("Monthly returns", place, note=note)


def rolling(found: Rolling | None, period_ns: int, day_ns: int) -> str:
    """Return the rolling Sharpe ratio."""
    if found is None:
        return ""
    what = "days" if period_ns <= day_ns else "bars"
    note = f"Of the last {found.window:,} {what}, computed as the Sharpe ratio above."
    return section("Rolling Sharpe ratio", chart("rolling", note, keys=True), note=note)


def drawdown_table(falls: Sequence[Drawdown]) -> str:
    """Return the deepest drawdowns."""
    if not falls:
        return section("Deepest drawdowns", paragraph("Equity never fell below an earlier mark."))
    heads = ("#", "depth, %", "peak (UTC)", "trough (UTC)", "recovered (UTC)", "days")
    rows = [
        (
            str(at),
            f"{100.0 * fall.depth:.2f}",
            day(fall.peak_ns),
            day(fall.trough_ns),
            "not yet" if fall.end_ns is None else day(fall.end_ns),
            f"{fall.days:,.1f}",
        )
        for at, fall in enumerate(falls, start=1)
    ]
    return section("Deepest drawdowns", grid(heads, rows))


def trip_table(shown: int, count: int) -> str:
    """Return the frame of the round trips; the page fills it."""
    if not count:
        return section("Round trips", paragraph("No round trip was closed."))
    note = f"{count:,} closed round trips, first in, first out; money after fees."
    if shown < count:
        note += f" The {shown:,} with the largest results are listed; JSON and CSV hold all."
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(head)}</button></th>' for head in TRIP_HEADS
    )
    return section(
        "Round trips",
        f'<div class="wide"><table>\n<thead><tr id="trip-heads">{heads}</tr></thead>\n'
        '<tbody id="trips"></tbody>\n</table></div>',
        '<div class="bar controls"><span id="page" aria-live="polite"></span><span>'
        '<button type="button" id="back">Back</button> '
        '<button type="button" id="next">Next</button></span></div>',
        note=note,
    )


def cost_table(costs: Costs | None, quote: str) -> str:
    """Return what trading cost."""
    if costs is None:
        return ""
    heads = ("", quote, "bp of value traded", "% of gross profit")
    rows = [("profit before costs", f"{costs.before:,.2f}", "", "")]
    for part in costs.parts:
        share = None if part.share_of_gross is None else 100.0 * part.share_of_gross
        rows.append(
            (part.name, f"{part.amount:,.2f}", _or_dash(part.bps_of_traded), _or_dash(share))
        )
    rows.append(("profit after costs", f"{costs.after:,.2f}", "", ""))
    place = chart("costs", "From profit before costs to profit after them", rows=5)
    return section("Costs", place, grid(heads, rows))


def beside(sheet: Sheet) -> str:
    """Return differences to baselines, and all figures of all arms."""
    parts = []
    if sheet.versus:
        level = 100.0 * sheet.versus[0].interval.level
        parts.append(
            paragraph(
                f"Difference of the subject to each baseline, {sheet.versus[0].unit}, with its "
                f"{level:g} % interval; grey crosses 0, so nothing is shown either way.",
                "faint small",
            )
        )
        parts.append(chart("versus", "Differences to baselines", rows=len(sheet.versus)))
        parts.append(_versus_table(sheet))
    known = {each.name: each for each in sheet.shown}
    rows = [
        (tip(known[name], known[name].heading), *(known[name].format(v) for v in values.values()))
        for name, values in figure_rows(sheet)
        if any(value is not None for value in values.values())
    ]
    arms = list(sheet.figures)
    parts.append(grid(("", *arms), rows, own=1 + arms.index(sheet.subject), raw=True))
    note = "Every arm has the same bars, ledger, costs and timing."
    return section("Beside the baselines", *parts, note=note)


def _versus_table(sheet: Sheet) -> str:
    rows = [
        (
            each.baseline,
            f"{each.interval.estimate:,.3f}",
            f"{each.interval.low:,.3f} to {each.interval.high:,.3f}",
            _or_dash(each.p_value, 4),
        )
        for each in sheet.versus
    ]
    heads = ("baseline", f"difference, {sheet.versus[0].unit}", "interval", "p")
    return grid(heads, rows)


def risk(caps: Mapping[str, object]) -> str:
    """Return what risk parts did."""
    if not caps:
        return ""
    bound, forecasts = caps.get("bound", {}), caps.get("forecasts", {})
    rows = {"decisions": f"{caps.get('decisions', 0):,}"}
    if isinstance(bound, Mapping):
        rows |= {f"held back by {part}": f"{times:,}" for part, times in bound.items()}
    if isinstance(forecasts, Mapping):
        rows |= {f"forecasts from the {who}": f"{n:,}" for who, n in forecasts.items()}
    tripped = caps.get("breaker_tripped_ns")
    if isinstance(tripped, int):
        rows["drawdown breaker tripped"] = format_time(tripped)
    return section("What risk parts did", pairs(rows))


def origin(sheet: Sheet) -> Origin:
    """Return where it comes from and what makes it again."""
    note = "The command makes the same numbers again; add --report FILE for this page."
    return Origin((sheet.command,), sheet.provenance, sheet.manifest, note)


def _or_dash(value: float | None, digits: int = 2) -> str:
    return UNDEFINED if value is None else f"{value:,.{digits}f}"
