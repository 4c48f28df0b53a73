"""Every kind of report wears the one look; that of UMC is held to it in ``test_umc_report``."""

from __future__ import annotations

import re

import pytest

from tests.reporting.page_rules import LOOK, RULES, Seen
from tests.reporting.page_samples import KINDS

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


@pytest.fixture(scope="module", params=list(KINDS))
def seen(request, tmp_path_factory):
    return Seen(request.param, KINDS[request.param](tmp_path_factory.mktemp("run")))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_kind_of_report_keeps_the_rules(seen, rule):
    rule(seen)


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        (RULES[0], "</style>", "h1 { color: #ff0000; }</style>"),
        (RULES[1], "</main>", "<script>1</script></main>"),
        (RULES[1], "</main>", "<a href='http://x'>x</a></main>"),
        (RULES[2], "</main>", "<p onclick='x'>x</p></main>"),
        (RULES[3], "</main>", "<h4>x</h4></main>"),
        (RULES[4], "</main>", "<svg></svg></main>"),
        (RULES[4], "</main>", "<table><tr><th>x</th></tr></table></main>"),
        (RULES[5], "<footer", "<div"),
        (RULES[6], "only light", "dark"),
    ],
)
def test_a_rule_that_is_broken_is_seen(seen, rule, old, new):
    broken = seen.page.replace(old, new, 1)
    assert broken != seen.page
    with pytest.raises((AssertionError, ValueError)):
        rule(Seen(seen.kind, broken))


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
