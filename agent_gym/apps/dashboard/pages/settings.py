"""Settings: how the service runs, whether it is healthy, and what the doctor says."""

from __future__ import annotations

from agent_gym.apps.dashboard.figures.settings import SettingsFigures, settings_figures
from agent_gym.apps.dashboard.markup import Part, Safe, el, link
from agent_gym.apps.dashboard.parts import facts, folded, stamp, table
from agent_gym.apps.dashboard.view import Block, Markup, Page, View, Visit, card
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.files import to_json

STATES = {"ok": "good", "absent": "unsure", "problem": "bad"}


def view(visit: Visit) -> View:
    """Return the settings."""
    words, query = visit.words, visit.query
    asked = query.flag("doctor")
    found = settings_figures(visit.service, tokens=visit.may("admin"), doctor=asked)
    ask = link(query.href(doctor=1), words("settings.ask"), class_="button", id="doctor")
    blocks: list[Block] = [Markup("health", card(words("settings.health"), _health(words, found)))]
    if found.findings is None:
        body = (el("p", words("settings.about"), class_="faint"), el("p", ask))
        blocks.append(Markup("ask", card(words("settings.doctor"), *body)))
    else:
        blocks.append(Markup("findings", _findings(words, found), wide=True))
    if found.tokens is not None:
        blocks.append(Markup("tokens", _tokens(words, found), wide=True))
    settings = el("pre", to_json(found.settings))
    blocks.append(Markup("settings", folded(words("settings.service"), settings)))
    return View(words("nav.settings"), tuple(blocks))


def _health(words: Words, found: SettingsFigures) -> Safe:
    rows: list[tuple[str, Part]] = [
        (words("settings.version"), found.version),
        (words("settings.folder"), el("code", found.folder)),
    ]
    for name, value in found.health.items():
        good = value in ("healthy", "ok")
        shown = el("span", words.said(str(value)), class_="tag good" if good else "tag")
        rows.append((words.known("settings", name), shown))
    return facts(rows)


def _findings(words: Words, found: SettingsFigures) -> Safe:
    rows: list[list[Part]] = [
        [
            words.said(each.name),
            el("span", words.said(each.status), class_=f"tag {STATES[each.status]}"),
            words.said(each.found),
            words.said(each.remedy),
        ]
        for each in found.findings or ()
    ]
    heads = [words(f"settings.{name}") for name in ("what", "status", "found", "remedy")]
    return table(words("settings.doctor"), heads, rows, story=heads)


def _tokens(words: Words, found: SettingsFigures) -> Safe:
    rows: list[list[Part]] = [
        [
            each.name,
            el("code", each.id),
            each.role,
            stamp(each.created_ns),
            words("settings.never") if each.expires_ns is None else stamp(each.expires_ns),
        ]
        for each in found.tokens or ()
    ]
    heads = [words(f"settings.{name}") for name in ("name", "id", "role", "made", "expires")]
    return table(words("settings.tokens"), heads, rows)


PAGE = Page("/settings", "settings", view, live=False)
