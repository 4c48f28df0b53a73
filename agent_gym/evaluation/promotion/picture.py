"""The promotion study as a picture: false promotions, power, and the watch over a rollout."""

from __future__ import annotations

from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from agent_gym.evaluation.gate.power_picture import GRID, INK, STYLES

LINES = (("20", "#0072B2", "o"), ("30", "#E69F00", "s"), ("40", "#009E73", "^"))


def promotion_svg(document: dict[str, Any]) -> str:
    """Return the picture of a study as SVG text, the same for the same study."""
    drawn = StringIO()
    with mpl.rc_context({"svg.hashsalt": "agent-gym", "svg.fonttype": "path"}):
        draw(document).savefig(drawn, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n"


def draw(document: dict[str, Any]) -> Figure:
    """Return three panels; marks differ as well as colours."""
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    false, power, watch = figure.subplots(1, 3)
    _false(false, document)
    _power(power, document)
    _watch(watch, document)
    for panel in (false, power, watch):
        panel.grid(color=GRID, linewidth=0.7)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    return figure


def _false(panel: Axes, document: dict[str, Any]) -> None:
    rows = [
        (label, document["false_promotion"][name], colour, mark)
        for name, label, colour, mark in STYLES
    ]
    for place, (_, found, colour, mark) in enumerate(rows):
        _bar(panel, place, found["first_candidate"], colour, mark)
        _bar(panel, place, found["sign_flip_alone_at_5_percent"], "#999999", "x")
    panel.axvline(5.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    panel.set_yticks(range(len(rows)), [label for label, *_ in rows])
    panel.invert_yaxis()
    panel.set_xlim(left=0.0)
    panel.set_xlabel("promoted without being better, %\n(x: sign flip alone at 5 %)")
    panel.set_title("False promotion, 20 pairs", loc="left", color=INK)


def _bar(panel: Axes, place: int, found: dict[str, Any], colour: str, mark: str) -> None:
    centre = 100.0 * found["share"]
    reach = [[centre - 100.0 * found["low"]], [100.0 * found["high"] - centre]]
    panel.errorbar([centre], [place], xerr=reach, color=colour, marker=mark, markersize=5.0)


def _power(panel: Axes, document: dict[str, Any]) -> None:
    for pairs, colour, mark in LINES:
        points = document["power"]["curve"][pairs]
        found = [point["first_candidate"] for point in points]
        centre = [100.0 * one["share"] for one in found]
        below = [100.0 * (one["share"] - one["low"]) for one in found]
        above = [100.0 * (one["high"] - one["share"]) for one in found]
        panel.errorbar(
            [point["effect"] for point in points],
            centre,
            yerr=[below, above],
            color=colour,
            marker=mark,
            markersize=4.5,
            linewidth=1.4,
            elinewidth=0.8,
            label=f"{pairs} pairs",
        )
    target = 100.0 * document["target"]["power"]["at_least"]
    panel.axhline(target, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    panel.set_ylim(0.0, 103.0)
    panel.set_xlabel("true gain, sd of a difference")
    panel.set_ylabel("promoted, %")
    panel.set_title("Power, first candidate", loc="left", color=INK)
    panel.legend(frameon=False, loc="lower right")


def _watch(panel: Axes, document: dict[str, Any]) -> None:
    shapes = document["rollback"]["shapes"]
    for name, label, colour, mark in STYLES:
        panel.errorbar(
            [shapes[name]["harm"]["-0.6"]["median_episodes"]],
            [100.0 * shapes[name]["false_rollback"]["share"]],
            yerr=_reach(shapes[name]["false_rollback"]),
            color=colour,
            marker=mark,
            linestyle="none",
            label=label,
        )
    limit = document["target"]
    panel.axhline(100.0 * limit["false_rollback"]["at_most"], color=INK, linewidth=0.8, ls=":")
    panel.axvline(limit["harm"]["median_episodes"], color=INK, linewidth=0.8, ls=":")
    panel.set_ylim(bottom=0.0)
    panel.set_xlim(0.0, 1.25 * limit["harm"]["median_episodes"])
    panel.set_xlabel("median episodes to find a loss of 0.6 sd")
    panel.set_ylabel(f"false rollbacks in {document['rollback']['looks']} looks, %")
    panel.set_title("The watch over a rollout", loc="left", color=INK)
    panel.legend(frameon=False, loc="upper left", fontsize=8)


def _reach(found: dict[str, Any]) -> list[list[float]]:
    return [[100.0 * (found["share"] - found["low"])], [100.0 * (found["high"] - found["share"])]]
