"""The market: candles with the regimes in which they were seen, and the crowd beside them."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agent_gym.agents.umc.macro.labels import Regime
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.umc_walk import EchoRecord, UmcRun
from agent_gym.reporting.canvas import (
    GRID,
    INK,
    PALETTE,
    WIDE,
    new_figure,
    round_numbers,
    title_and_names,
)
from agent_gym.reporting.umc.trails import days, time_axis

UP, DOWN = PALETTE[2], PALETTE[1]
STRIP = 0.035  # of the height, where a macrostate shows its plain colour
REGIMES = {
    Regime.TREND_UP: PALETTE[0],
    Regime.TREND_DOWN: PALETTE[1],
    Regime.BREAKOUT: PALETTE[2],
    Regime.CAPITULATION: INK,
    Regime.ACCUMULATION: PALETTE[3],
    Regime.DISTRIBUTION: PALETTE[7],
    Regime.RANGE: GRID,
    Regime.UNLABELED: PALETTE[5],
}
"""Chosen so that any two can be told apart by any eyes, in both themes of the page."""


def candles(run: UmcRun, width: int) -> Figure:
    """Draw the tested bars, several to a candle, on the colours of their macrostates."""
    figure, (panel,) = new_figure(width, 330)
    bars = run.results.bars
    count = min(150 if width >= WIDE else 56, len(bars))
    edges = np.linspace(0, len(bars), count + 1).astype(int)
    x = days(run.results.ts)
    starts, stops = edges[:-1], edges[1:]
    opened, closed = bars.open[starts], bars.close[stops - 1]
    high, low = (
        np.array([best(column[a:b]) for a, b in zip(starts, stops, strict=True)])
        for best, column in ((np.max, bars.high), (np.min, bars.low))
    )
    middle = x[(starts + stops - 1) // 2]
    for rises, colour in ((closed >= opened, UP), (closed < opened, DOWN)):
        panel.vlines(middle[rises], low[rises], high[rises], color=colour, lw=0.8)
        panel.vlines(
            middle[rises], opened[rises], closed[rises], color=colour, lw=0.55 * width / count
        )
    named = _regimes(panel, run, starts, stops, x)
    panel.margins(y=0.04)
    text = "Price and likeliest macrostate" if named else "Price"
    title_and_names(panel, text, width)
    time_axis(panel, width, x)
    return figure


def _regimes(
    panel: Axes,
    run: UmcRun,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    x: FloatArray,
) -> dict[str, str]:
    """Colour the ground by the regime that was likeliest most often; return colours by name.

    The tint is faint, so a strip at the foot has the plain colour that the names go by.
    """
    if not run.trace.regime[0]:
        return {}
    names = sorted(set(run.trace.regime.tolist()))
    colours = {name: REGIMES[Regime(name)] for name in names}
    likeliest = [_commonest(run.trace.regime[a:b]) for a, b in zip(starts, stops, strict=True)]
    shown: set[str] = set()
    first = 0
    for at in range(1, len(likeliest) + 1):
        name = likeliest[first]
        if at < len(likeliest) and likeliest[at] == name:
            continue
        label = None if name in shown else name.lower().replace("_", " ")
        end = min(int(stops[at - 1]), len(x) - 1)
        span = x[starts[first]], x[end]
        panel.axvspan(*span, color=colours[name], alpha=0.22, lw=0.0)
        panel.axvspan(*span, ymax=STRIP, color=colours[name], lw=0.0, label=label)
        shown.add(name)
        first = at
    return colours


def _commonest(names: NDArray[np.str_]) -> str:
    found, often = np.unique(names, return_counts=True)
    return str(found[int(often.argmax())])


def generations(echoes: EchoRecord, width: int) -> Figure | None:
    """Draw the mean fitness of each family before every renewal."""
    families = list(dict.fromkeys(row.family for row in echoes.generations))
    if not families:
        return None
    figure, (panel,) = new_figure(width, 300)
    for at, family in enumerate(families):
        rows = [row for row in echoes.generations if row.family == family]
        panel.plot(
            [row.number for row in rows],
            [100.0 * row.before for row in rows],
            color=PALETTE[at % len(PALETTE)],
            marker="o",
            ms=3.5,
            lw=1.2,
            label=family.replace("_", " "),
        )
    panel.axhline(0.0, color=INK, lw=0.8)
    panel.xaxis.set_major_locator(round_numbers(8, whole=True))
    title_and_names(panel, "Mean fitness by generation, % of growth", width)
    return figure
