"""What it came to: equity beside baselines, drawdown, and the position that was held."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.baselines import BEST_SMA, BUY_HOLD, CASH
from agent_gym.evaluation.umc_walk import UmcRun
from agent_gym.reporting.canvas import (
    DASHES,
    FAINT,
    INK,
    PALETTE,
    new_figure,
    title,
    title_and_names,
)
from agent_gym.reporting.umc.trails import days, line, time_axis

DRAWN = {
    CASH: FAINT,
    BUY_HOLD: PALETTE[1],
    "SMA(24,120)": PALETTE[3],
    BEST_SMA: PALETTE[2],
}
OWN = PALETTE[0]


def equity(run: UmcRun, width: int) -> Figure:
    """Draw the growth of one unit, and below it what was lost since the peak."""
    figure, (top, bottom) = new_figure(width, 430, rows=2)
    grid = top.get_gridspec()
    grid.set_height_ratios([2.2, 1.0])
    x = days(run.results.ts)
    arms = {arm.label: arm.run for arm in run.evaluation.arms if arm.run is not None}
    for label, colour in DRAWN.items():
        if label not in arms:
            continue
        account = arms[label].equity
        looks = {"color": colour, "ls": DASHES[1], "lw": 1.0}
        line(top, x, account / account[0], width, label=label, **looks)
    _random(top, run, x)
    own = run.results.equity
    line(top, x, own / own[0], width, color=OWN, lw=1.9, label="umc", zorder=5)
    title_and_names(top, "Equity, of 1 at the start of the test, after costs", width)
    line(bottom, x, -100.0 * _drawdown(own), width, color=OWN)
    bottom.set_ylim(top=0.0)
    bottom.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g} %"))
    title(bottom, "Drawdown of umc")
    for panel in (top, bottom):
        time_axis(panel, width, x)
    top.tick_params(labelbottom=False)
    top.xaxis.get_offset_text().set_visible(False)
    return figure


def _random(panel: Axes, run: UmcRun, x: FloatArray) -> None:
    """Draw where random positions with the same turnover ended: their mean and most of them."""
    found = run.arm.random
    if found is None:
        return
    width = 0.012 * float(x[-1] - x[0])
    low, high = np.exp(found.low), np.exp(found.high)
    label = "random, same turnover: 5-95 % at the end"
    panel.fill_between(
        [x[-1] - width, x[-1]], low, high, color=FAINT, alpha=0.45, lw=0, label=label
    )
    panel.plot([x[-1] - width, x[-1]], [np.exp(found.mean)] * 2, color=INK, lw=1.6)


def position(run: UmcRun, width: int) -> Figure:
    """Draw what was held, as a share of equity."""
    figure, (panel,) = new_figure(width, 190)
    held = run.trace.columns["exposure"]
    x = days(run.trace.ts)
    line(panel, x, held, width, color=OWN, lw=1.0, drawstyle="steps-post")
    panel.axhline(0.0, color=INK, lw=0.8)
    top = max(1.05, float(np.nanmax(np.abs(held))) * 1.05)
    panel.set_ylim(-top if np.nanmin(held) < 0.0 else -0.05, top)
    title(panel, "Position, as a share of equity")
    time_axis(panel, width, x)
    panel.tick_params(colors=FAINT)
    return figure


def _drawdown(account: FloatArray) -> FloatArray:
    lost: FloatArray = 1.0 - account / np.maximum.accumulate(account)
    return lost
