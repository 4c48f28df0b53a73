"""One picture of a run: price with trades, equity beside the baselines, drawdown, position.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; the agent is
the thick blue line in every panel.
"""

from __future__ import annotations

from io import BytesIO
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from agent_gym.core.files import atomic_path
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.baselines import Comparison
from agent_gym.evaluation.metrics import drawdowns
from agent_gym.evaluation.results import BacktestResults
from agent_gym.markets.periods import format_period

INK, FAINT, GRID = "#222222", "#8a8a8a", "#e4e4e4"
AGENT, BOUGHT, SOLD = "#0072B2", "#009E73", "#D55E00"
BESIDE = (
    (FAINT, (0, (6, 2))),
    ("#E69F00", "-"),
    ("#CC79A7", "-"),
    ("#56B4E9", (0, (4, 1, 1, 1))),
    (BOUGHT, (0, (2, 1))),
    (SOLD, (0, (1, 1))),
)
MAX_POINTS = 2_000
MAX_MARKS = 300
MAX_LABEL = 44
LOG_RATIO = 3.0  # curves that span more than this are drawn on a log scale
INCHES, DPI = (12.0, 11.0), 110
_dates: Any = dates  # matplotlib leaves the constructors of this module untyped
Places: TypeAlias = NDArray[np.intp]


def draw(comparison: Comparison) -> Figure:
    """Return the figure of a comparison."""
    run = comparison.main
    layout = ConstrainedLayoutEngine(h_pad=0.06, hspace=0.02)
    figure = Figure(figsize=INCHES, dpi=DPI, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(4, 1, sharex=True, gridspec_kw={"height_ratios": [3, 3, 1.3, 1.3]})
    figure.suptitle(_headline(comparison), x=0.01, ha="left", fontsize=13, color=INK, weight="bold")
    _price(axes[0], run)
    _equity(axes[1], comparison)
    _drawdown(axes[2], run)
    _position(axes[3], run)
    for panel in axes:
        _clean(panel)
    times = run.ts.astype("datetime64[ns]")
    margin = (times[-1] - times[0]) // 200  # so that a trade on the first bar can be seen
    axes[-1].set_xlim(times[0] - margin, times[-1] + margin)
    locator = _dates.AutoDateLocator(minticks=4, maxticks=10)
    axes[-1].xaxis.set_major_locator(locator)
    axes[-1].xaxis.set_major_formatter(_dates.ConciseDateFormatter(locator))
    axes[-1].set_xlabel("time (UTC)", color=INK)
    return figure


def write_png(path: Path, comparison: Comparison) -> None:
    """Write the picture; equal runs give equal bytes."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(png(comparison))


def png(comparison: Comparison) -> bytes:
    """Return the picture as PNG."""
    buffer = BytesIO()
    draw(comparison).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def envelope(values: FloatArray, buckets: int = MAX_POINTS // 2) -> Places:
    """Return the places of the lowest and highest value of each bucket, and both ends.

    A line through them looks like the line through all values, spikes included.

    Example:
        >>> envelope(np.array([0.0, 9.0, 1.0, 2.0, -5.0, 3.0]), 2).tolist()
        [0, 1, 4, 5]
    """
    if values.size <= 2 * buckets:
        return np.arange(values.size)
    edges = np.linspace(0, values.size, buckets + 1).astype(np.intp)
    parts = [values[low:high] for low, high in pairwise(edges)]
    lowest = edges[:-1] + [int(part.argmin()) for part in parts]
    highest = edges[:-1] + [int(part.argmax()) for part in parts]
    return np.unique(np.concatenate([[0], lowest, highest, [values.size - 1]]))


def _headline(comparison: Comparison) -> str:
    bars = comparison.main.bars
    name = f"{bars.instrument.symbol} {bars.instrument.kind}"
    return f"{comparison.subject} on {name}, {len(bars):,} bars of {format_period(bars.period_ns)}"


def _price(panel: Axes, run: BacktestResults) -> None:
    close, times = run.bars.close, run.ts.astype("datetime64[ns]")
    at = envelope(close)
    panel.plot(times[at], close[at], color=INK, lw=0.9)
    if close.max() > LOG_RATIO * close.min():
        _log_scale(panel, close)
    turns = _turns(run)
    note = f"{len(run.fills):,} fills"
    if 0 < turns.size <= MAX_MARKS:
        _mark(panel, run, turns, bought=True)
        _mark(panel, run, turns, bought=False)
        _legend(panel, "right")
        note += ", marked where the position opens, closes or turns"
    elif turns.size:
        note += f"; {turns.size:,} openings, closings and turns are too many to mark"
    _title(panel, f"Price ({run.bars.instrument.quote or 'quote'}); {note}")


def _turns(run: BacktestResults) -> Places:
    """Return the fills that change the side of the position."""
    held = np.cumsum(run.fills["qty"])
    held[np.abs(held) <= 1e-9 * np.abs(run.fills["qty"]).max(initial=0.0)] = 0.0
    return np.flatnonzero(np.diff(np.sign(held), prepend=0.0))


def _mark(panel: Axes, run: BacktestResults, turns: Places, *, bought: bool) -> None:
    fills = run.fills[turns]
    fills = fills[(fills["qty"] > 0.0) == bought]
    if not fills.size:
        return
    panel.scatter(
        run.bars.ts[fills["bar"]].astype("datetime64[ns]"),
        fills["price"],
        marker="^" if bought else "v",
        s=34 if turns.size <= 100 else 18,
        color=BOUGHT if bought else SOLD,
        edgecolors="white",
        linewidths=0.5,
        zorder=3,
        label="bought" if bought else "sold",
    )


def _equity(panel: Axes, comparison: Comparison) -> None:
    times = comparison.main.ts.astype("datetime64[ns]")
    looks = dict(zip(comparison.baselines, cycle(BESIDE), strict=False))
    seen = []
    for label, run in comparison.runs.items():
        curve = _indexed(run)
        at = envelope(curve)
        colour, dashes = looks.get(label, (AGENT, "-"))
        weight, layer = (1.1, 2) if label in looks else (2.0, 3)
        shown = label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"
        panel.plot(
            times[at], curve[at], color=colour, ls=dashes, lw=weight, zorder=layer, label=shown
        )
        seen.append(curve)
    values = np.concatenate(seen)
    logarithmic = bool(values.min() > 0.0 and values.max() > LOG_RATIO * values.min())
    if logarithmic:
        _log_scale(panel, values)
    scale = ", log scale)" if logarithmic else ")"
    _title(panel, "Equity after costs (start = 100" + scale, above=20.0)
    _legend(panel, "left")


def _indexed(run: BacktestResults) -> FloatArray:
    curve: FloatArray = 100.0 * run.equity / run.equity[0]
    return curve


def _drawdown(panel: Axes, run: BacktestResults) -> None:
    falls = -100.0 * drawdowns(run.equity)
    at = envelope(falls)
    times = run.ts[at].astype("datetime64[ns]")
    panel.fill_between(times, falls[at], 0.0, color=AGENT, alpha=0.25, lw=0)
    panel.plot(times, falls[at], color=AGENT, lw=1.0)
    panel.set_ylim(min(float(falls.min()) * 1.08, -1.0), 0.0)
    _title(panel, f"Drawdown (%); deepest {falls.min():.1f}")


def _position(panel: Axes, run: BacktestResults) -> None:
    value = run.position * run.bars.close
    held = 100.0 * np.divide(value, run.equity, out=np.zeros_like(value), where=run.equity > 0.0)
    at = envelope(held)
    times = run.ts[at].astype("datetime64[ns]")
    panel.fill_between(times, held[at], 0.0, step="post", color=AGENT, alpha=0.25, lw=0)
    panel.step(times, held[at], where="post", color=AGENT, lw=0.8)
    panel.axhline(0.0, color=FAINT, lw=0.8)
    low, high = min(float(held.min()), 0.0), max(float(held.max()), 0.0)
    room = 0.08 * max(high - low, 1.0)
    panel.set_ylim(low - (room if low < 0.0 else 0.0), high + room)
    _title(panel, f"Position (% of equity); {100.0 * run.metrics.time_in_market:.0f} % of the time")


def _log_scale(panel: Axes, values: FloatArray) -> None:
    panel.set_yscale("log")
    decades = np.log10(values.max() / values.min())
    fine, coarse = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), (1.0, 2.0, 5.0)
    steps = fine if decades < 1.0 else coarse if decades < 3.0 else (1.0,)
    panel.yaxis.set_major_locator(LogLocator(subs=steps))
    panel.yaxis.set_minor_locator(NullLocator())


def _title(panel: Axes, text: str, *, above: float = 6.0) -> None:
    panel.set_title(text, loc="left", fontsize=10.5, color=INK, pad=above)


def _legend(panel: Axes, side: Literal["left", "right"]) -> None:
    panel.legend(
        loc="lower left" if side == "left" else "lower right",
        bbox_to_anchor=(0.0 if side == "left" else 1.0, 1.0),
        ncols=8,
        frameon=False,
        fontsize=9,
        borderaxespad=0.2,
        borderpad=0.1,
        handlelength=2.2,
    )


def _clean(panel: Axes) -> None:
    panel.grid(True, color=GRID, lw=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(FAINT)
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    panel.tick_params(colors=INK, labelsize=9, length=3)
