"""Every kind of report wears the one look, asks nobody, prints, and can be read by everybody."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import pytest

from tests.reporting.page_samples import EVIL, KINDS

LOOK = (files("agent_gym.evaluation.page") / "assets" / "page.css").read_text(encoding="utf-8")
VOID = {"meta", "br", "input", "link", "img", "hr"}
TOKEN = re.compile(r"(--[\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
SMALL_TEXT = 4.5  # what WCAG 2 asks for at level AA
ON = {
    "--ink": ("--paper", "--card", "--box", "--good-bg", "--bad-bg", "--unsure-bg", "--hint-bg"),
    "--faint": ("--paper", "--card", "--box"),
    "--focus": ("--paper", "--card"),
    **{
        f"--{tone}": (f"--{tone}-bg", "--card")
        for tone in ("good", "bad", "unsure", "hint", "same")
    },
}


class Seen(HTMLParser):
    """Keeps what a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        self.inside.get(where, self.text).append(data)

    def having(self, *names):
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module", params=list(KINDS))
def page(request, tmp_path_factory):
    text = KINDS[request.param](tmp_path_factory.mktemp("run"))
    return request.param, text, Seen(text)


def test_there_is_one_style_and_its_colours_stand_once(page):
    _, text, seen = page
    style, without_scripts = seen.inside["style"]
    assert style.startswith(LOOK)
    own = style.removeprefix(LOOK)
    assert not re.search(r"#[0-9a-f]{6}|:root|color-scheme|(^|\n|})\s*(body|h1|h2|table)\b", own)
    assert "{" in without_scripts
    assert text.count("<style>") == 2


def test_nothing_comes_from_elsewhere_and_nothing_else_runs(page):
    kind, _, seen = page
    metas = {each.get("http-equiv"): each.get("content") for each in seen.having("meta")}
    policy = metas["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.endswith("base-uri 'none'; form-action 'none'")
    assert "http" not in policy
    sheets = ("Backtest", "Evaluation", "Sandbox session")
    assert ("'unsafe-inline'" in policy) == (kind in sheets)
    assert "unsafe" not in policy.partition("style-src")[0]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    plain = [script for script in seen.inside["script"] if not script.startswith(("{", "["))]
    assert {b64encode(sha256(each.encode()).digest()).decode() for each in plain} <= allowed
    addresses = [each[name] for _, each in seen.tags for name in ("src", "href") if name in each]
    assert [each for each in addresses if not each.startswith(("#", "data:video/mp4;"))] == []
    assert not re.search(r"url\((?!#)|@import", "".join(seen.inside["style"]))


def test_words_from_outside_stay_words(page):
    _, _, seen = page
    assert seen.open == []
    assert seen.having("img", "iframe", "object", "embed", "base", "form", "link") == []
    assert [name for _, each in seen.tags for name in each if name.startswith("on")] == []
    assert any(EVIL in said for said in seen.text)


def test_headings_are_in_order(page):
    _, _, seen = page
    ranks = [int(tag[1]) for tag, _ in seen.tags if re.fullmatch("h[1-6]", tag)]
    assert ranks[0] == 1
    assert ranks.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(ranks))


def test_what_is_drawn_has_words_and_tables_have_heads(page):
    _, text, seen = page
    for drawn in seen.having("svg", "canvas", "video"):
        named = drawn.get("aria-label") and drawn.get("role", "img") == "img"
        assert named or drawn.get("aria-hidden") == "true", drawn
    assert {each.get("scope") for each in seen.having("th")} <= {"col", "row"}
    assert seen.having("html")[0]["lang"] == "en"
    assert re.findall(r"<button[^>]*></button>", text) == []


def test_it_says_what_it_is_first_and_where_it_comes_from_last(page):
    kind, text, _ = page
    assert f'<span class="kind">{kind}</span>' in text
    assert text.index('id="verdict"') < text.index("<h1>") < text.index("<h2>")
    footer = text[text.index("<footer") : text.index("</footer>")]
    assert "Where this comes from" in footer
    assert '<span class="command"><code>' in footer
    assert "<h2>" not in text[text.index("</footer>") :]


def test_it_prints_in_light_colours_and_cuts_no_table(page):
    style = page[2].inside["style"][0]
    rules = style[style.index("@media print") :]
    assert "color-scheme: only light" in rules
    assert re.search(r"\btr\b[^{}]*\{ break-inside: avoid; \}", rules)
    assert "table-header-group" in rules
    assert "overflow: visible" in rules


def test_all_colours_have_the_contrast_that_small_text_needs():
    themes = [dict(), dict()]
    for name, *both in TOKEN.findall(LOOK):
        for theme, colour in zip(themes, both, strict=True):
            theme[name] = colour
    poor = [
        (front, back, at)
        for at, theme in enumerate(themes)
        for front, backs in ON.items()
        for back in backs
        if contrast(theme[front], theme[back]) < SMALL_TEXT
    ]
    assert poor == []
    assert contrast("#999999", "#ffffff") < SMALL_TEXT < contrast("#000000", "#ffffff")


def contrast(first: str, second: str) -> float:
    """Return the ratio of luminances as WCAG 2 defines it."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
