"""The frame of a page as plain HTML: the navigation, the first view, and what errors look like.

The first view is the whole page without its scripts. It can be read, and its links and forms work,
while the library of the pages is still on its way; what is live then takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

from agent_gym.apps.api.front_door import DASHBOARD, LOGOUT
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.view import THEMES, Block, Chart, Page, View, Visit, card
from agent_gym.apps.dashboard.words import LANGUAGES

FRAME_PX = 56


def navigation(here: str, pages: Sequence[Page], visit: Visit) -> Safe:
    """Return the list of pages with the one at a path marked, and who is here."""
    words = visit.words
    items = [
        el(
            "li",
            link(
                f"{DASHBOARD}{each.path}" if each.path != "/" else DASHBOARD,
                words(f"nav.{each.name}"),
                aria_current="page" if each.path == here else None,
            ),
        )
        for each in pages
        if each.listed
    ]
    languages = [
        _choice(LANGUAGES[each], on=each == words.language, lang=each, data_language=each)
        for each in LANGUAGES
    ]
    themes = [
        _choice(words(f"theme.{each}"), on=each == visit.theme, data_theme=each) for each in THEMES
    ]
    who = el("p", visit.token_name, " ", el("span", visit.role, class_="tag"), class_="who")
    leave = el(
        "form",
        el("button", words("logout"), type="submit", class_="plain"),
        method="post",
        action=LOGOUT,
    )
    return text(
        el("a", words("skip"), href="#main", class_="skip"),
        el("p", link(DASHBOARD, "Agent Gym"), class_="brand"),
        el("nav", el("ul", *items), aria_label=words("nav.label")),
        el(
            "div",
            el("div", *languages, role="group", aria_label=words("language")),
            el("div", *themes, role="group", aria_label=words("theme")),
            who,
            leave,
            class_="foot",
        ),
    )


def _choice(label: str, *, on: bool, **attributes: str) -> Safe:
    pressed = "true" if on else "false"
    return el("button", label, type="button", class_="plain", aria_pressed=pressed, **attributes)


def first_view(page: Page, pages: Sequence[Page], visit: Visit, view: View) -> Safe:
    """Return a page as it can be read before any script of the library has come."""
    tools = el("div", class_="tools room") if page.tools is not None and view.found else None
    side = navigation(page.back or page.path, pages, visit)
    return el("div", _in_the_dark(visit.theme), _framed(side, view, tools), id="early")


def error_page(pages: Sequence[Page], visit: Visit) -> str:
    """Return the page for an address that is none."""
    words = visit.words
    home = el("p", link(DASHBOARD, words("error.to_home"), class_="button"))
    said = card(words("error.no_page"), el("p", words("error.no_page_about")), home, tone="bad")
    view = View(words("error.no_page"), ())
    body = _framed(navigation("", pages, visit), view, said)
    return (
        f'<!doctype html><html lang="{words.language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(view.title)} - Agent Gym</title>{head(words.language)}</head>"
        f"<body>{_in_the_dark(visit.theme)}{body}</body></html>"
    )


def _framed(side: Safe, view: View, tools: Part) -> Safe:
    content = el(
        "div",
        el("div", el("h1", view.title), class_="part"),
        tools,
        el("div", *(_block(block) for block in view.blocks), class_="blocks"),
        class_="content",
        id="main",
        role="main",
        tabindex="-1",
    )
    return el(
        "div", el("div", el("div", side, class_="part"), class_="side"), content, class_="frame"
    )


def _block(block: Block) -> Safe:
    if isinstance(block, Chart):
        caption = el("figcaption", el("span", block.label))
        height = f"min-height: {block.height_px + FRAME_PX}px"
        return el("figure", caption, class_="card chart", aria_label=block.label, style=height)
    if block.late:
        return el("div", class_="block")
    return el("div", block.html, class_="block wide" if block.wide else "block")


def _in_the_dark(theme: str) -> Safe:
    """Return what makes a page dark before it is drawn; the library does the same, but later."""
    dark = {
        "dark": "true",
        "light": "false",
        "auto": 'matchMedia("(prefers-color-scheme: dark)").matches',
    }[theme]
    return Safe(f'<script>document.body.classList.toggle("body--dark", {dark});</script>')


@cache
def head(language: str) -> str:
    """Return the styles and the script of the pages, as they stand in a page itself."""
    assert language in LANGUAGES
    room = files("agent_gym.apps.dashboard") / "assets"
    style = (room / "dashboard.css").read_text(encoding="utf-8")
    script = (room / "dashboard.js").read_text(encoding="utf-8")
    return (
        f"<style>{style}</style><script>document.documentElement.lang = {language!r};\n{script}"
        "</script>"
    )
