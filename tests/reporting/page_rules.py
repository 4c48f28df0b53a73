"""What every report keeps to: one look, no address, words that stay words, order, print."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

EVIL = "<img src=http://127.0.0.1:9/x onerror=alert(1)></script><script>alert(2)</script>\"'&"
LOOK = (files("agent_gym.evaluation.page") / "assets" / "page.css").read_text(encoding="utf-8")
VOID = {"meta", "br", "input", "link", "img", "hr"}
SHEETS = ("Backtest", "Evaluation", "Sandbox session")


class Seen(HTMLParser):
    """What a page is made of."""

    def __init__(self, kind: str, page: str) -> None:
        super().__init__()
        self.kind, self.page = kind, page
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page)

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


def one_style_whose_colours_stand_once(seen: Seen) -> None:
    style, without_scripts = seen.inside["style"]
    assert style.startswith(LOOK)
    own = style.removeprefix(LOOK)
    assert not re.search(r"#[0-9a-f]{6}|:root|color-scheme|(^|\n|})\s*(body|h1|h2|table)\b", own)
    assert "{" in without_scripts


def nothing_comes_from_elsewhere_and_nothing_else_runs(seen: Seen) -> None:
    metas = {each.get("http-equiv"): each.get("content") for each in seen.having("meta")}
    policy = metas["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.endswith("base-uri 'none'; form-action 'none'")
    assert "http" not in policy
    assert ("'unsafe-inline'" in policy) == (seen.kind in SHEETS)
    assert "unsafe" not in policy.partition("style-src")[0]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    plain = [script for script in seen.inside["script"] if not script.startswith(("{", "["))]
    assert {b64encode(sha256(each.encode()).digest()).decode() for each in plain} <= allowed
    addresses = [each[name] for _, each in seen.tags for name in ("src", "href") if name in each]
    assert [each for each in addresses if not each.startswith(("#", "data:video/mp4;"))] == []
    assert not re.search(r"url\((?!#)|@import", "".join(seen.inside["style"]))


def words_from_outside_stay_words(seen: Seen) -> None:
    assert seen.open == []
    assert seen.having("img", "iframe", "object", "embed", "base", "form", "link") == []
    assert [name for _, each in seen.tags for name in each if name.startswith("on")] == []
    assert any(EVIL in said for said in seen.text)


def headings_are_in_order(seen: Seen) -> None:
    ranks = [int(tag[1]) for tag, _ in seen.tags if re.fullmatch("h[1-6]", tag)]
    assert ranks[0] == 1
    assert ranks.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(ranks))


def pictures_have_words_and_tables_heads(seen: Seen) -> None:
    for drawn in seen.having("svg", "canvas", "video"):
        named = drawn.get("aria-label") and drawn.get("role", "img") == "img"
        assert named or drawn.get("aria-hidden") == "true", drawn
    assert {each.get("scope") for each in seen.having("th")} <= {"col", "row"}
    assert seen.having("html")[0]["lang"] == "en"
    assert re.findall(r"<button[^>]*></button>", seen.page) == []


def the_answer_is_first_and_the_origin_last(seen: Seen) -> None:
    page = seen.page
    assert f'<span class="kind">{seen.kind}</span>' in page
    assert page.index('id="verdict"') < page.index("<h1>") < page.index("<h2>")
    footer = page[page.index("<footer") : page.index("</footer>")]
    assert "Where this comes from" in footer
    assert '<span class="command"><code>' in footer
    assert "<h2>" not in page[page.index("</footer>") :]


def it_prints_in_light_colours_and_cuts_no_row(seen: Seen) -> None:
    style = seen.inside["style"][0]
    rules = style[style.index("@media print") :]
    assert "color-scheme: only light" in rules
    assert re.search(r"\btr\b[^{}]*\{ break-inside: avoid; \}", rules)
    assert "table-header-group" in rules
    assert "overflow: visible" in rules


RULES = (
    one_style_whose_colours_stand_once,
    nothing_comes_from_elsewhere_and_nothing_else_runs,
    words_from_outside_stay_words,
    headings_are_in_order,
    pictures_have_words_and_tables_heads,
    the_answer_is_first_and_the_origin_last,
    it_prints_in_light_colours_and_cuts_no_row,
)
