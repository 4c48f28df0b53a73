"""Battles: those that were kept, and one of them played again."""

from __future__ import annotations

from agent_gym.apps.dashboard.figures.battles import (
    SIZE,
    BattlePage,
    battle_header,
    battle_page,
)
from agent_gym.apps.dashboard.markup import Part, Safe, el, link
from agent_gym.apps.dashboard.parts import facts, pager, table
from agent_gym.apps.dashboard.query import place
from agent_gym.apps.dashboard.view import Block, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.evaluation.battle import Header
from agent_gym.reporting.battle import outcome
from agent_gym.reporting.text import number

HERE, VIEWER = "/dashboard/battles", "/dashboard/files/battle"
RECORD = "agent-gym marl record --script focus --episodes 3"


def view(visit: Visit) -> View:
    """Return the list of battles, or the one that was asked for."""
    words, name = visit.words, visit.query.get("name")
    if name:
        return _one(visit, name, battle_header(visit.service, name))
    found = battle_page(visit.service, visit.query.whole("page", 1, 1))
    if not found.total:
        none = empty(words, "battles.none", visit.command(RECORD))
        return View(words("nav.battles"), (Markup("none", card(words("nav.battles"), none)),))
    blocks: tuple[Block, ...] = (
        Markup("pager", pager(words, visit.query, found.total, SIZE)),
        Markup("list", _list(words, found), wide=True),
    )
    return View(words("nav.battles"), blocks)


def _list(words: Words, found: BattlePage) -> Safe:
    rows: list[list[Part]] = []
    for row in found.rows:
        told = row.header
        if told is None:
            rows.append([row.name, el("span", row.problem, class_="worse"), "-", "-", "-", "-"])
            continue
        rows.append(
            [
                link(place(HERE, [("name", row.name)]), row.name),
                _ending(words, told),
                told.map,
                told.player,
                words.count(told.steps),
                number(told.total_reward),
            ]
        )
    heads = [
        words(f"battles.{name}") for name in ("file", "ending", "map", "player", "steps", "return")
    ]
    return table(words("nav.battles"), heads, rows, numbers=(4, 5))


def _ending(words: Words, told: Header) -> Safe:
    tone, sign = ("good", "✓") if told.won else ("bad", "✗")
    return el("span", f"{sign} {words.said(outcome(told))}", class_=f"tag {tone}")


def _one(visit: Visit, name: str, told: Header) -> View:
    words = visit.words
    rows: list[tuple[str, Part]] = [
        (words("battles.ending"), _ending(words, told)),
        (words("battles.map"), told.map),
        (words("battles.player"), told.player),
        (words("battles.return"), number(told.total_reward)),
        (words("battles.seed"), f"{told.seed}, {told.episode}"),
    ]
    frame = el(
        "iframe",
        src=place(VIEWER, [("name", name), ("theme", visit.theme)]),
        class_="viewer",
        title=words("battles.viewer", name=name),
    )
    blocks = (
        Markup("about", card(name, facts(rows), el("p", link(HERE, words("battles.all"))))),
        Markup("viewer", frame, late=True),
    )
    return View(words("battles.one", map=told.map), blocks)


PAGE = Page("/battles", "battles", view, live=False)
