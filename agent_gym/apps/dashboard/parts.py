"""Small things that many pages show the same way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_gym.apps.dashboard.markup import Part, Safe, breakable, el, link, text
from agent_gym.apps.dashboard.query import Query, place
from agent_gym.apps.dashboard.view import to_page
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.clock import SECOND_NS

RUN, HISTORY = "/dashboard/run", "/dashboard/scenarios"
MODEL, REPLAY = "/dashboard/models", "/dashboard/replay"
TONES = {"good": "good", "bad": "bad", "unsure": "unsure"}
SIGNS = {"good": "✓", "bad": "✗", "unsure": "?"}
HASH = 64
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
MINUTE, HOUR, DAY = 60, 3_600, 86_400


def light_tag(words: Words, light: str) -> Safe:
    """Return a light as a word in its colour, never as a colour alone."""
    return el(
        "span",
        f"{SIGNS.get(light, '')} {words.known('light', light)}".strip(),
        class_=f"tag {TONES.get(light, '')}".strip(),
    )


def ago(words: Words, seconds: int | None) -> str:
    """Return how long ago something was."""
    if seconds is None:
        return "-"
    for size, key in ((DAY, "ago.days"), (HOUR, "ago.hours"), (MINUTE, "ago.minutes")):
        if seconds >= 2 * size:
            return words(key, n=seconds // size)
    return words("ago.now")


def when(moment: str) -> str:
    """Return an ISO moment as people read it.

    Example:
        >>> when("2026-11-16T01:30:00Z")
        '2026-11-16 01:30'
    """
    return moment[:16].replace("T", " ")


def when_ns(moment_ns: int | None) -> str:
    """Return a moment in nanoseconds as people read it, UTC."""
    if moment_ns is None:
        return "-"
    return datetime.fromtimestamp(moment_ns // SECOND_NS, UTC).strftime("%Y-%m-%d %H:%M")


def stamp(moment_ns: int | None) -> Safe:
    """Return a moment for a table: it stays on one line."""
    return el("time", when_ns(moment_ns))


def run_link(run_id: str, *children: Part, **attributes: str | None) -> Safe:
    """Return a link to a run."""
    return link(place(RUN, [("id", run_id)]), *(children or (run_id,)), **attributes)


def metric_link(suite: str, name: str) -> Safe:
    """Return a link to the history of a metric."""
    return link(place(HISTORY, [("suite", suite), ("metric", name)]), breakable(name))


def model_link(model_hash: str | None, shown: str | None = None) -> Safe:
    """Return a link to a model; a dash where there is none."""
    if not model_hash:
        return text("-")
    if len(model_hash) != HASH:  # a name that no registry knows
        return text(model_hash)
    return link(place(MODEL, [("model", model_hash)]), shown or model_hash[:12])


def replay_link(trajectory_id: str) -> Safe:
    """Return a link to the steps of a trajectory."""
    return link(place(REPLAY, [("id", trajectory_id)]), trajectory_id[:12], class_="mono")


def facts(pairs: Sequence[tuple[str, Part]]) -> Safe:
    """Return names and values, one below the other."""
    return el(
        "dl",
        *(part for name, value in pairs for part in (el("dt", name), el("dd", value))),
        class_="facts",
    )


def table(
    caption: str,
    heads: Sequence[str | Safe],
    rows: Sequence[Sequence[Part]],
    *,
    numbers: Sequence[int] = (),
    sorts: Mapping[int, str] | None = None,
    story: bool | Sequence[str] = False,
) -> Safe:
    """Return a table.

    Args:
        caption: What it shows.
        heads: Of the columns; the first column names the row.
        rows: The cells.
        numbers: Columns that stand right.
        sorts: Columns that the rows can be sorted by, and how they are now (``aria-sort``).
        story: How a telephone shows it. True: the last column holds sentences, which get lines of
            their own. Names of the columns: each row is a card with the named cells one after
            another; an empty name is not shown.
    """
    numeric = set(numbers)
    named = [""] * len(heads) if isinstance(story, bool) else list(story)
    top = [
        el(
            "th",
            head,
            scope="col",
            class_="num" if at in numeric else None,
            aria_sort=(sorts or {}).get(at),
        )
        for at, head in enumerate(heads)
    ]
    body = [
        el(
            "tr",
            *(
                el("th", _row_name(cell), scope="row")
                if at == 0
                else el(
                    "td",
                    cell,
                    class_="num" if at in numeric else None,
                    data_label=named[at] or None,
                )
                for at, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    return el(
        "table",
        el("caption", caption),
        el("thead", el("tr", *top)),
        el("tbody", *body),
        class_=("story" if story is True else "folds") if story else None,
    )


def _row_name(cell: Part) -> Part:
    return breakable(cell) if isinstance(cell, str) and not isinstance(cell, Safe) else cell


def meter(label: str, share: float, *, met: bool, tall: bool = False) -> Safe:
    """Return a bar from 0 to 1, told to those who cannot see it."""
    percent = round(100.0 * min(max(share, 0.0), 1.0))
    return el(
        "div",
        el("i", style=f"width: {percent}%"),
        class_="meter" + (" met" if met else "") + (" tall" if tall else ""),
        role="progressbar",
        aria_label=label,
        aria_valuenow=percent,
        aria_valuemin=0,
        aria_valuemax=100,
    )


def bars_picture(label: str, values: Sequence[float]) -> Safe:
    """Return small bars without axes, drawn by the page itself."""
    most = max(values, default=0.0) or 1.0
    width = 100.0 / max(len(values), 1)
    shapes = [
        el(
            "rect",
            x=f"{at * width:.3f}",
            y=f"{46.0 - 44.0 * value / most:.3f}",
            width=f"{width * 0.8:.3f}",
            height=f"{44.0 * value / most:.3f}",
        )
        for at, value in enumerate(values)
    ]
    return _picture(label, *shapes)


def line_picture(label: str, values: Sequence[float]) -> Safe:
    """Return a small line without axes, drawn by the page itself."""
    low, high = min(values), max(values)
    size, width = (high - low) or 1.0, 100.0 / max(len(values) - 1, 1)
    points = [
        f"{at * width:.2f},{44.0 - 42.0 * (value - low) / size:.2f}"
        for at, value in enumerate(values)
    ]
    return _picture(label, el("polyline", points=" ".join(points)))


def _picture(label: str, *shapes: Safe) -> Safe:
    return el(
        "svg",
        *shapes,
        class_="spark",
        viewBox="0 0 100 46",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def colour(said: object) -> str:
    """Return a colour that a file names; anything else could be another style, and is grey."""
    return said if isinstance(said, str) and _COLOUR.fullmatch(said) else "#8a8a8a"


def folded(title: str, body: Part) -> Safe:
    """Return something long that is shown when its title is pressed."""
    return el("details", el("summary", title), body, class_="card")


def filters(words: Words, query: Query, *fields: Part, clear: bool = False) -> Safe:
    """Return a form that puts what was chosen into the address.

    Args:
        words: The language.
        query: Where the form leads to.
        fields: What can be chosen.
        clear: Whether there is a way back to everything.
    """
    back = link(query.path, words("filter.clear"), class_="button") if clear else None
    return el(
        "form",
        *fields,
        el("button", words("filter.go"), type="submit", class_="main"),
        back,
        method="get",
        action=query.path,
        class_="filters card",
        role="search",
        aria_label=words("filter.label"),
    )


def pager(words: Words, query: Query, total: int, size: int) -> Safe:
    """Return where we are in a long list, and the ways on and back."""
    number = query.whole("page", 1, 1)
    last = max(1, -(-total // size))
    number = min(number, last)
    first = (number - 1) * size
    said = words(
        "pager.rows",
        first=first + 1 if total else 0,
        last=min(first + size, total),
        total=words.count(total),
    )
    ways = [
        to_page(query, 1, "|◀", on=number > 1, name=words("pager.first")),
        to_page(query, number - 1, "◀", on=number > 1, name=words("pager.back")),
        el("span", words("pager.page", n=number, last=last)),
        to_page(query, number + 1, "▶", on=number < last, name=words("pager.next")),
        to_page(query, last, "▶|", on=number < last, name=words("pager.last")),
    ]
    parts = [text(each, " ") for each in ways]
    return el(
        "div",
        el("span", said, class_="faint", role="status"),
        el("nav", *parts, aria_label=words("pager.label")) if last > 1 else None,
        class_="pager",
    )


def option(value: str, label: str, chosen: str) -> Safe:
    """Return one choice of a list."""
    return el("option", label, value=value, selected=value == chosen)


def choose(label: str, name: str, choices: Sequence[tuple[str, str]], chosen: str) -> Safe:
    """Return a list to choose from, with its name; a choice sends the form."""
    options = [option(value, shown, chosen) for value, shown in choices]
    return el(
        "label", label, el("select", *options, name=name, id=f"choose-{name}", data_submits=True)
    )
