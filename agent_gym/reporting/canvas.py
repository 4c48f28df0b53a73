"""Figures of matplotlib as files, and as SVG that a page can carry in its own colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from io import BytesIO
from itertools import cycle
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, MaxNLocator

# Colours of Okabe and Ito, which people with any colour vision can tell apart.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5cc0", "#8c6d31")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (2, 1)), (0, (6, 1.5, 1, 1.5)))
INK, FAINT, GRID, PAPER = "#1a1f26", "#5b6570", "#dfe4ea", "#ffffff"
WIDE, NARROW = 920, 350
POINTS = 72.0  # units of an SVG to the inch, so that a unit is a pixel of the page
DPI = 144
LONGEST_NAME = 34
FONTS = ["DejaVu Sans"]
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
THEMED = {colour: f"var(--c{at})" for at, colour in enumerate(PALETTE)} | {
    INK: "var(--ink)",
    FAINT: "var(--faint)",
    GRID: "var(--line)",
    PAPER: "var(--card)",
}
DROPPED = {f"{SVG}metadata", f"{SVG}style", "metadata"}
KEPT_STYLES = re.compile(
    r"^(fill|stroke|stroke-(width|opacity|dasharray|dashoffset|linecap|linejoin)"
    r"|fill-opacity|opacity|text-anchor|font-size|font-weight)$"
)


def looks(count: int) -> list[tuple[str, Any]]:
    """Return a colour and dashes for each of so many lines."""
    pairs = zip(cycle(PALETTE), range(count), strict=False)
    return [(colour, DASHES[(at // len(PALETTE)) % len(DASHES)]) for colour, at in pairs]


def new_figure(
    width: int,
    height: int,
    columns: int = 1,
    rows: int = 1,
    heights: Sequence[float] | None = None,
) -> tuple[Figure, Any]:
    """Return a figure of a size in pixels of the page, and its panels as a flat list.

    Args:
        width: Of all panels together.
        height: Likewise.
        columns: Panels beside each other.
        rows: Panels below each other.
        heights: How high each row is beside the others; all alike, if nothing is said.
    """
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06, hspace=0.04, wspace=0.03)
    figure = Figure(figsize=(width / POINTS, height / POINTS), layout=layout, facecolor=PAPER)
    FigureCanvasAgg(figure)
    panels: list[Axes] = list(
        figure.subplots(rows, columns, squeeze=False, height_ratios=heights).flat
    )
    for panel in panels:
        clean(panel)
    return figure, panels


def clean(panel: Axes) -> None:
    """Take away what carries nothing."""
    panel.set_facecolor("none")
    panel.grid(True, color=GRID, lw=0.8)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(FAINT)
    panel.tick_params(colors=FAINT, labelsize=11, length=3)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def step_axis(panel: Axes, width: int) -> None:
    """Name steps of training in thousands and millions."""
    panel.xaxis.set_major_locator(round_numbers(8 if width >= WIDE else 4))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: steps_text(value)))


def round_numbers(most: int, *, whole: bool = False) -> MaxNLocator:
    """Return a locator of ticks that people would choose; whole ones where things are counted."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=whole)


def title(panel: Axes, text: str, above: float = 8.0) -> None:
    """Say what a panel shows, above it and in words."""
    panel.set_title(plain(text), loc="left", fontsize=12, color=INK, pad=above)


def title_and_names(panel: Axes, text: str, width: int) -> None:
    """Say what a panel shows and name its lines below that, where they cover nothing."""
    handles, names = panel.get_legend_handles_labels()
    if not names:
        title(panel, text)
        return
    columns = max(1, min(len(names), int(width / (50 + 7.0 * max(map(len, names))))))
    made = panel.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=11,
        borderaxespad=0.2,
        handlelength=1.8,
        columnspacing=1.2,
    )
    for name in made.get_texts():
        name.set_color(INK)
    title(panel, text, above=12.0 + 18.0 * -(-len(names) // columns))


def short_name(name: str) -> str:
    """Return a name that fits beside a line, safe for matplotlib."""
    return plain(name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…")


def plain(text: str) -> str:
    """Return text in which matplotlib sees no formula."""
    return text.replace("$", r"\$")


def steps_text(value: float) -> str:
    """Return a number of steps as people say it.

    Example:
        >>> steps_text(250_000), steps_text(1e6), steps_text(1_250_000), steps_text(640)
        ('250k', '1M', '1.25M', '640')
    """
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def png_of(figure: Figure) -> bytes:
    """Return the figure as a picture on white."""
    sink = BytesIO()
    figure.savefig(sink, format="png", dpi=DPI, metadata={"Software": None})
    return sink.getvalue()


def svg_of(figure: Figure) -> bytes:
    """Return the figure as SVG on white; equal figures give equal bytes."""
    sink = BytesIO()
    words: Any = {"svg.fonttype": "none", "svg.hashsalt": "agent_gym", "font.sans-serif": FONTS}
    with mpl.rc_context(words):
        figure.savefig(sink, format="svg", metadata={"Date": None, "Creator": None})
    return sink.getvalue()


def inline_svg(figure: Figure, name: str, label: str, kind: str = "") -> str:
    """Return the figure as an element of a page, without styles, scripts or colours of its own.

    Args:
        figure: What is drawn.
        name: Tells its parts from those of other figures of the page.
        label: What it shows, for who cannot see it.
        kind: Class of the element.
    """
    root = ElementTree.fromstring(svg_of(figure))
    _strip(root, name)
    box = root.get("viewBox", "")
    inner = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    return (
        f'<svg class="plot {kind}" role="img" aria-label="{escape(label)}" viewBox="{box}">'
        f"{inner}</svg>"
    )


def plot(name: str, label: str, draw: Callable[[int], Figure | None], caption: str = "") -> str:
    """Return a figure drawn for a screen and for a phone; nothing if there is nothing to draw."""
    wide, narrow = draw(WIDE), draw(NARROW)
    if wide is None or narrow is None:
        return ""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure id="{name}">{inline_svg(wide, f"{name}-w", label, "large")}'
        f"{inline_svg(narrow, f'{name}-n', label, 'narrow')}{words}</figure>"
    )


def _strip(root: ElementTree.Element, name: str) -> None:
    text = ElementTree.tostring(root, encoding="unicode")
    asked = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", text))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in DROPPED:
                parent.remove(child)
    for node in root.iter():
        node.tag = node.tag.removeprefix(SVG)
        node.tail = None
        if node.tag != "text":
            node.text = None
        _rename(node, asked, name)
        _style(node)
        for key in ("d", "points", "x", "y", "transform"):
            if key in node.attrib:
                node.set(key, re.sub(r"-?\d+\.\d{2,}", _rounded, node.attrib[key]))


def _rename(node: ElementTree.Element, asked: set[str], name: str) -> None:
    own = node.attrib.pop("id", None)
    if own in asked:
        node.set("id", f"{name}-{own}")
    link = node.attrib.pop(LINK, None)
    if link is not None:
        node.set("href", f"#{name}-{link[1:]}")
    clip = node.get("clip-path")
    if clip is not None:
        node.set("clip-path", clip.replace("url(#", f"url(#{name}-"))


def _style(node: ElementTree.Element) -> None:
    """Turn styles, which a strict page refuses, into attributes in the page's colours."""
    style = node.attrib.pop("style", "")
    for part in filter(None, (each.strip() for each in style.split(";"))):
        key, _, value = (word.strip() for word in part.partition(":"))
        if key == "font":
            size = re.search(r"([\d.]+)px", value)
            key, value = "font-size", size[1] if size else "11"
        if KEPT_STYLES.match(key):
            node.set(key, THEMED.get(value.lower(), value))


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found.group()):.1f}".removesuffix(".0")
