"""Pieces of HTML that only the tear sheet has; what comes from outside is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from agent_gym.evaluation.figures import UNDEFINED, Figure
from agent_gym.evaluation.page import table
from agent_gym.evaluation.tearsheet.sheet import Band
from agent_gym.markets.quality import format_time


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
    cells = [
        [first if raw else escape(first), *map(escape, rest)] for first, *rest in map(list, rows)
    ]
    return table(heads, cells, own=own)


def band_text(figure: Figure, band: Band) -> str:
    """Return an interval in the figure's unit."""
    ends = f"{figure.format(band.low)} to {figure.format(band.high)}"
    return f"{100.0 * band.level:g} %: {ends}"


def day(ts_ns: int | None) -> str:
    """Return a time to the minute, a dash where there is none."""
    return UNDEFINED if ts_ns is None else format_time(ts_ns)[:16].replace("T", " ")
