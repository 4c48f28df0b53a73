"""A page that needs nobody: answer, sections, origin, and a policy that lets nothing else in.

The content security policy names the scripts and styles that a page carries by their hash, so that
nothing else runs in it, and allows no address at all. Without scripts everything can still be read.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape, unescape
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_gym.core.files import to_json
from agent_gym.evaluation.page.parts import SIGNS, Light, command, pairs, paragraph
from agent_gym.evaluation.page.text import one_line, visible

SCRIPT, STYLE = "page.js", "page.css"
KIND = "agent-gym-report"
HEAD_BYTES = 4_096
NO_SCRIPT = ".copy, #theme { display: none; }"
MARK = (
    '<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7"/>'
    '<path d="M6 21l6-7 5 4 8-10"/></svg>'
)
LONGEST_MANIFEST = 20_000
Theme: TypeAlias = Literal["auto", "light", "dark"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says first: good or bad, in a word, in a line, and why.

    Args:
        light: Colour of the answer.
        word: The verdict in a word or two.
        headline: The page's only heading of the first rank.
        why: Sentences below it.
        more: HTML below those, such as tiles.
    """

    light: Light
    word: str
    headline: str
    why: Sequence[str] = ()
    more: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a page comes from.

    Args:
        commands: What makes it again.
        facts: Names and values; empty values are left out.
        manifest: The manifest as plain values.
        note: A sentence under the heading.
    """

    commands: Sequence[str]
    facts: Mapping[str, str] = field(default_factory=dict)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report.

    Args:
        kind: What sort of report it is.
        about: What it is about, in a line beside the mark of the product.
        title: Title of the window.
        answer: What it says first.
        sections: The rest, as HTML.
        origin: Where it comes from.
        beside: HTML in the line at the top.
    """

    kind: str
    about: str
    title: str
    answer: Answer
    sections: Sequence[str]
    origin: Origin
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Own:
    """What one kind of page needs beyond the common look.

    Args:
        scripts: Run after the common one, in this order.
        style: Rules for parts that only this kind has; colours come from the common style.
        no_script: Rules where scripts are off.
        data: Plain values for the scripts, by the id of their element.
        sources: More of the policy, such as ``media-src data:``.
        inline_styles: Whether elements may have styles of their own.
        theme: How the page begins: light, dark, or as the system has it.
    """

    scripts: Sequence[str] = ()
    style: str = ""
    no_script: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    sources: Sequence[str] = ()
    inline_styles: bool = False
    theme: Theme = "auto"


PLAIN = Own()


def whole_page(page: Page, own: Own = PLAIN) -> str:
    """Return the page as HTML; equal pages give equal text."""
    style, no_script = _asset(STYLE) + own.style, NO_SCRIPT + own.no_script
    scripts = (_asset(SCRIPT), *own.scripts)
    data = "".join(
        f'<script type="application/json" id="{name}">{embedded(value)}</script>\n'
        for name, value in own.data.items()
    )
    run = "\n".join(f"<script>{script}</script>" for script in scripts)
    body = "\n".join((_top(page), "<main>", _banner(page.answer), *filter(None, page.sections)))
    worn = "" if own.theme == "auto" else f' data-theme="{own.theme}"'
    text = "\n".join(
        (
            f'<!doctype html>\n<html lang="en" data-light="{page.answer.light}"{worn}>',
            '<head>\n<meta charset="utf-8">',
            f'<meta name="{KIND}" content="{escape(one_line(page.kind, 60))}">',
            '<meta http-equiv="Content-Security-Policy" '
            f'content="{_policy(scripts, (style, no_script), own)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(visible(page.title, 200))}</title>",
            f"<style>{style}</style>\n<noscript><style>{no_script}</style></noscript>\n</head>",
            f"<body>\n{body}\n</main>\n{_foot(page.origin)}\n{data}{run}\n</body>\n</html>\n",
        )
    )
    # A name with bytes that are no text is shown as its escape, not refused.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def kind_of(path: Path) -> str | None:
    """Return what sort of report a page is, None where a page does not say."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES).decode("utf-8", "replace")
    found = re.search(f'<meta name="{KIND}" content="([^"]*)">', head)
    return None if found is None else unescape(found[1])


def embedded(value: Any) -> str:
    r"""Return JSON that no text in it can break out of a script element with.

    Example:
        >>> print(embedded({"name": "</script>"}))
        {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _policy(scripts: Sequence[str], styles: Sequence[str], own: Own) -> str:
    """Name what may run; hashes beside ``unsafe-inline`` would switch it off."""
    looks = "'unsafe-inline'" if own.inline_styles else " ".join(map(_hash, styles))
    parts = (
        "default-src 'none'",
        f"script-src {' '.join(map(_hash, scripts))}",
        *own.sources,
        f"style-src {looks}",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(parts)


def _top(page: Page) -> str:
    kind, about = escape(one_line(page.kind, 60)), escape(one_line(page.about, 400))
    return (
        f'<header class="top"><p>{MARK}<b>Agent Gym</b> <span class="kind">{kind}</span> '
        f'<span class="faint">{about}</span></p>{page.beside}'
        '<button type="button" id="theme">Dark</button></header>'
    )


def _banner(answer: Answer) -> str:
    why = "".join(map(paragraph, filter(None, answer.why)))
    return (
        f'<section class="banner {answer.light}" id="verdict"><div class="answer">'
        f'<span class="sign" aria-hidden="true">{SIGNS[answer.light]}</span>'
        f'<div><p class="word">{escape(visible(answer.word, 200))}</p>'
        f"<h1>{escape(visible(answer.headline, 400))}</h1>{why}</div></div>{answer.more}</section>"
    )


def _foot(origin: Origin) -> str:
    note = paragraph(origin.note, "faint small") if origin.note else ""
    again = "".join(f"<p>{command(visible(each, 2_000))}</p>" for each in origin.commands if each)
    facts = {name: value for name, value in origin.facts.items() if value}
    shown = visible(to_json(origin.manifest), LONGEST_MANIFEST) if origin.manifest else ""
    manifest = (
        f"<details><summary>Manifest</summary><pre>{escape(shown)}</pre></details>" if shown else ""
    )
    return (
        f'<footer id="provenance"><h2>Where this comes from</h2>{note}<div class="box">{again}'
        f"{pairs(facts) if facts else ''}{manifest}</div></footer>"
    )


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


@cache
def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
