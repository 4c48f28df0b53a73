"""The pictures: every share, null and loss beside its bound; every difference with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agent_gym.reporting.canvas import FAINT, INK, PALETTE, WIDE, new_figure, svg_of, title

GOOD, BAD, SHOWN = PALETTE[0], PALETTE[1], FAINT
PANELS = (
    ("share of the attainable", "C", ".share"),
    ("what timing earns on nulls, bp a bar", "A", ".timing"),
    ("net on nulls, bp a bar", "B", ".net"),
    ("loss after the break, days of edge", "D", ""),
)


def gates_svg(document: Mapping[str, Any]) -> str:
    """Return the figures that have an interval, beside their bounds."""
    drawn, panels = new_figure(WIDE, 420, columns=2, rows=2)
    for panel, (text, letter, end) in zip(panels, PANELS, strict=True):
        rows = {
            name: found
            for name, found in document["gates"].items()
            if name[0] == letter and name.endswith(end) and found["value"] is not None
        }
        _forest(panel, rows)
        title(panel, text)
    return _text(drawn)


def _forest(panel: Axes, rows: Mapping[str, Mapping[str, Any]]) -> None:
    for place, found in enumerate(rows.values()):
        colour = {True: GOOD, False: BAD, None: SHOWN}[found["passed"]]
        _bar(panel, place, (found["value"], found["low"], found["high"]), colour)
        if found["bound"] is not None:
            panel.plot([found["bound"]] * 2, [place - 0.35, place + 0.35], color=INK, lw=1.6)
    _names(panel, list(rows))


def ablation_svg(document: Mapping[str, Any]) -> str:
    """Return the differences in net, one panel a market."""
    found = [one for one in document["comparisons"] if one["metric"] == "net_bp"]
    markets = list(dict.fromkeys(one["market"] for one in found)) or [""]
    height = 130 + 26 * max([1, *(sum(one["market"] == m for one in found) for m in markets)])
    rows = -(-len(markets) // 2)
    drawn, panels = new_figure(WIDE, height * rows, columns=min(2, len(markets)), rows=rows)
    for panel in panels[len(markets) :]:
        panel.set_axis_off()
    for panel, market in zip(panels, markets, strict=False):
        own = [one for one in found if one["market"] == market]
        for place, one in enumerate(own):
            colour = SHOWN if one["low"] <= 0.0 <= one["high"] else GOOD
            _bar(panel, place, (one["estimate"], one["low"], one["high"]), colour)
        panel.axvline(0.0, color=INK, lw=0.8)
        _names(panel, [one["arm"] for one in own])
        title(panel, f"{market}: difference in net, bp a bar")
    return _text(drawn)


def _bar(
    panel: Axes, place: int, ends: tuple[float, float | None, float | None], colour: str
) -> None:
    value, low, high = ends
    if low is not None and high is not None:
        panel.plot([low, high], [place, place], color=colour, lw=2.0)
    panel.plot([value], [place], color=colour, marker="o", ms=5.0)


def _names(panel: Axes, names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.4, -0.6)


def _text(drawn: Figure) -> str:
    lines = svg_of(drawn).decode().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"
