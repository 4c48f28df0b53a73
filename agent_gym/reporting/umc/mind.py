"""What it believed: the heads, the return it expected, how far it trusted itself, and lambda."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.umc_walk import UmcRun
from agent_gym.evaluation.umc_walk.trace import HEAD, PLAN
from agent_gym.reporting.canvas import (
    FAINT,
    INK,
    PALETTE,
    new_figure,
    short_name,
    title,
    title_and_names,
)
from agent_gym.reporting.umc.trails import buckets, days, line, means, time_axis

MOST_HEADS = 6
IN_BP = 1e4


def heads(run: UmcRun, width: int) -> Figure:
    """Draw how far each head was believed, on top of each other."""
    figure, (panel,) = new_figure(width, 250)
    found = _largest(run.trace.group(HEAD))
    most = buckets(width)
    rows = {name: np.nan_to_num(means(column, most)) for name, column in found.items()}
    x = days(np.linspace(run.trace.ts[0], run.trace.ts[-1], len(next(iter(rows.values())))))
    colours = [PALETTE[at % len(PALETTE)] for at in range(len(rows))]
    names = [short_name(name) for name in rows]
    panel.stackplot(x, *rows.values(), labels=names, colors=colours, linewidth=0.0, alpha=0.85)
    panel.set_ylim(0.0, 1.0)
    title_and_names(panel, "Chance of each head", width)
    time_axis(panel, width, x)
    return figure


def outlook(run: UmcRun, width: int) -> Figure:
    """Draw the expected return with its error, against what a trade costs; then coherence."""
    figure, (top, bottom) = new_figure(width, 380, rows=2)
    columns, x = run.trace.columns, days(run.trace.ts)
    edge, error = IN_BP * columns["expected_return"], IN_BP * columns["expected_return_se"]
    low, high = (means(edge + sign * error, buckets(width)) for sign in (-1.0, 1.0))
    middle = days(np.linspace(run.trace.ts[0], run.trace.ts[-1], len(low)))
    top.fill_between(middle, low, high, color=PALETTE[0], alpha=0.25, lw=0.0, label="give or take")
    line(top, x, edge, width, color=PALETTE[0], lw=0.9, label="expected return")
    top.axhline(0.0, color=INK, lw=0.8)
    title_and_names(top, "Expected return of the next bar, basis points", width)
    line(bottom, x, columns["coherence"], width, color=PALETTE[2])
    threshold = run.folds[0].agent.config.lam.coherence_threshold
    bottom.axhline(threshold, color=FAINT, lw=0.9, ls=(0, (4, 2)))
    bottom.set_ylim(-0.03, 1.05)
    title(bottom, f"Coherence; below {threshold:g} positions are held to it")
    for panel in (top, bottom):
        time_axis(panel, width, x)
    return figure


def energy(run: UmcRun, width: int) -> Figure:
    """Draw what the choice saved against holding nothing, then the surprise of each bar."""
    figure, (top, bottom) = new_figure(width, 380, rows=2)
    columns, x = run.trace.columns, days(run.trace.ts)
    line(top, x, _saved(run), width, color=PALETTE[6], lw=1.0)
    title(top, "Free energy saved, nats")
    most = buckets(width)
    mean = means(columns["surprise"], most)
    middle = days(np.linspace(run.trace.ts[0], run.trace.ts[-1], len(mean)))
    line(bottom, x, columns["surprise"], width, color=PALETTE[4], lw=0.7, alpha=0.6, label="bar")
    bottom.plot(middle, mean, color=PALETTE[1], lw=1.5, label="mean of a stretch")
    title_and_names(bottom, "Surprise of each bar, nats", width)
    for panel in (top, bottom):
        time_axis(panel, width, x)
    return figure


def curiosity(run: UmcRun, width: int) -> Figure:
    """Draw information gain and lambda between its bounds."""
    figure, (top, bottom) = new_figure(width, 340, rows=2)
    columns, x = run.trace.columns, days(run.trace.ts)
    line(top, x, columns["information_gain"], width, color=PALETTE[3], lw=0.9)
    top.set_ylim(bottom=0.0)
    title(top, "Information gain a bar, nats")
    path = run.lam
    line(bottom, x, path.values, width, color=PALETTE[0], lw=1.6)
    for bound in {path.lowest, path.highest}:
        bottom.axhline(bound, color=FAINT, lw=0.9, ls=(0, (4, 2)))
    room = 0.06 + 0.1 * (path.highest - path.lowest)
    bottom.set_ylim(max(0.0, path.lowest - room), path.highest + room)
    title(bottom, "Lambda and its bounds")
    for panel in (top, bottom):
        time_axis(panel, width, x)
    return figure


def _saved(run: UmcRun) -> FloatArray:
    """Return by how much the plan for the chosen level lies below the one for none."""
    planned = run.trace.group(PLAN)
    table = np.column_stack([planned[name] for name in planned])
    levels = np.array([float(name) for name in planned])
    chosen = run.trace.columns["chosen"]
    place = np.abs(levels[None, :] - chosen[:, None]).argmin(axis=1)
    own = np.take_along_axis(table, place[:, None], axis=1)[:, 0]
    none = table[:, int(np.flatnonzero(levels == 0.0)[0])]
    saved: FloatArray = np.where(np.isfinite(own) & np.isfinite(none), none - own, 0.0)
    return saved


def _largest(found: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the heads that were believed most; the others are counted together."""
    if len(found) <= MOST_HEADS:
        return found
    ranked = sorted(found, key=lambda name: -float(np.nanmean(found[name])))
    kept = {name: found[name] for name in ranked[: MOST_HEADS - 1]}
    rest = np.nansum([found[name] for name in ranked[MOST_HEADS - 1 :]], axis=0)
    return kept | {f"{len(found) - MOST_HEADS + 1} others": rest}
