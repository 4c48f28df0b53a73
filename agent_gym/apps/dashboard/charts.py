"""Charts as ECharts options: plain values; a name can never become code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_gym.apps.dashboard.view import Option

INK, FAINT, LINE = "#7d8a99", "#8d99a6", "rgba(128,140,155,0.28)"
GOOD, BAD, UNSURE, BLUE, ORANGE = "#009E73", "#D55E00", "#E69F00", "#0072B2", "#CC79A7"
COLOURS = (BLUE, "#E69F00", GOOD, ORANGE, "#56B4E9", BAD, "#7d8a99")
_AXIS = {
    "axisLine": {"lineStyle": {"color": FAINT}},
    "axisLabel": {"color": INK},
    "splitLine": {"lineStyle": {"color": LINE}},
    "nameTextStyle": {"color": INK},
}
# Middle greys that can be read on white and on black, since a canvas does not know the theme.
THEME: dict[str, Any] = {
    "color": list(COLOURS),
    "backgroundColor": "transparent",
    "textStyle": {"color": INK},
    "legend": {"textStyle": {"color": INK}},
    "valueAxis": _AXIS,
    "timeAxis": _AXIS,
    "categoryAxis": _AXIS,
    "logAxis": _AXIS,
}


def harmless(option: Any) -> Any:
    """Return an option in which no key is code: the library runs the value of ``:name``.

    Tooltips are drawn as text for the same reason.

    Example:
        >>> harmless({"legend": {":selected": "alert(1)"}})
        {'legend': {' :selected': 'alert(1)'}}
    """
    if isinstance(option, Mapping):
        made = {_key(str(key)): harmless(value) for key, value in option.items()}
        if isinstance(made.get("tooltip"), dict):
            made["tooltip"]["renderMode"] = "richText"
        return made
    if isinstance(option, list | tuple):
        return [harmless(each) for each in option]
    return option


def _key(name: str) -> str:
    return f" {name}" if name.startswith(":") else name


def spoken(option: Option, said: Callable[[str], str]) -> dict[str, Any]:
    """Return a chart of the rooms below whose series, axes and legend are in another language.

    Args:
        option: What was kept.
        said: Says a name in the reader's language.
    """

    def named(parts: Any) -> Any:
        if isinstance(parts, list):
            return [named(part) for part in parts]
        if isinstance(parts, Mapping) and isinstance(parts.get("name"), str):
            return {**parts, "name": said(parts["name"])}
        return parts

    made = {key: named(value) for key, value in option.items()}
    legend = made.get("legend")
    if isinstance(legend, Mapping):
        chosen = legend.get("selected") or {}
        made["legend"] = {
            **legend,
            "data": [said(str(each)) for each in legend.get("data", [])],
            "selected": {said(str(each)): on for each, on in chosen.items()},
        }
    return made


def lines(
    series: Sequence[Mapping[str, Any]],
    *,
    x: Mapping[str, Any],
    y: str = "",
    zoom: bool = False,
) -> Option:
    """Return lines over one axis, with a zoom below them if asked for."""
    drawn = [{"type": "line", "showSymbol": False, "animation": False, **each} for each in series]
    named = [str(each["name"]) for each in series if "name" in each]
    return {
        "animation": False,
        "useUTC": True,
        "legend": {"type": "scroll", "top": 0, "data": named, "show": len(named) > 1},
        "tooltip": {"trigger": "axis", "confine": True},
        "grid": {
            "left": 56,
            "right": 20,
            "top": 52 if y else 36,
            "bottom": 64 if zoom else 28,
        },
        "xAxis": dict(x),
        "yAxis": {"type": "value", "scale": True, "name": y},
        "dataZoom": [{"type": "inside"}, {"type": "slider", "height": 22, "bottom": 8}]
        if zoom
        else [],
        "series": drawn,
    }
