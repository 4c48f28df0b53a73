"""What training looks like: curves with bands, final episodes, losses, who is better, and when.

Every function returns a figure of a given width in pixels; ``canvas`` makes bytes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from agent_gym.core.types import FloatArray
from agent_gym.reporting.canvas import (
    FAINT,
    INK,
    PALETTE,
    WIDE,
    looks,
    new_figure,
    plain,
    round_numbers,
    short_name,
    step_axis,
    title,
    title_and_names,
)
from agent_gym.reporting.rl.curves import (
    Curve,
    binned,
    final_rewards,
    learning_curve,
)
from agent_gym.reporting.rl.runs import Arm

MARK_DASHES: tuple[Any, ...] = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1, 2)))
MOST_SEED_LINES, MOST_PANELS, MOST_BARS = 20, 9, 44


class Mark(NamedTuple):
    """A level to compare with, such as a published figure."""

    value: float
    name: str


def learning_curves(
    arms: Sequence[Arm], *, width: int = WIDE, marks: Sequence[Mark] = ()
) -> Figure:
    """Return the greedy return against steps: interquartile mean and 95 % band over seeds."""
    figure, (panel,) = new_figure(width, 400 if width >= WIDE else 310)
    curves = [learning_curve(arm) for arm in arms]
    for arm, curve, (colour, dashes) in zip(arms, curves, looks(len(arms)), strict=True):
        if len(arms) == 1:
            _seed_lines(panel, arm, colour)
        _line(panel, curve, colour, dashes, short_name(arm.name))
    mark_lines(panel, marks)
    panel.set_xlim(left=0.0)
    step_axis(panel, width)
    panel.set_xlabel("Steps of training", fontsize=11, color=FAINT)
    _cut_low(panel, curves)
    title_and_names(panel, "Return of greedy episodes", width)
    return figure


def final_distribution(arm: Arm, *, width: int = WIDE, marks: Sequence[Mark] = ()) -> Figure:
    """Return the histogram of the final episodes of all seeds."""
    rewards = final_rewards(arm)
    figure, (panel,) = new_figure(width, 270 if width >= WIDE else 240)
    if rewards.size:
        panel.hist(rewards, bins=_edges(rewards), color=PALETTE[0], alpha=0.75, lw=0)
        _median(panel, float(np.median(rewards)))
    mark_lines(panel, marks, vertical=True)
    panel.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    panel.set_xlabel("Return of an episode", fontsize=11, color=FAINT)
    title_and_names(panel, f"{rewards.size:,} final episodes", width)
    return figure


def losses(arms: Sequence[Arm], *, width: int = WIDE) -> Figure | None:
    """Return what the algorithm says of itself, a panel a column; None if nothing is known."""
    columns = _metric_columns(arms)
    found = [("training_episodes", name, text) for name, text in _TRAINING.items()]
    found += [("metrics", name, name) for name in columns]
    curves = [(text, [binned(arm, table, name) for arm in arms]) for table, name, text in found]
    shown = [(text, each) for text, each in curves if any(curve is not None for curve in each)]
    shown = shown[:MOST_PANELS]
    if not shown:
        return None
    across = (3 if len(shown) > 2 else len(shown)) if width >= WIDE else 1
    down = -(-len(shown) // across)
    figure, panels = new_figure(width, down * 190 + 10, across, down)
    for panel, (text, each) in zip(panels, shown, strict=False):
        for curve, (colour, dashes) in zip(each, looks(len(arms)), strict=True):
            if curve is not None:
                _line(panel, curve, colour, dashes, "", lw=1.6)
        title(panel, _words(text), above=5.0)
        step_axis(panel, width // across)
        panel.yaxis.set_major_locator(round_numbers(4))
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    return figure


_TRAINING = {"reward": "Return while training", "length": "Episode length while training"}
_FIRST = ("loss", "entropy", "kl", "clip_fraction", "explained", "ent_coef", "std")
_IDLE = ("step", "iteration", "time", "wall", "cpu", "fps", "n_updates", "seed", "episodes")


def _metric_columns(arms: Sequence[Arm]) -> list[str]:
    """Return the columns worth a panel, losses first."""
    names = {name for arm in arms for run in arm.runs for name in run.metrics.columns}
    useful = [name for name in sorted(names) if not any(word in name.lower() for word in _IDLE)]

    def place(name: str) -> int:
        found = [at for at, word in enumerate(_FIRST) if word in name.lower()]
        return min(found, default=len(_FIRST))

    return sorted(useful, key=lambda name: (place(name), name))


def _words(name: str) -> str:
    text = name.rpartition("/")[2].replace("_", " ")
    return text[:1].upper() + text[1:]


def _line(
    panel: Axes, curve: Curve, colour: str, dashes: object, name: str, lw: float = 2.4
) -> None:
    if not curve.steps.size:
        return
    panel.fill_between(curve.steps, curve.low, curve.high, color=colour, alpha=0.18, lw=0)
    shown: dict[str, Any] = {"ls": dashes, "lw": lw, "color": colour}
    panel.plot(curve.steps, curve.middle, label=name or None, **shown)
    if curve.steps.size == 1:
        panel.plot(curve.steps, curve.middle, "o", ms=5, color=colour)


def _seed_lines(panel: Axes, arm: Arm, colour: str) -> None:
    for run in arm.runs[:MOST_SEED_LINES]:
        steps, means = run.curve
        panel.plot(steps, means, color=colour, lw=0.8, alpha=0.4)


def mark_lines(panel: Axes, marks: Sequence[Mark], *, vertical: bool = False) -> None:
    """Draw levels to compare with."""
    for mark, dashes in zip(marks, MARK_DASHES, strict=False):
        draw = panel.axvline if vertical else panel.axhline
        draw(mark.value, color=FAINT, lw=1.4, ls=dashes, label=plain(mark.name))


def _cut_low(panel: Axes, curves: Sequence[Curve]) -> None:
    """Leave out the depths that single seeds fall into; middle and band are shown whole."""
    shown = [each for curve in curves for each in (curve.middle, curve.low, curve.high)]
    known = np.concatenate([each[np.isfinite(each)] for each in shown])
    if known.size < 4:
        return
    floor, top = float(known.min()), float(known.max())
    bottom, high = panel.get_ylim()
    room = 0.12 * (top - floor)
    if bottom < floor - room:
        panel.set_ylim(floor - room, high)


def _edges(values: FloatArray) -> FloatArray:
    low, high = float(values.min()), float(values.max())
    bins = int(np.clip(np.sqrt(values.size) * 2.0, 8, MOST_BARS))
    room = max(high - low, 1e-9 * max(abs(low), 1.0))
    edges: FloatArray = np.linspace(low, low + room, bins + 1)
    return edges


def _median(panel: Axes, value: float) -> None:
    panel.axvline(value, color=INK, lw=1.8, label=f"median {value:,.4g}")
