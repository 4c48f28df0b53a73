"""Compare: two runs or more side by side, what got worse first."""

from __future__ import annotations

from agent_gym.apps.dashboard.figures.runs import ComparedFigures, compared_figures
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.parts import choose, light_tag, metric_link, run_link, table, when
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.pipeline.nightly.compared import ComparedMetric
from agent_gym.reporting.text import number, percent

SORTS = ("regression", "name")


def view(visit: Visit) -> View:
    """Return some runs side by side."""
    words, query = visit.words, visit.query
    changed = query.flag("changed")
    sort = query.choice("sort", SORTS, "regression")
    found = compared_figures(
        visit.service,
        query.all("run"),
        reference=query.get("reference"),
        changed_only=changed,
        by_regression=sort == "regression",
    )
    said = words("compare.shown", n=len(found.metrics), total=found.total)
    blocks = (
        Markup("filter", _filter(words, query, changed=changed, sort=sort)),
        Markup("count", el("p", said, class_="faint", role="status")),
        Markup("painted", el("p", words("compare.painted"), class_="faint small")),
        Markup("table", _table(words, query, found), wide=True)
        if found.metrics
        else Markup("none", card(words("nav.compare"), empty(words, "compare.same"))),
    )
    return View(words("nav.compare"), blocks)


def _filter(words: Words, query: Query, *, changed: bool, sort: str) -> Safe:
    kept = [pair for pair in query.pairs if pair[0] in ("run", "reference")]
    runs = [el("input", type="hidden", name=name, value=value) for name, value in kept]
    box = el(
        "input",
        type="checkbox",
        name="changed",
        value="1",
        id="changed",
        checked=changed,
        data_submits=True,
    )
    sorts = [(each, words(f"compare.by_{each}")) for each in SORTS]
    return el(
        "form",
        *runs,
        el("label", box, words("compare.changed"), class_="check"),
        choose(words("compare.sort"), "sort", sorts, sort),
        link("/dashboard/runs", words("compare.others"), class_="button"),
        method="get",
        action=query.path,
        class_="filters card",
        aria_label=words("filter.label"),
    )


def _table(words: Words, query: Query, found: ComparedFigures) -> Safe:
    heads: list[str | Safe] = [words("metric.name")]
    for at, run in enumerate(found.runs):
        which = (
            words("compare.reference")
            if at == 0
            else link(query.href(reference=run.run_id), words("compare.make_reference"))
        )
        heads.append(
            text(
                el("span", which, class_="small"),
                el("br"),
                run_link(run.run_id),
                el("br"),
                light_tag(words, run.light),
                " ",
                el("span", when(run.created_at), class_="small"),
            )
        )
    suite = found.runs[0].suite
    rows = [_row(words, suite, each) for each in found.metrics]
    labels = [words("metric.name"), words("compare.reference")]
    labels += [run.run_id for run in found.runs[1:]]
    made = table(words("nav.compare"), heads, rows, numbers=range(1, len(heads)), story=labels)
    return el("div", made, id="compared")


def _row(words: Words, suite: str, metric: ComparedMetric) -> list[Part]:
    way = "" if metric.direction is None else ("↑" if metric.direction == "up" else "↓")
    name = text(
        metric_link(suite, metric.name),
        " ",
        el("span", way, class_="faint", title=words(f"direction.{metric.direction}"))
        if way
        else "",
    )
    base = metric.values[0]
    cells: list[Part] = [name]
    for value, change in zip(metric.values, metric.changes, strict=True):
        told = metric.direction if metric.beyond(change) else None
        cells.append(text(number(value), _change(told, base, change)))
    return cells


def _change(direction: str | None, base: float | None, change: float | None) -> Safe:
    """Return a difference; whether it is good or bad is told where a direction is."""
    if not change:
        return text("")
    shown = percent(change / abs(base)) if base else f"{change:+.4g}"
    better = None if direction is None else (change > 0) == (direction == "up")
    tone = "" if better is None else ("better" if better else "worse")
    sign = "" if better is None else ("✓ " if better else "✗ ")
    return text(el("br"), el("span", f"{sign}{shown}", class_=f"small {tone}".strip()))


PAGE = Page("/compare", "compare", view, listed=False, live=False, back="/runs")
