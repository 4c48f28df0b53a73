"""The pictures: win rates over steps, seeds that got there, differences, figures and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from agent_gym.evaluation.marl.ablation import METRICS, STEPS
from agent_gym.evaluation.statistics import kaplan_meier
from agent_gym.reporting.canvas import (
    DASHES,
    FAINT,
    INK,
    PALETTE,
    WIDE,
    new_figure,
    plain,
    round_numbers,
    short_name,
    step_axis,
    svg_of,
    title,
    title_and_names,
)
from agent_gym.reporting.marl.words import OVER_TIME, SHORT

HALF = WIDE // 2
TIMED = "0.8"
SEEN = 0.02  # a share of wins that can be told from the bottom of a frame
COLUMNS, STRETCHES = 3, 25
GOOD, BAD, SHOWN = PALETTE[0], PALETTE[1], FAINT


def comparison_svg(document: Mapping[str, Any]) -> str:
    """Return win rates over steps, and the share of seeds that got to 80 %, one row a task.

    What would be an empty frame is not drawn; ``undrawn`` says which those are.
    """
    tasks = {name: task for name, task in document["tasks"].items() if _wins(task)}
    missing = undrawn(document)
    rows = max(1, len(tasks))
    height = 320 * len(tasks) + 24 * len(missing) + 16 * (not tasks)
    drawn, panels = new_figure(WIDE, height, columns=2, rows=rows)
    names = dict.fromkeys(arm for task in document["tasks"].values() for arm in task["arms"])
    looks = {
        arm: {"color": PALETTE[at % len(PALETTE)], "ls": DASHES[at % len(DASHES)], "lw": 2.0}
        for at, arm in enumerate(names)
    }
    for row, (name, task) in enumerate(tasks.items()):
        left, right = panels[2 * row : 2 * row + 2]
        arrived = _arrived(task)
        if arrived:
            _arrivals(right, name, task, looks)
        else:
            right.remove()
            left.set_subplotspec(left.get_gridspec()[row, :])
        _curves(left, name, task, looks, HALF if arrived else WIDE)
    for panel in () if tasks else panels:
        panel.remove()
    if missing:
        drawn.supxlabel(plain("\n".join(missing)), x=0.01, ha="left", fontsize=11, color=FAINT)
    return _text(drawn)


def undrawn(document: Mapping[str, Any]) -> list[str]:
    """Say which frames of a comparison are left out because nothing would be in them.

    Example:
        >>> nobody = {"curve": {"middle": [0.0], "high": None}, "steps_to": {"0.8": {"reached": 0}}}
        >>> undrawn({"tasks": {"3s_vs_5z": {"arms": {"mappo": nobody}}}})
        ['3s_vs_5z is not drawn: hardly a battle was won (mappo).']
    """
    said = []
    for name, task in document["tasks"].items():
        arms = ", ".join(task["arms"])
        if not _wins(task):
            said.append(f"{name} is not drawn: hardly a battle was won ({arms}).")
        elif not _arrived(task):
            said.append(f"{name}: no seed has shown 80 % ({arms}), so times are not drawn.")
    return said


def _wins(task: Mapping[str, Any]) -> bool:
    """Say whether win rates leave the bottom of a frame."""
    curves = [own["curve"] for own in task["arms"].values()]
    return any(max(curve["high"] or curve["middle"]) >= SEEN for curve in curves)


def _arrived(task: Mapping[str, Any]) -> bool:
    """Say whether a seed got there."""
    return any(own["steps_to"][TIMED]["reached"] for own in task["arms"].values())


def _curves(
    panel: Axes, name: str, task: Mapping[str, Any], looks: Mapping[str, Any], width: int
) -> None:
    for arm, own in task["arms"].items():
        curve, colour = own["curve"], looks[arm]["color"]
        steps = [0.0, *curve["env_steps"]]
        panel.plot(steps, _percents(curve["middle"]), label=short_name(arm), **looks[arm])
        if curve["low"] is not None:
            ends = _percents(curve["low"]), _percents(curve["high"])
            panel.fill_between(steps, *ends, color=colour, alpha=0.15, lw=0)
    _axes(panel, task["until"], width)
    title_and_names(panel, f"{name}: greedy wins, IQM and 95 % band", width)


def _arrivals(panel: Axes, name: str, task: Mapping[str, Any], looks: Mapping[str, Any]) -> None:
    for arm, own in task["arms"].items():
        found = own["steps_to"][TIMED]
        law = kaplan_meier(found["times"], found["seen"])
        steps = np.concatenate(([0.0], law.times, [float(task["until"])]))
        heights = [100.0 * (1.0 - law.at(step)) for step in steps]
        panel.step(steps, heights, where="post", label=short_name(arm), **looks[arm])
    _axes(panel, task["until"], HALF)
    title_and_names(panel, f"{name}: seeds that have shown 80 %", HALF)


def _axes(panel: Axes, until: int, width: int) -> None:
    panel.set_xlim(0.0, 1.01 * until)
    panel.set_ylim(-3.0, 103.0)
    step_axis(panel, width)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
    panel.set_xlabel("Environment steps, all counted", fontsize=11, color=FAINT)


def _percents(shares: Sequence[float]) -> list[float]:
    return [0.0, *(100.0 * share for share in shares)]


def ablation_svg(document: Mapping[str, Any]) -> str:
    """Return every difference with its interval: one row a task, one panel a figure."""
    found = document["comparisons"]
    tasks = list(dict.fromkeys(one["task"] for one in found))
    arms = list(dict.fromkeys(one["arm"] for one in found))
    drawn, panels = new_figure(
        WIDE, (110 + 26 * len(arms)) * len(tasks), columns=len(METRICS), rows=len(tasks)
    )
    places = ((task, metric) for task in tasks for metric in METRICS)
    for panel, (task, metric) in zip(panels, places, strict=True):
        own = [one for one in found if (one["task"], one["metric"]) == (task, metric)]
        scale = 1.0 if metric == STEPS else 100.0
        for one in own:
            ends = (scale * one["estimate"], scale * one["low"], scale * one["high"])
            _bar(panel, arms.index(one["arm"]), ends, GOOD if one["shown"] else SHOWN)
        panel.axvline(0.0, color=INK, lw=0.8)
        _names(panel, arms if metric == next(iter(METRICS)) else [""] * len(arms))
        unit = "log" if metric == STEPS else "points"
        title(panel, f"{task}: {SHORT[metric]}, {unit}")
        panel.xaxis.set_major_locator(round_numbers(4))
    return _text(drawn)


def diagnosis_svg(document: Mapping[str, Any]) -> str:
    """Return figures over the steps, then each beside its bounds, on a scale of its own.

    A faint line or dot is a seed.
    """
    found = {name: one for name, one in document["figures"].items() if one["value"] is not None}
    curves, rows = -(-len(OVER_TIME) // COLUMNS), -(-len(found) // COLUMNS)
    tall = [2.0] * curves + [1.0] * rows
    drawn, panels = new_figure(WIDE, int(86 * sum(tall)), COLUMNS, len(tall), tall)
    for panel, name in zip(panels, OVER_TIME, strict=False):
        _over_steps(panel, name, document["reports"])
    for panel in panels[curves * COLUMNS + len(found) :]:
        panel.set_axis_off()
    for panel, (name, one) in zip(panels[curves * COLUMNS :], found.items(), strict=False):
        low, high = one["interval"] or (None, None)
        seeds = [value for value in one["by_seed"] if value is not None]
        panel.plot(seeds, [0.0] * len(seeds), "o", ms=4.0, color=FAINT, alpha=0.4)
        _bar(panel, 0, (one["value"], low, high), GOOD if one["passed"] else BAD)
        for bound in (one["low"], one["high"]):
            if bound is not None:
                panel.plot([bound] * 2, [-0.5, 0.5], color=INK, lw=1.8)
        panel.set_yticks([])
        panel.set_ylim(0.8, -0.8)
        panel.margins(x=0.12)
        panel.xaxis.set_major_locator(round_numbers(4))
        title(panel, f"{name.replace('_', ' ')}: {one['bound']}", above=3.0)
    return _text(drawn)


def _over_steps(panel: Axes, name: str, reports: Sequence[Mapping[str, Any]]) -> None:
    """Draw what is told of every iteration, as means over stretches of the training."""
    edges = np.linspace(0.0, max(report["env_steps"] for report in reports), STRETCHES + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    lines = []
    for report in reports:
        told = [row for row in report["iterations"] if row[name] is not None]
        steps, values = ([row[key] for row in told] for key in ("env_steps", name))
        weights = [np.histogram(steps, edges, weights=each)[0] for each in (values, None)]
        with np.errstate(invalid="ignore"):
            lines.append(weights[0] / weights[1])
        panel.plot(middles, lines[-1], color=FAINT, lw=0.8, alpha=0.5)
    known = np.ma.masked_invalid(np.array(lines))
    panel.plot(middles, known.mean(axis=0).filled(np.nan), color=GOOD, lw=2.0)
    panel.set_xlim(0.0, edges[-1])
    step_axis(panel, WIDE // COLUMNS)
    panel.yaxis.set_major_locator(round_numbers(4))
    title(panel, OVER_TIME[name], above=3.0)


def _bar(
    panel: Axes, place: int, ends: tuple[float, float | None, float | None], colour: str
) -> None:
    value, low, high = ends
    if low is not None and high is not None:
        panel.plot([low, high], [place, place], color=colour, lw=2.0)
    panel.plot([value], [place], color=colour, marker="o", ms=5.0)


def _names(panel: Axes, names: Sequence[str]) -> None:
    panel.set_yticks(range(len(names)), [short_name(name) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)


def _text(drawn: Figure) -> str:
    lines = svg_of(drawn).decode().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"
