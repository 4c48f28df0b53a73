"""Arms beside each other: their scores, final episodes, profiles, and when they reach a mark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from agent_gym.core.types import FloatArray
from agent_gym.reporting.canvas import (
    FAINT,
    INK,
    PAPER,
    WIDE,
    looks,
    new_figure,
    round_numbers,
    short_name,
    step_axis,
    title_and_names,
)
from agent_gym.reporting.rl.curves import (
    episode_profile,
    final_rewards,
    reached_curve,
    score_of,
    steps_to,
)
from agent_gym.reporting.rl.plots import Mark, mark_lines
from agent_gym.reporting.rl.runs import Arm

LEVELS = 200


def comparison(arms: Sequence[Arm], *, width: int = WIDE, marks: Sequence[Mark] = ()) -> Figure:
    """Return the interquartile mean of each arm with its interval, and every seed as a dot."""
    figure, (panel,) = new_figure(width, 90 + 42 * len(arms))
    for row, (arm, (colour, _)) in enumerate(zip(arms, looks(len(arms)), strict=True)):
        score = score_of(arm)
        if score is None:
            continue
        panel.plot(arm.scores, _spread(row, arm.scores.size), "o", ms=4, color=colour, alpha=0.45)
        if score.low is not None and score.high is not None:
            panel.plot([score.low, score.high], [row, row], color=colour, lw=4, alpha=0.9)
        panel.plot([score.iqm], [row], "D", ms=8, color=colour, mec=PAPER, mew=1.2)
    mark_lines(panel, marks, vertical=True)
    _rows(panel, arms)
    panel.set_xlabel("Mean return of a seed's final episodes", fontsize=11, color=FAINT)
    title_and_names(panel, "Interquartile mean over seeds, 95 %", width)
    return figure


def profiles(arms: Sequence[Arm], *, width: int = WIDE) -> Figure:
    """Return the share of final episodes above each level, with a band over seeds."""
    figure, (panel,) = new_figure(width, 330 if width >= WIDE else 290)
    rewards = np.concatenate([final_rewards(arm) for arm in arms] or [np.empty(0)])
    for arm, (colour, dashes) in zip(arms, looks(len(arms)), strict=True):
        marks = np.linspace(rewards.min(), rewards.max(), LEVELS) if rewards.size else rewards
        found = episode_profile(arm, marks)
        if found is None:
            continue
        if found.low is not None and found.high is not None:
            ends = (100.0 * found.low, 100.0 * found.high)
            panel.fill_between(found.marks, *ends, color=colour, alpha=0.16, lw=0)
        shown = {"color": colour, "ls": dashes, "lw": 2.0, "label": short_name(arm.name)}
        panel.plot(found.marks, 100.0 * found.share, **shown)
    _percent_axis(panel)
    panel.set_xlabel("Return of an episode", fontsize=11, color=FAINT)
    title_and_names(panel, "Final episodes above each return", width)
    return figure


def survival(arms: Sequence[Arm], mark: float, *, width: int = WIDE) -> Figure:
    """Return the share of seeds that have reached a mark by each step (Kaplan-Meier).

    A cross is a seed whose training ended before it reached the mark.
    """
    figure, (panel,) = new_figure(width, 330 if width >= WIDE else 290)
    last = 1
    for arm, (colour, dashes) in zip(arms, looks(len(arms)), strict=True):
        found = reached_curve(arm, mark)
        if found is None:
            continue
        seen = [each for each in (steps_to(run, mark) for run in arm.runs) if each is not None]
        end = max(int(run.curve[0][-1]) for run in arm.runs if run.curve[0].size)
        x = np.concatenate([[0.0], found.times, [float(end)]])
        y = np.array([100.0 * (1.0 - found.at(step)) for step in x])
        shown = {"color": colour, "ls": dashes, "lw": 2.0, "label": short_name(arm.name)}
        panel.step(x, y, where="post", **shown)
        given_up = [each.step for each in seen if not each.seen]
        heights = [100.0 * (1.0 - found.at(step)) for step in given_up]
        (crosses,) = panel.plot(given_up, heights, "x", ms=7, mew=1.8, color=colour)
        crosses.set_clip_on(False)
        crosses.set_in_layout(False)
        last = max(last, end)
    panel.set_xlim(0.0, 1.02 * last)
    step_axis(panel, width)
    _percent_axis(panel)
    panel.set_xlabel("Steps of training", fontsize=11, color=FAINT)
    title_and_names(panel, f"Seeds that have reached a mean of {mark:g}", width)
    return figure


def distributions(arms: Sequence[Arm], *, width: int = WIDE, marks: Sequence[Mark] = ()) -> Figure:
    """Return the final episodes of each arm: median, middle half, middle 90 %, and the rest."""
    figure, (panel,) = new_figure(width, 90 + 46 * len(arms))
    for row, (arm, (colour, _)) in enumerate(zip(arms, looks(len(arms)), strict=True)):
        rewards = final_rewards(arm)
        if not rewards.size:
            continue
        cuts = np.quantile(rewards, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
        low, first, middle, third, high = cuts
        panel.plot([low, high], [row, row], color=colour, lw=1.6)
        panel.barh(row, third - first, left=first, height=0.42, color=colour, alpha=0.35, lw=0)
        panel.plot([middle, middle], [row - 0.21, row + 0.21], color=INK, lw=2.2)
        outside = rewards[(rewards < low) | (rewards > high)]
        panel.plot(outside, np.full(outside.size, row), "o", ms=2.6, color=colour, alpha=0.5)
    mark_lines(panel, marks, vertical=True)
    _rows(panel, arms)
    panel.set_xlabel("Return of an episode", fontsize=11, color=FAINT)
    title_and_names(panel, "Final episodes: median, half, 90 %", width)
    return figure


def _rows(panel: Axes, arms: Sequence[Arm]) -> None:
    panel.set_yticks(range(len(arms)), [short_name(arm.name) for arm in arms])
    panel.set_ylim(len(arms) - 0.4, -0.6)
    panel.tick_params(axis="y", colors=INK, length=0)
    panel.grid(False, axis="y")
    panel.xaxis.set_major_locator(round_numbers(6))


def _spread(row: int, count: int) -> FloatArray:
    """Return heights that keep dots apart, by steps that never line up."""
    places: FloatArray = np.arange(count, dtype=np.float64) * 0.6180339887 % 1.0
    return row + 0.5 * (places - 0.5)


def _percent_axis(panel: Axes) -> None:
    panel.set_ylim(-2.0, 102.0)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
