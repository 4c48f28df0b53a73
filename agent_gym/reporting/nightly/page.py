"""The page of a night: "good or bad" first, then what broke, then everything that was judged."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib.resources import files

from agent_gym.evaluation.page import Own, Page, whole_page
from agent_gym.reporting.nightly.rows import MOST_CARDS, MOST_ROWS, Rows, chip
from agent_gym.reporting.nightly.run import NightlyResult
from agent_gym.reporting.nightly.sections import (
    answer,
    failures,
    measured,
    nights,
    notes,
    origin,
    planted,
    scenarios,
)
from agent_gym.reporting.nightly.verdict import SAME_WORDS, UNJUDGED, headline, word_of
from agent_gym.reporting.text import many, minute, one_line

MOST_CHARTS = 12
SCRIPT, STYLE = "nightly.js", "nightly.css"
NO_SCRIPT = ".detail[hidden] { display: table-row; } .tools { display: none; }"


def html_page(result: NightlyResult) -> str:
    """Return the page; equal results give equal text, and it stays below 2 MB."""
    rows = Rows(result)
    sections = (
        failures(result),
        _broken(rows),
        _notices(result, rows),
        _metrics(rows) if result.diff else measured(result),
        _past(result, rows),
        scenarios(result, rows),
        notes(result),
    )
    run, mark = result.run, "Self-test: " if planted(result) else ""
    page = Page(
        kind="Nightly",
        about=f"{one_line(run.suite_id, 64)} v{run.suite_version}, {minute(run.created_at)} UTC",
        title=f"{mark}{headline(result)} - Agent Gym {minute(run.created_at)}",
        answer=answer(result),
        sections=sections,
        origin=origin(result),
        beside=nights(result),
    )
    own = Own(scripts=(_asset(SCRIPT),), style=_asset(STYLE), no_script=NO_SCRIPT)
    return whole_page(page, own)


def _broken(rows: Rows) -> str:
    if not rows.broken:
        return ""
    left = len(rows.broken) - MOST_CARDS
    more = f'<p class="faint">{left} more are in the table below.</p>' if left > 0 else ""
    return f'<section id="broke"><h2>What broke</h2>\n{rows.cards()}{more}</section>'


def _notices(result: NightlyResult, rows: Rows) -> str:
    found = result.diff.notices if result.diff else ()
    if not found:
        return ""
    lines = []
    for notice in found[:50]:
        anchor = rows.anchors.get(notice.id)
        name = escape(one_line(notice.id, 200))
        linked = f'<a href="#{anchor}">{name}</a>' if anchor else name
        kind = escape(notice.kind.replace("_", " "))
        lines.append(f"<li><b>{kind}</b> {linked}: {escape(one_line(notice.why, 400))}</li>")
    return (
        '<section id="notices"><h2>Worth a look</h2><p class="faint small">These fail nothing.</p>'
        f'<ul class="notices">{"".join(lines)}</ul></section>'
    )


def _metrics(rows: Rows) -> str:
    if not rows.findings:
        return ""
    words = [word_of(finding) for finding in rows.findings[:MOST_ROWS]]
    quiet = (*SAME_WORDS, "underpowered", "quarantined")
    n_changed = sum(word not in quiet for word in words)
    n_unsure = sum(word in (*UNJUDGED, "quarantined") for word in words)
    names = sorted({finding.scenario for finding in rows.findings[:MOST_ROWS]})
    options = "".join(f"<option>{escape(one_line(name, 120))}</option>" for name in names)
    left = len(rows.findings) - MOST_ROWS
    more = f'<p class="faint">{left} more are in nightly_diff.json.</p>' if left > 0 else ""
    views = (
        ("all", "All", len(words)),
        ("changed", "Only changed", n_changed),
        ("unsure", "Not judged", n_unsure),
    )
    buttons = "".join(
        f'<button type="button" data-view="{key}" aria-pressed="{str(key == "all").lower()}">'
        f"{text} <small>{count}</small></button>"
        for key, text, count in views
    )
    return (
        '<section id="all"><h2>All metrics</h2>\n<div class="tools">'
        f'<div class="views" role="group" aria-label="Which metrics">{buttons}</div>'
        '<input type="search" id="search" placeholder="Search a metric" aria-label="Search">'
        '<select id="scenario" aria-label="Scenario"><option value="">All scenarios</option>'
        f'{options}</select><output id="shown" aria-live="polite"></output></div>\n'
        f'{rows.table()}\n<p id="none" class="faint" hidden>No metric fits. '
        '<button type="button" id="reset">Show all</button></p>'
        f'{more}<p class="faint small">A loss is positive where tonight is worse. Dots are seeds, '
        "worse on the left of the line; the shade is what is tolerated, the diamond the mean. "
        "<b>~</b> means that no difference was seen.</p></section>"
    )


def _past(result: NightlyResult, rows: Rows) -> str:
    if not result.past.nights:
        return ""
    stepped = result.past.change_points
    quiet = (*SAME_WORDS, "underpowered", "quarantined")
    first = [f for f in rows.findings if word_of(f) not in quiet or f.id in stepped]
    charts: list[str] = []
    for finding in first:
        drawn = rows.history_of(finding)
        if drawn and len(charts) < MOST_CHARTS:
            name = f"{one_line(finding.scenario, 80)} / {one_line(finding.metric, 80)}"
            charts.append(
                f'<figure><figcaption><a href="#{rows.anchors[finding.id]}">{escape(name)}</a> '
                f"{chip(word_of(finding))}</figcaption>{drawn}</figure>"
            )
    if not charts:
        return ""
    return (
        f'<section id="past"><h2>The last {many(len(result.past.nights) + 1, "night")}</h2>'
        '<p class="faint small">Means on the fixed seeds. Diamonds are where a new level begins, '
        "dashed lines new baselines, the large dot is tonight. Every metric has its line in the "
        f'table above.</p><div class="charts">{"".join(charts)}</div></section>'
    )


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
