"""What pages are made of: paragraphs, sections, tables, tiles, labels and commands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Literal, TypeAlias

from agent_gym.evaluation.page.text import one_line, visible

Light: TypeAlias = Literal["good", "hint", "unsure", "bad", "same"]
# No answer is told by its colour alone.
SIGNS: dict[Light, str] = {
    "good": "\N{CHECK MARK}",
    "hint": "+",
    "unsure": "!",
    "bad": "\N{BALLOT X}",
    "same": "\N{TILDE}",
}


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph of plain text."""
    marked = f' class="{kind}"' if kind else ""
    return f"<p{marked}>{escape(visible(text))}</p>"


def section(title: str, *parts: str, note: str = "", name: str = "") -> str:
    """Return a part of the page under its heading; nothing if it is empty.

    Args:
        title: The heading.
        parts: HTML.
        note: A sentence under the heading.
        name: What links to it call it.
    """
    if not any(parts):
        return ""
    words = paragraph(note, "faint small") if note else ""
    marked = f' id="{name}"' if name else ""
    return (
        f"<section{marked}><h2>{escape(title)}</h2>{words}"
        f"{chr(10).join(filter(None, parts))}</section>"
    )


def tiles(cells: Sequence[tuple[str, str]]) -> str:
    """Return figures in a row, each with what it is."""
    items = "".join(f"<li><b>{escape(value)}</b>{escape(text)}</li>" for value, text in cells)
    return f'<ul class="tiles">{items}</ul>' if items else ""


def chip(light: Light, text: str) -> str:
    """Return a word as a coloured label with its sign."""
    sign = f'<i aria-hidden="true">{SIGNS[light]}</i>'
    return f'<span class="chip {light}">{sign}{escape(text)}</span>'


def command(text: str) -> str:
    """Return a command with a button that copies it."""
    return (
        f'<span class="command"><code>{escape(text)}</code>'
        '<button type="button" class="copy" aria-label="Copy the command">Copy</button></span>'
    )


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Collection[int] = (),
    own: int | None = None,
) -> str:
    """Return a table of cells that are HTML already; the first cell of a row names it.

    Args:
        heads: Headings as text.
        rows: Cells as HTML.
        words: Columns that flow like text.
        own: The column of the subject, set off from the others.
    """
    kinds = ["text" if at in words else "own" if at == own else "" for at in range(len(heads))]
    marks = [f' class="{kind}"' if kind else "" for kind in kinds]
    head = "".join(
        f'<th scope="col"{mark}>{escape(text)}</th>'
        for text, mark in zip(heads, marks, strict=True)
    )
    body = "\n".join(_row(row, marks) for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[str], marks: Sequence[str]) -> str:
    cells = "".join(f"<td{mark}>{cell}</td>" for cell, mark in zip(row[1:], marks[1:], strict=True))
    return f'<tr><th scope="row">{row[0]}</th>{cells}</tr>'


def pairs(rows: Mapping[str, str]) -> str:
    """Return facts under each other, each with its name."""
    lines = "\n".join(
        f'<tr><th scope="row">{escape(one_line(name, 200))}</th>'
        f'<td class="text">{escape(one_line(value, 1_000))}</td></tr>'
        for name, value in rows.items()
    )
    return f'<div class="wide"><table class="pairs"><tbody>{lines}</tbody></table></div>'
