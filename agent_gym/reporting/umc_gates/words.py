"""Numbers, intervals and tables as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_gym.reporting.text import one_line


def figure(value: float | None) -> str:
    """Return a number with as many digits as are worth reading.

    Example:
        >>> figure(2.34567), figure(0.000012), figure(20.0), figure(None)
        ('2.35', '1.2e-05', '20', '-')
    """
    if value is None:
        return "-"
    if value != 0.0 and abs(value) < 1e-3:
        return f"{value:.2g}"
    return f"{value:.3g}" if abs(value) < 1e3 else f"{value:,.0f}"


def ends(found: Mapping[str, Any]) -> str:
    """Return both ends of an interval."""
    if found["low"] is None or found["high"] is None:
        return "-"
    return f"{figure(found['low'])} to {figure(found['high'])}"


def sentence(text: str) -> str:
    """Return words on one line that a table or a list can hold."""
    return one_line(text, 600).replace("|", "\\|")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in line)} |" for line in lines)
