"""The power study as a picture: how surely a loss of each size is found."""

from __future__ import annotations

from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

# Okabe and Ito's colours; each shape has its own mark too, so that no one depends on colour.
STYLES = (
    ("normal", "normal", "#0072B2", "o"),
    ("t3", "heavy tails (t3)", "#E69F00", "s"),
    ("zeros80", "80 % zeros", "#009E73", "^"),
    ("left_skew", "left skew", "#CC79A7", "v"),
    ("right_skew", "right skew", "#D55E00", "D"),
)
INK, GRID = "#222222", "#e4e4e4"


def power_svg(document: dict[str, Any]) -> str:
    """Return the picture of a study as SVG text, the same for the same study."""
    return _svg(draw(document))


def draw(document: dict[str, Any]) -> Figure:
    """Return power against effect size, one line a shape."""
    figure = Figure(figsize=(8.0, 4.6), layout="constrained")
    panel = figure.add_subplot()
    for name, label, colour, mark in STYLES:
        points = document["curve"][name]
        losses = [100.0 * point["loss"] for point in points]
        power = [100.0 * point["power"] for point in points]
        below = [100.0 * (point["power"] - point["interval95"][0]) for point in points]
        above = [100.0 * (point["interval95"][1] - point["power"]) for point in points]
        panel.errorbar(
            losses,
            power,
            yerr=[below, above],
            color=colour,
            marker=mark,
            markersize=4.5,
            linewidth=1.4,
            elinewidth=0.8,
            label=label,
        )
    target = 100.0 * document["target"]["power"]
    panel.axhline(target, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    panel.annotate(f"target {target:g} %", (1.0, target - 4.5), color=INK, fontsize=9)
    panel.axvline(100.0 * document["tolerance"], color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    panel.annotate("tolerance", (100.0 * document["tolerance"] - 0.1, 60), rotation=90, ha="right")
    panel.set_xlabel(f"true loss of one metric of {document['metrics']}, % of the baseline")
    panel.set_ylabel("suites in which it is called a regression, %")
    noise = 100.0 * document["noise"]
    panel.set_title(f"Power of the gate at a noise of {noise:g} %", loc="left", color=INK)
    panel.set_ylim(-2.0, 103.0)
    panel.grid(color=GRID, linewidth=0.7)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, loc="lower right")
    return figure


def _svg(figure: Figure) -> str:
    """Draw without a date or random ids, so that equal figures are equal files."""
    drawn = StringIO()
    with mpl.rc_context({"svg.hashsalt": "agent-gym", "svg.fonttype": "path"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n"
