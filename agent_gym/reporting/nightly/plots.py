"""Small pictures as inline SVG: the differences of a metric seed by seed, and its past nights.

Numbers only become coordinates here, so a plot holds no text from outside but what is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from agent_gym.evaluation.gate.diff import Finding
from agent_gym.reporting.nightly.pairs import Pair
from agent_gym.reporting.nightly.run import Past
from agent_gym.reporting.text import finite, minute, number, visible

MOST_DOTS = 120
STRIP, LARGE = (150.0, 26.0), (620.0, 118.0)
CHART = (360.0, 132.0)
MOST_NIGHTS = 90


class Point(Struct, frozen=True):
    """One night of a line; ``new_baseline`` and ``steps`` are marked."""

    label: str
    value: float
    new_baseline: bool = False
    steps: bool = False


class _Scale:
    """Places values between two ends; equal values stand in the middle."""

    def __init__(self, values: Sequence[float], low: float, high: float) -> None:
        self.bottom, self.top = min(values), max(values)
        self._low, self._high = low, high

    def __call__(self, value: float) -> float:
        half = 0.5 * self.top - 0.5 * self.bottom
        if half <= 0.0:
            return 0.5 * (self._low + self._high)
        share = min(1.0, max(0.0, (0.5 * value - 0.5 * self.bottom) / half))
        return self._low + share * (self._high - self._low)


def strip(finding: Finding, pairs: Sequence[Pair]) -> str:
    """Return the small plot for a table row: a dot a seed, worse on the left of the line."""
    shown = _judged(finding, pairs)
    if not any(pair.loss for pair in shown):
        return ""
    width, height = STRIP
    scale = _Scale(_ends(finding, shown), 5.0, width - 5.0)
    parts = (
        _band(finding, scale, 2.0, height - 2.0),
        _line("zero", scale(0.0), 1.0, scale(0.0), height - 1.0),
        _dots(shown, scale, 6.0, height - 6.0),
        _mean(finding, scale, height / 2.0, 3.5),
    )
    return _svg("strip", STRIP, "".join(parts), f"Differences of {len(shown)} seeds")


def large_strip(finding: Finding, pairs: Sequence[Pair]) -> str:
    """Return the plot with its axis, interval and legend."""
    shown = _judged(finding, pairs)
    if not any(pair.loss for pair in shown):
        return ""
    width, height = LARGE
    scale = _Scale(_ends(finding, shown), 30.0, width - 30.0)
    floor = height - 34.0
    parts = (
        _band(finding, scale, 8.0, floor),
        _line("zero", scale(0.0), 4.0, scale(0.0), floor + 4.0),
        _line("axis", 12.0, floor, width - 12.0, floor),
        _dots(shown, scale, 16.0, floor - 26.0),
        _bar(finding, scale, floor - 12.0),
        _mean(finding, scale, floor - 12.0, 6.0),
        _words(scale(0.0), floor + 17.0, "0", "middle"),
        _end_words(finding, scale, floor + 17.0, width),
        _words(12.0, height - 2.0, "\N{LEFTWARDS ARROW} worse", "start", "bad"),
        _words(width - 12.0, height - 2.0, "better \N{RIGHTWARDS ARROW}", "end", "good"),
    )
    return _svg("large", LARGE, "".join(parts), f"Differences of {len(shown)} seeds in detail")


def _judged(finding: Finding, pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that the verdict rests on: fresh ones if it was confirmed."""
    confirmed = finding.stage == "confirm"
    rested = [pair for pair in pairs if pair.fresh == confirmed]
    return (rested or list(pairs))[:MOST_DOTS]


def _gain(loss: float) -> float:
    return -loss


def _interval(finding: Finding) -> tuple[float, float] | None:
    ends = [] if finding.ci95 is None else [finite(end) for end in finding.ci95]
    known = sorted(_gain(end) for end in ends if end is not None)
    return (known[0], known[1]) if len(known) == 2 else None


def _ends(finding: Finding, pairs: Sequence[Pair]) -> list[float]:
    reach = [_gain(pair.loss) for pair in pairs]
    most = max(map(abs, reach)) or 1.0
    return [*reach, *(_interval(finding) or ()), 0.0, 0.15 * most, -0.15 * most]


def _allowed(finding: Finding) -> float:
    base = abs(finite(finding.base) or 0.0)
    return max(finite(finding.tolerance_abs) or 0.0, (finite(finding.tolerance_rel) or 0.0) * base)


def _band(finding: Finding, scale: _Scale, top: float, bottom: float) -> str:
    """Return the shade of losses that are tolerated."""
    allowed = finite(_allowed(finding))
    if not allowed:
        return ""
    left, right = scale(-allowed), scale(0.0)
    size = f'width="{right - left:.1f}" height="{bottom - top:.1f}"'
    return f'<rect class="allowed" x="{left:.1f}" y="{top:.1f}" {size}/>'


def _dots(pairs: Sequence[Pair], scale: _Scale, top: float, bottom: float) -> str:
    """Return a dot a pair; the height only keeps dots apart, by steps that never line up."""
    paths: dict[str, list[str]] = {"worse": [], "same": [], "better": []}
    for at, pair in enumerate(pairs):
        kind = "worse" if pair.loss > 0.0 else "better" if pair.loss < 0.0 else "same"
        height = top + (at * 0.6180339887 % 1.0) * (bottom - top)
        paths[kind].append(f"M{scale(_gain(pair.loss)):.1f} {height:.1f}h0")
    return "".join(
        f'<path class="dots {kind}" d="{"".join(found)}"/>'
        for kind, found in paths.items()
        if found
    )


def _bar(finding: Finding, scale: _Scale, height: float) -> str:
    ends = _interval(finding)
    if ends is None:
        return ""
    return _line("ci", scale(ends[0]), height, scale(ends[1]), height)


def _mean(finding: Finding, scale: _Scale, height: float, size: float) -> str:
    loss = finite(finding.loss)
    if loss is None:
        return ""
    return _diamond("mean", scale(_gain(loss)), height, size)


def _end_words(finding: Finding, scale: _Scale, height: float, width: float) -> str:
    unit = visible(finding.unit, 24)
    said = []
    for value, place, anchor in ((scale.bottom, 12.0, "start"), (scale.top, width - 12.0, "end")):
        if abs(scale(value) - scale(0.0)) > 110.0:
            said.append(_words(place, height, f"{number(value, 3)} {unit}".strip(), anchor))
    return "".join(said)


def points_of(past: Past, metric_id: str, tonight: tuple[str, float] | None) -> list[Point]:
    """Return the nights that know a metric, tonight at the end."""
    steps = set(past.change_points.get(metric_id, ()))
    found, before = [], None
    for night in past.nights[-MOST_NIGHTS:]:
        value = finite(night.values.get(metric_id))
        moved = before is not None and night.baseline_id != before
        before = night.baseline_id
        if value is not None:
            label = f"{minute(night.created_at)} {visible(night.commit or '')[:12]}".strip()
            found.append(Point(label, value, moved, night.run_id in steps))
    if tonight is not None:
        found.append(Point(tonight[0], tonight[1]))
    return found


def history(points: Sequence[Point], colour: str) -> str:
    """Return the line of past nights; new baselines are dashed, new levels are diamonds."""
    if len(points) < 2:
        return ""
    width, height = CHART
    across = _Scale([0.0, float(len(points) - 1)], 52.0, width - 10.0)
    up = _Scale([point.value for point in points], height - 26.0, 12.0)
    places = [(across(float(at)), up(point.value)) for at, point in enumerate(points)]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    marks = []
    for point, (x, y) in zip(points, places, strict=True):
        if point.new_baseline:
            marks.append(_line("moved", x, 6.0, x, height - 20.0))
        if point.steps:
            marks.append(_diamond("step", x, y, 5.5))
    x, y = places[-1]
    marks.append(f'<circle class="tonight {colour}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
    marks.append(_words(46.0, 16.0, number(up.top, 4), "end"))
    marks.append(
        _words(46.0, height - 23.0, number(up.bottom, 4) if up.top > up.bottom else "", "end")
    )
    marks.append(_words(52.0, height - 5.0, points[0].label[:10], "start"))
    marks.append(_words(width - 4.0, height - 5.0, points[-1].label[:10], "end"))
    body = _line("axis", 52.0, height - 20.0, width - 4.0, height - 20.0)
    body += f'<path class="line" d="M{line}"/>{"".join(marks)}'
    return _svg("history", CHART, body, f"The last {len(points)} nights")


def _svg(kind: str, size: tuple[float, float], body: str, label: str) -> str:
    box = f'viewBox="0 0 {size[0]:.0f} {size[1]:.0f}"'
    return f'<svg class="{kind}" {box} role="img" aria-label="{escape(label)}">{body}</svg>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{kind}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


def _diamond(kind: str, x: float, y: float, size: float) -> str:
    return (
        f'<path class="{kind}" d="M{x - size:.1f} {y:.1f}l{size:g} -{size:g}l{size:g} {size:g}'
        f'l-{size:g} {size:g}z"/>'
    )


def _words(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    if not text:
        return ""
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{mark}>{escape(text)}</text>'
