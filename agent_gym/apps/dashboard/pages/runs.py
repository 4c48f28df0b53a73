"""Runs: all nights page by page, found by filter, and chosen for a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast, get_args

from agent_gym.apps.dashboard.figures.home import history_of
from agent_gym.apps.dashboard.figures.runs import VERDICTS, RunsFigures, runs_figures
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.parts import (
    choose,
    facts,
    filters,
    light_tag,
    metric_link,
    pager,
    run_link,
    table,
    when,
)
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Block, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.pipeline.nightly.history import Light, RunFilter, RunRow, Sort
from agent_gym.reporting.nightly.documents import KEYS
from agent_gym.reporting.text import chance, difference, interval, number

Entry: TypeAlias = dict[str, Any]
FRESH = "confirm"  # the stage of the gate that plays again on seeds nobody has seen
SIZE = 50
LIGHTS = get_args(Light)
SORTS = get_args(Sort)
SORTED_HEADS = {0: "run_id", 2: "light", 3: "created_at", 4: "verdict"}
FOLDED_HEADS = ("suite", "commit", "baseline", "metrics")
COMPARE = "/dashboard/compare"
WORD_TONES = {
    "regression": "bad",
    "error": "bad",
    "missing_in_new": "bad",
    "incomparable": "unsure",
    "improvement": "good",
}
SHOWN_LISTS = ("regressions", "errors", "missing_in_new", "incomparable", "improvements")


def view(visit: Visit) -> View:
    """Return one page of the runs."""
    words, query = visit.words, visit.query
    chosen = RunFilter(
        suite=query.get("suite") or None,
        light=cast(Light | None, query.choice("light", LIGHTS) or None),
        verdict=query.choice("verdict", VERDICTS) or None,
        text=query.get("text") or None,
    )
    sort = cast(Sort, query.choice("sort", SORTS, "created_at"))
    found = runs_figures(
        visit.service,
        chosen,
        sort=sort,
        descending=query.get("order") != "up",
        page=query.whole("page", 1, 1),
        size=SIZE,
    )
    blocks: list[Block] = [Markup("filter", _filter(words, query, found.suites))]
    if found.total:
        blocks += [
            Markup("pager", pager(words, query, found.total, SIZE)),
            Markup("runs", _table(words, query, found), wide=True),
        ]
    else:
        key, command = (
            ("runs.none_fit", "")
            if found.suites
            else ("home.no_night", visit.command("agent-gym nightly"))
        )
        blocks.append(Markup("none", card(words("nav.runs"), empty(words, key, command))))
    return View(words("nav.runs"), tuple(blocks))


def _filter(words: Words, query: Query, suites: tuple[str, ...]) -> Safe:
    every = ("", words("filter.all"))
    lights = [every, *((each, words.known("light", each)) for each in LIGHTS)]
    verdicts = [every, *((each, words.known("verdict", each)) for each in VERDICTS)]
    search = el(
        "label",
        words("runs.text"),
        el("input", name="text", id="text", type="search", value=query.get("text"), maxlength=80),
    )
    kept = [
        el("input", type="hidden", name=name, value=query.get(name))
        for name in ("sort", "order")
        if query.get(name)
    ]
    return filters(
        words,
        query,
        search,
        choose(
            words("runs.suite"), "suite", [every, *((s, s) for s in suites)], query.get("suite")
        ),
        choose(words("runs.light"), "light", lights, query.get("light")),
        choose(words("runs.verdict"), "verdict", verdicts, query.get("verdict")),
        *kept,
        clear=True,
    )


def _table(words: Words, query: Query, found: RunsFigures) -> Safe:
    heads: list[str | Safe] = [
        _sorted(words, query, "run_id", words("runs.run")),
        el("span", words("runs.choose"), class_="sr"),
        _sorted(words, query, "light", words("runs.light")),
        _sorted(words, query, "created_at", words("runs.when")),
        _sorted(words, query, "verdict", words("runs.verdict")),
        *(words(f"runs.{name}") for name in FOLDED_HEADS),
    ]
    rows = [_row(words, run) for run in found.rows]
    now, way = query.choice("sort", SORTS, "created_at"), query.get("order")
    shown = "ascending" if way == "up" else "descending"
    sorts = {at: shown if name == now else "none" for at, name in SORTED_HEADS.items()}
    labels = ["", "", "", "", "", *(words(f"runs.{name}") for name in FOLDED_HEADS)]
    made = table(words("nav.runs"), heads, rows, numbers=(8,), sorts=sorts, story=labels)
    button = el("button", words("runs.compare"), type="submit", class_="main", id="compare")
    hint = el("span", words("runs.compare_hint"), class_="faint small")
    return el(
        "form",
        el("div", button, hint, class_="caption-tools"),
        made,
        method="get",
        action=COMPARE,
        id="runs",
    )


def _row(words: Words, run: RunRow) -> list[Part]:
    box = el(
        "input",
        type="checkbox",
        name="run",
        value=run.run_id,
        id=f"run-{run.run_id}",
        data_kept=True,
        aria_label=words("runs.choose_one", run=run.run_id),
    )
    return [
        run_link(run.run_id),
        box,
        light_tag(words, run.light),
        el("time", when(run.created_at), datetime=run.created_at),
        words.known("verdict", run.verdict),
        run.suite,
        el("code", (run.commit or "-")[:10]),
        el("code", run.baseline_id or "-"),
        words.count(len(run.values)),
    ]


def _sorted(words: Words, query: Query, name: Sort, label: str) -> Safe:
    """Return a column's head that sorts by it; once more turns it around."""
    now, up = query.get("sort", "created_at") == name, query.get("order") == "up"
    arrow = (" ▲" if up else " ▼") if now else ""
    way = None if not now or up else "up"
    return link(
        query.href(sort=name, order=way, page=None),
        f"{label}{arrow}",
        aria_label=words("sort.by", name=label),
    )


def one(visit: Visit) -> View:
    """Return one run."""
    words, run_id = visit.words, visit.query.get("id")
    history = history_of(visit.service)
    (run,) = history.get([run_id])
    diff = history.run_diff(run_id)
    rows: list[tuple[str, Part]] = [
        (
            words("runs.verdict"),
            text(light_tag(words, run.light), " ", words.known("verdict", run.verdict)),
        ),
        (words("runs.when"), f"{when(run.created_at)} - {when(run.finished_at)} UTC"),
        (words("runs.suite"), run.suite),
        (words("runs.status"), words.said(run.status)),
        (words("runs.exit"), str(run.exit_code)),
        (words("runs.commit"), el("code", run.commit or "-")),
        (words("runs.baseline"), el("code", run.baseline_id or "-")),
    ]
    if diff is not None:
        rows.insert(0, (words("runs.headline"), words.said(str(diff["headline"]))))
        rows.insert(1, (words("runs.why"), words.said(str(diff["why"]))))
    blocks: list[Block] = [Markup("about", card(run_id, facts(rows)))]
    if diff is None:
        blocks.append(Markup("no-folder", el("p", words("runs.no_folder"), class_="faint")))
    else:
        blocks += _found(words, run, diff)
    values = [[metric_link(run.suite, name), number(value)] for name, value in run.values.items()]
    heads = [words("metric.name"), words("metric.mean")]
    blocks.append(
        Markup("values", table(words("runs.values"), heads, values, numbers=(1,)), wide=True)
    )
    return View(words("runs.one", run=run_id), tuple(blocks))


def _found(words: Words, run: RunRow, diff: dict[str, list[Entry]]) -> list[Block]:
    """Return what the gate found, the worst first."""
    names = {key: word for word, key in KEYS.items()}
    found = [(names[key], each) for key in SHOWN_LISTS for each in diff.get(key, [])]
    if not found:
        return []
    heads = [
        words("metric.name"),
        words("runs.verdict"),
        words("metric.base"),
        words("metric.now"),
        words("metric.change"),
        words("metric.seeds"),
        words("metric.loss"),
        words("metric.p"),
        words("runs.why"),
        words("metric.replay"),
    ]
    rows = [_finding(words, run.suite, word, each) for word, each in found]
    caption = _played_on(words, [each for _, each in found])
    made = table(caption, heads, rows, numbers=range(2, 8), story=heads)
    return [Markup("found", made, wide=True)]


def _played_on(words: Words, found: Sequence[Entry]) -> str:
    """Return the heading: on how many seeds the figures are means, and which seeds these are."""
    counts = [int(each["n"]) for each in found if each["stage"] == FRESH]
    if not counts:
        return words("runs.found_fixed")
    least, most = min(counts), max(counts)
    n = str(most) if least == most else f"{least}-{most}"
    return words("runs.found_fresh" if len(counts) == len(found) else "runs.found_both", n=n)


def _finding(words: Words, suite: str, word: str, each: Entry) -> list[Part]:
    fresh = "runs.fresh" if each["stage"] == FRESH else "runs.fixed"
    adjusted = each["p_holm"]
    return [
        metric_link(suite, str(each["id"])),
        el("span", words.known("word", word), class_=f"tag {WORD_TONES.get(word, '')}".strip()),
        number(each["base"]),
        number(each["cand"]),
        difference(each["delta_rel"], each["delta_abs"]),
        words(fresh, n=each["n"]) if each["n"] else "-",
        interval(each["ci95"]),
        chance(each["p"] if adjusted is None else adjusted),
        words.said(str(each["why"])),
        el("code", str(each["replay"] or "")),
    ]


PAGE = Page("/runs", "runs", view)
ONE = Page("/run", "runs", one, listed=False, live=False, back="/runs")
