"""Small pieces of HTML; whatever comes from outside is escaped here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from agent_gym.evaluation.figures import UNDEFINED, Figure
from agent_gym.evaluation.tearsheet.sheet import Band
from agent_gym.markets.quality import format_time


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def section(title: str, *parts: str, note: str = "") -> str:
    """Return a part of the page under its heading."""
    words = paragraph(note, "faint small") if note else ""
    return "\n".join(
        (f"<section>\n<h2>{escape(title)}</h2>", *filter(None, (words, *parts)), "</section>")
    )


def chart(name: str, label: str, *, keys: bool = False, rows: int | None = None) -> str:
    """Return the place of a chart; ``rows`` sets its height, ``keys`` makes it steerable."""
    tall = f' style="height:{rows * 2.1 + 3.0:.1f}rem"' if rows is not None else ""
    steer = ' tabindex="0"' if keys else ""
    said = label + (". Arrow keys move, plus and minus zoom, 0 shows all." if keys else "")
    return (
        f'<div class="chart" id="{name}" role="img" aria-label="{escape(said)}"{steer}{tall}></div>'
    )


def tip(figure: Figure, text: str) -> str:
    """Return a name that explains itself on hover, focus or touch."""
    unit = f" Unit: {figure.unit}." if figure.unit else ""
    words = escape((figure.formula or figure.label) + unit)
    return (
        f'<button type="button" class="tip" data-tip="{words}" aria-description="{words}">'
        f"{escape(text)}</button>"
    )


def grid(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    own: int | None = None,
    raw: bool = False,
) -> str:
    """Return a table; the first cell names its row, column ``own`` is the subject's.

    Args:
        heads: Headings as text.
        rows: Cells as text.
        own: Column to set off.
        raw: The first cell of each row is HTML already.
    """
    head = "".join(
        f'<th scope="col"{_class("own" if at == own else "")}>{escape(cell)}</th>'
        for at, cell in enumerate(heads)
    )
    body = "\n".join(_row(row, own, raw=raw) for row in rows)
    return (
        f'<div class="wide"><table>\n<thead class="heads"><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def pairs(rows: Mapping[str, str]) -> str:
    """Return names and long texts as a table."""
    cells = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td class="text">{escape(value)}</td></tr>'
        for name, value in rows.items()
    )
    return f'<div class="wide"><table>\n{cells}\n</table></div>'


def band_text(figure: Figure, band: Band) -> str:
    """Return an interval in the figure's unit."""
    ends = f"{figure.format(band.low)} to {figure.format(band.high)}"
    return f"{100.0 * band.level:g} %: {ends}"


def day(ts_ns: int | None) -> str:
    """Return a time to the minute, a dash where there is none."""
    return UNDEFINED if ts_ns is None else format_time(ts_ns)[:16].replace("T", " ")


def embedded(value: Any) -> str:
    r"""Return JSON that no text in it can break out of a script element with.

    Example:
        >>> print(embedded({"name": "</script>"}))
        {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _row(cells: Sequence[str], own: int | None, *, raw: bool) -> str:
    first, *rest = cells
    named = first if raw else escape(first)
    marked = "".join(
        f"<td{_class('own' if at == own else '')}>{escape(cell)}</td>"
        for at, cell in enumerate(rest, start=1)
    )
    return f'<tr><th scope="row">{named}</th>{marked}</tr>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
