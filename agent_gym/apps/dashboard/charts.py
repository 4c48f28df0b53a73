"""Charts as ECharts options: plain values; a name can never become code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from agent_gym.apps.dashboard.view import Option

CARD, INK, LINE = "#ffffff", "#465260", "#d5dbe2"
BLUE, AMBER, GOOD, PINK, SKY, BAD = "#0072b2", "#a87200", "#00845f", "#b85a91", "#2b86b8", "#c95800"
COLOURS = (BLUE, AMBER, GOOD, PINK, SKY, BAD, "#7a5cc0")
# Charts are made for the light page; these take the place of their colours on the dark one.
_AT_NIGHT = {
    CARD: "#171e26",
    INK: "#b7c2cd",
    LINE: "#2f3a46",
    BLUE: "#4fb0ee",
    AMBER: "#f2b632",
    GOOD: "#2fc79a",
    PINK: "#e39cc6",
    SKY: "#8fd3ff",
    BAD: "#ff8b45",
    "#7a5cc0": "#ab93f0",
    "#009e73": "#2fc79a",
    "#d55e00": "#ff8b45",
    "#cc79a7": "#e39cc6",
}
# The library runs these; they are the only code that a chart has.
_RUSSIAN = {
    "value": """(value) => value.toLocaleString("en", {maximumFractionDigits: 9})
      .replaceAll(",", "\\u00a0")""",
    "time": """(value) => {
      const at = new Date(value), two = (n) => String(n).padStart(2, "0");
      if (at.getUTCHours() || at.getUTCMinutes())
        return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
      if (at.getUTCDate() > 1) return String(at.getUTCDate());
      const names = "янв фев мар апр май июн июл авг сен окт ноя дек".split(" ");
      return at.getUTCMonth() ? names[at.getUTCMonth()] : String(at.getUTCFullYear());
    }""",
}
_SHADES = "markArea"  # its colours stand in tables too, and are pale enough for both pages
_AXIS = {
    "axisLine": {"lineStyle": {"color": INK}},
    "axisLabel": {"color": INK, "hideOverlap": True},
    "splitLine": {"lineStyle": {"color": LINE}},
    "nameTextStyle": {"color": INK},
}
_SLIDER = {"textStyle": {"color": INK}, "borderColor": LINE}
_THEME: dict[str, Any] = {
    "color": list(COLOURS),
    "backgroundColor": "transparent",
    "textStyle": {"color": INK},
    "legend": {"textStyle": {"color": INK}, "pageTextStyle": {"color": INK}},
    "tooltip": {"backgroundColor": CARD, "borderColor": LINE, "textStyle": {"color": INK}},
    "dataZoom": _SLIDER,
    "valueAxis": _AXIS,
    "timeAxis": _AXIS,
    "categoryAxis": _AXIS,
    "logAxis": _AXIS,
}


def theme(*, night: bool) -> dict[str, Any]:
    """Return what the library draws with on a light or a dark page."""
    return cast(dict[str, Any], dressed(_THEME, night=night))


def dressed(option: Any, *, night: bool) -> Any:
    """Return an option in the colours of a light or a dark page.

    Example:
        >>> dressed({"lineStyle": {"color": "#0072B2"}}, night=True)
        {'lineStyle': {'color': '#4fb0ee'}}
    """
    if not night:
        return option
    if isinstance(option, Mapping):
        return {
            key: value if key == _SHADES else dressed(value, night=True)
            for key, value in option.items()
        }
    if isinstance(option, list | tuple):
        return [dressed(each, night=True) for each in option]
    return _AT_NIGHT.get(option.lower(), option) if isinstance(option, str) else option


def local(option: Any, language: str) -> Any:
    """Return a harmless option whose axes speak a language; the library itself speaks English.

    Example:
        >>> local({"xAxis": {"type": "log"}}, "en")
        {'xAxis': {'type': 'log'}}
    """
    if language != "ru":
        return option
    axes = {name: _spoken_axes(option[name]) for name in ("xAxis", "yAxis") if name in option}
    return {**option, **axes}


def _spoken_axes(axes: Any) -> Any:
    if isinstance(axes, list):
        return [_spoken_axes(axis) for axis in axes]
    code = _RUSSIAN.get(axes.get("type", ""))
    if code is None:
        return axes
    return {**axes, "axisLabel": {**axes.get("axisLabel", {}), ":formatter": code}}


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
