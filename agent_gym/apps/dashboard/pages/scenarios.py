"""Scenarios: one metric over all nights, with new levels and new baselines marked."""

from __future__ import annotations

from typing import Any

from agent_gym.apps.dashboard.charts import AMBER, BAD, BLUE, CARD, INK, lines
from agent_gym.apps.dashboard.figures.runs import ScenarioFigures, scenario_figures
from agent_gym.apps.dashboard.markup import Safe, el
from agent_gym.apps.dashboard.parts import choose, filters, light_tag, run_link, table, when
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Block, Chart, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.pipeline.nightly.history import MetricHistory, MetricPoint
from agent_gym.reporting.text import number

LATEST = 20
NIGHTS = ("90", "1000", "20000")


def view(visit: Visit) -> View:
    """Return the history of one metric."""
    words, query = visit.words, visit.query
    nights = query.choice("nights", NIGHTS, NIGHTS[1])
    found = scenario_figures(visit.service, query.get("suite"), query.get("metric"), int(nights))
    if not found.suites:
        none = empty(words, "home.no_night", visit.command("agent-gym nightly"))
        return View(words("nav.scenarios"), (Markup("none", card(words("nav.scenarios"), none)),))
    blocks: list[Block] = [Markup("filter", _filter(words, query, found, nights))]
    history = found.history
    if history is None or not history.points:
        blocks.append(Markup("none", card(words("nav.scenarios"), empty(words, "scenarios.none"))))
        return View(words("nav.scenarios"), tuple(blocks))
    changes = [point for point in history.points if point.change]
    said = words(
        "scenarios.said",
        name=history.name,
        n=words.count(history.total),
        shown=words.count(len(history.points)),
        changes=len(changes),
        last=number(history.points[-1].value),
    )
    way = words(f"direction.{found.direction}") if found.direction else ""
    blocks += [
        Chart("history", _option(words, history), f"{said} {way}".strip(), 420),
        Markup("marks", _marks(words, history), wide=True),
    ]
    return View(words("scenarios.title", name=history.name), tuple(blocks))


def _filter(words: Words, query: Query, found: ScenarioFigures, nights: str) -> Safe:
    name = found.history.name if found.history is not None else ""
    names = found.names if name in found.names or not name else (name, *found.names)
    return filters(
        words,
        query,
        choose(words("runs.suite"), "suite", [(s, s) for s in found.suites], found.suite),
        choose(words("metric.name"), "metric", [(n, n) for n in names], name),
        choose(
            words("scenarios.nights"), "nights", [(n, words.count(int(n))) for n in NIGHTS], nights
        ),
    )


def _option(words: Words, history: MetricHistory) -> dict[str, Any]:
    points = history.points
    marks = [
        _line(words("scenarios.change"), point, BAD, "solid") for point in points if point.change
    ] + [
        _line(_baseline(words, point), point, AMBER, "dashed")
        for point in points
        if point.new_baseline and not point.change
    ]
    series = {
        "name": history.name,
        "showSymbol": len(points) <= 120,
        "symbolSize": 5,
        "lineStyle": {"color": BLUE, "width": 1.6},
        "itemStyle": {"color": BLUE},
        "data": [[point.created_at, point.value] for point in points],
        "markLine": {"symbol": "none", "data": marks},
    }
    return dict(lines([series], x={"type": "time"}, zoom=True))


def _line(label: str, point: MetricPoint, colour: str, dashes: str) -> dict[str, Any]:
    return {
        "name": label,
        "xAxis": point.created_at,
        "lineStyle": {"color": colour, "type": dashes, "width": 1.4},
        "label": {
            "formatter": label,
            "color": INK,
            "backgroundColor": CARD,
            "padding": [2, 4],
            "fontSize": 11,
            "rotate": 90,
            "position": "insideEndTop",
        },
    }


def _baseline(words: Words, point: MetricPoint) -> str:
    return words("scenarios.first_baseline" if point.first_baseline else "scenarios.baseline")


def _marks(words: Words, history: MetricHistory) -> Safe:
    marked = [point for point in history.points if point.change or point.new_baseline]
    shown = {point.run_id: point for point in (*marked, *history.points[-LATEST:])}
    rows = [
        [
            run_link(point.run_id),
            el("time", when(point.created_at)),
            number(point.value),
            light_tag(words, point.light),
            ", ".join(
                label
                for label, on in (
                    (words("scenarios.change"), point.change),
                    (_baseline(words, point), point.new_baseline),
                )
                if on
            ),
        ]
        for point in sorted(shown.values(), key=lambda each: each.created_at, reverse=True)
    ]
    heads = [
        words("runs.run"),
        words("runs.when"),
        words("metric.mean"),
        words("runs.light"),
        words("scenarios.mark"),
    ]
    return table(words("scenarios.marks"), heads, rows, numbers=(2,))


PAGE = Page("/scenarios", "scenarios", view)
