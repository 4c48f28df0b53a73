"""What pages are made of: sections, tables, figures, and the dress that they all wear."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from matplotlib.figure import Figure

from agent_gym.reporting.canvas import NARROW, WIDE, inline_svg
from agent_gym.reporting.document import Dress, html_document
from agent_gym.reporting.text import one_line, visible

SCRIPT, STYLE = "page.js", "page.css"
NO_SCRIPT = ".copy, #theme { display: none; }"


def whole_page(title: str, body: str, colour: str) -> str:
    """Return a page in light or dark, with buttons that copy commands."""
    dress = Dress(_asset(SCRIPT), _asset(STYLE), NO_SCRIPT, media=True)
    return html_document(visible(title, 200), body, colour, dress)


def header(facts: str) -> str:
    """Return the line at the top: whose page it is, what of, and a switch for the colours."""
    return (
        f'<header class="top"><p><b>Agent Gym</b> <span class="faint">{escape(facts)}</span></p>'
        '<button type="button" id="theme">Dark</button></header>'
    )


def section(title: str, *parts: str, note: str = "") -> str:
    """Return a part of the page under its heading; nothing if it is empty."""
    if not any(parts):
        return ""
    words = f'<p class="faint small">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{words}{''.join(parts)}</section>"


def plot(name: str, label: str, draw: Callable[[int], Figure | None], caption: str = "") -> str:
    """Return a figure drawn for a screen and for a phone; nothing if there is nothing to draw."""
    wide, narrow = draw(WIDE), draw(NARROW)
    if wide is None or narrow is None:
        return ""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure id="{name}">{inline_svg(wide, f"{name}-w", label, "large")}'
        f"{inline_svg(narrow, f'{name}-n', label, 'narrow')}{words}</figure>"
    )


def tiles(cells: Sequence[tuple[str, str]]) -> str:
    """Return figures in a row, each with what it is."""
    items = "".join(f"<li><b>{escape(value)}</b>{escape(text)}</li>" for value, text in cells)
    return f'<ul class="tiles">{items}</ul>'


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int] = ()) -> str:
    """Return a table of cells that are HTML already; the columns of words flow like text."""
    marks = [' class="text"' if at in words else "" for at in range(len(heads))]
    head = "".join(
        f'<th scope="col"{mark}>{escape(text)}</th>'
        for text, mark in zip(heads, marks, strict=True)
    )
    body = "\n".join(_row(row, marks) for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[str], marks: Sequence[str]) -> str:
    cells = "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row[1:], marks[1:], strict=True))
    return f'<tr><th scope="row">{row[0]}</th>{cells}</tr>'


def pairs(rows: Mapping[str, str]) -> str:
    """Return facts under each other, each with its name."""
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        f'<td class="text">{escape(one_line(value, 1_000))}</td></tr>'
        for name, value in rows.items()
    )
    return f'<div class="wide"><table><tbody>{lines}</tbody></table></div>'


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")
