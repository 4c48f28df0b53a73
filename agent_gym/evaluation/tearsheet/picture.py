"""The sheet as one picture: price with trades, equity beside the baselines, drawdown, position.

Colours are those of Okabe and Ito, which people with any colour vision can tell apart; the agent is
the thick blue line in every panel.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from itertools import cycle
from typing import Any, Literal

import numpy as np
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from agent_gym.core.types import FloatArray
from agent_gym.evaluation.metrics import drawdowns
from agent_gym.evaluation.tearsheet.axes import AGENT, BOUGHT, FAINT, SOLD, indexed
from agent_gym.evaluation.tearsheet.sections import LOG_RATIO
from agent_gym.evaluation.tearsheet.sheet import Sheet
from agent_gym.evaluation.tearsheet.tables import exposure_pct, turns
from agent_gym.evaluation.tearsheet.thinning import thin
from agent_gym.markets.bars import Bars
from agent_gym.markets.periods import format_period

INK, GRID = "#222222", "#e4e4e4"
BESIDE = (
    (FAINT, (0, (6, 2))),
    ("#E69F00", "-"),
    ("#CC79A7", "-"),
    ("#56B4E9", (0, (4, 1, 1, 1))),
    (BOUGHT, (0, (2, 1))),
    (SOLD, (0, (1, 1))),
)
MAX_MARKS = 300
MAX_ARMS = 7
MAX_LABEL = 44
INCHES, DPI = (12.0, 11.0), 110  # with all four panels
_dates: Any = dates  # matplotlib leaves the constructors of this module untyped


def draw(sheet: Sheet) -> Figure:
    """Return the figure of a sheet; panels of what it does not know are left out."""
    layout = ConstrainedLayoutEngine(h_pad=0.06, hspace=0.02)
    panels: list[tuple[float, Callable[[Axes], None]]] = []
    bars, held = sheet.bars, exposure_pct(sheet)
    if bars is not None:
        panels.append((3.0, lambda panel: _price(panel, sheet, bars)))
    panels.append((3.0, lambda panel: _equity(panel, sheet)))
    panels.append((1.3, lambda panel: _drawdown(panel, sheet)))
    if held is not None:
        panels.append((1.3, lambda panel: _position(panel, sheet, held)))
    height = INCHES[1] * sum(share for share, _ in panels) / 8.6
    figure = Figure(figsize=(INCHES[0], height), dpi=DPI, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    ratios = {"height_ratios": [share for share, _ in panels]}
    axes = figure.subplots(len(panels), 1, sharex=True, gridspec_kw=ratios)
    figure.suptitle(_headline(sheet), x=0.01, ha="left", fontsize=13, color=INK, weight="bold")
    for panel, (_, paint) in zip(axes, panels, strict=True):
        paint(panel)
        _clean(panel)
    times = sheet.ts.astype("datetime64[ns]")
    margin = (times[-1] - times[0]) // 200  # so that a trade on the first bar can be seen
    axes[-1].set_xlim(times[0] - margin, times[-1] + margin)
    locator = _dates.AutoDateLocator(minticks=4, maxticks=10)
    axes[-1].xaxis.set_major_locator(locator)
    axes[-1].xaxis.set_major_formatter(_dates.ConciseDateFormatter(locator))
    axes[-1].set_xlabel("time (UTC)", color=INK)
    return figure


def png_of(sheet: Sheet) -> bytes:
    """Return the picture as PNG; equal sheets give equal bytes."""
    buffer = BytesIO()
    draw(sheet).savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _headline(sheet: Sheet) -> str:
    if sheet.bars is None:
        return plain(sheet.title)
    bars = sheet.bars
    name = f"{bars.instrument.symbol} {bars.instrument.kind}"
    size = f"{len(bars):,} bars of {format_period(bars.period_ns)}"
    return plain(f"{sheet.subject} on {name}, {size}")


def plain(text: str) -> str:
    r"""Return text that matplotlib shows as it is: a pair of dollars would be read as a formula.

    Example:
        >>> print(plain("5 $"))
        5 \$
    """
    return text.replace("$", r"\$")


def _price(panel: Axes, sheet: Sheet, bars: Bars) -> None:
    close, times = bars.close, (bars.ts + bars.period_ns).astype("datetime64[ns]")
    at = thin(close)
    panel.plot(times[at], close[at], color=INK, lw=0.9)
    if close.max() > LOG_RATIO * close.min():
        _log_scale(panel, close)
    fills = sheet.fills if sheet.fills is not None else np.empty(0)
    changes = turns(fills) if fills.size else np.empty(0, np.intp)
    note = f"{fills.size:,} fills"
    if 0 < changes.size <= MAX_MARKS:
        _mark(panel, bars, fills[changes], bought=True)
        _mark(panel, bars, fills[changes], bought=False)
        _legend(panel, "right")
        note += ", marked where the position opens, closes or turns"
    elif changes.size:
        note += f"; {changes.size:,} openings, closings and turns are too many to mark"
    _title(panel, plain(f"Price ({sheet.quote}); {note}"))


def _mark(panel: Axes, bars: Bars, fills: NDArray[Any], *, bought: bool) -> None:
    size = 34 if fills.size <= 100 else 18
    fills = fills[(fills["qty"] > 0.0) == bought]
    if not fills.size:
        return
    panel.scatter(
        bars.ts[fills["bar"]].astype("datetime64[ns]"),
        fills["price"],
        marker="^" if bought else "v",
        s=size,
        color=BOUGHT if bought else SOLD,
        edgecolors="white",
        linewidths=0.5,
        zorder=3,
        label="bought" if bought else "sold",
    )


def _equity(panel: Axes, sheet: Sheet) -> None:
    times = sheet.ts.astype("datetime64[ns]")
    shown = [sheet.subject, *sheet.beside]
    if len(shown) > MAX_ARMS:
        shown = shown[:MAX_ARMS]  # more lines cannot be told apart; the page has them all
    looks = dict(zip(shown[1:], cycle(BESIDE), strict=False))
    seen = []
    for label in shown:
        curve = indexed(sheet.equity[label])
        at = thin(curve)
        colour, dashes = looks.get(label, (AGENT, "-"))
        weight, layer = (1.1, 2) if label in looks else (2.0, 3)
        name = label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"
        panel.plot(
            times[at],
            curve[at],
            color=colour,
            ls=dashes,
            lw=weight,
            zorder=layer,
            label=plain(name),
        )
        seen.append(curve)
    values = np.concatenate(seen)
    logarithmic = bool(values.min() > 0.0 and values.max() > LOG_RATIO * values.min())
    if logarithmic:
        _log_scale(panel, values)
    scale = ", log scale)" if logarithmic else ")"
    _title(panel, "Equity after costs (start = 100" + scale, above=20.0)
    _legend(panel, "left")


def _drawdown(panel: Axes, sheet: Sheet) -> None:
    falls = -100.0 * drawdowns(sheet.curve)
    at = thin(falls)
    times = sheet.ts[at].astype("datetime64[ns]")
    panel.fill_between(times, falls[at], 0.0, color=AGENT, alpha=0.25, lw=0)
    panel.plot(times, falls[at], color=AGENT, lw=1.0)
    panel.set_ylim(min(float(falls.min()) * 1.08, -1.0), 0.0)
    _title(panel, f"Drawdown (%); deepest {falls.min():.1f}")


def _position(panel: Axes, sheet: Sheet, held: FloatArray) -> None:
    at = thin(held)
    times = sheet.ts[at].astype("datetime64[ns]")
    panel.fill_between(times, held[at], 0.0, step="post", color=AGENT, alpha=0.25, lw=0)
    panel.step(times, held[at], where="post", color=AGENT, lw=0.8)
    panel.axhline(0.0, color=FAINT, lw=0.8)
    low, high = min(float(held.min()), 0.0), max(float(held.max()), 0.0)
    room = 0.08 * max(high - low, 1.0)
    panel.set_ylim(low - (room if low < 0.0 else 0.0), high + room)
    time_in = 100.0 * float(np.mean(held != 0.0))
    _title(panel, f"Position (% of equity); {time_in:.0f} % of the time")


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
