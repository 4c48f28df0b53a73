"""HTML from parts: whatever is not made here is text, and text is always escaped."""

from __future__ import annotations

import re
from html import escape
from typing import TypeAlias

from agent_gym.reporting.text import visible

LONGEST_TEXT = 20_000
VOID = ("br", "input", "img", "wbr")
_JOINT = re.compile(r"(?<=[/_])(?=[^/_])")
_SAFE_LINKS = ("/dashboard", "?", "#")


class Safe(str):
    """HTML that was put together here."""

    __slots__ = ()


Part: TypeAlias = "str | Safe | int | float | None"


def el(name: str, /, *children: Part, **attributes: str | int | bool | None) -> Safe:
    """Return an element; names of attributes are written with ``_`` for ``-``.

    An attribute that is None or False is left out, one that is True stands without a value.

    Example:
        >>> el("td", "<b>", class_="num")
        '<td class="num">&lt;b&gt;</td>'
    """
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Safe(f"<{name}{said}>")
    return Safe(f"<{name}{said}>{text(*children)}</{name}>")


def text(*parts: Part) -> Safe:
    """Return parts one after another; what is not HTML of ours is escaped.

    Example:
        >>> text("a & b", el("br"), 3)
        'a &amp; b<br>3'
    """
    return Safe("".join(_escaped(part) for part in parts))


def breakable(name: str) -> Safe:
    """Return a name that a narrow screen may break behind ``/`` and ``_``, and nowhere in a word.

    Example:
        >>> breakable("crash/max_drawdown")
        'crash/<wbr>max_<wbr>drawdown'
    """
    parts = _JOINT.split(visible(name, LONGEST_TEXT))
    return Safe(el("wbr").join(escape(part) for part in parts))


def link(href: str, /, *children: Part, **attributes: str | int | bool | None) -> Safe:
    """Return a link to somewhere in the dashboard; any other address is refused."""
    if not href.startswith(_SAFE_LINKS) or href.startswith("//"):
        raise ValueError(f"not a place in the dashboard: {href!r}")
    return el("a", *children, href=href, **attributes)


def _escaped(part: Part) -> str:
    if part is None:
        return ""
    if isinstance(part, Safe):
        return str(part)
    return escape(visible(str(part), LONGEST_TEXT))


def _attribute(name: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escape(visible(str(value)))}"'
