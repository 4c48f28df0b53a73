"""Trajectories: what was recorded, found by who played it and how it went."""

from __future__ import annotations

from typing import get_args

from agent_gym.apps.dashboard.figures.trajectories import COUNTED, TrajectoryPage, trajectory_page
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.parts import choose, filters, model_link, replay_link, stamp, table
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Block, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.reporting.text import number
from agent_gym.rollouts.database.tables import Purpose, TrajectoryStatus

SORTS = ("id", "created_ns", "n_steps", "total_reward", "judge_score")
HEADS = (
    "id",
    "agent",
    "version",
    "scenario_id",
    "status",
    "steps",
    "reward",
    "judge",
    "recorded",
)
STATES = get_args(TrajectoryStatus)
PURPOSES = get_args(Purpose)


def view(visit: Visit) -> View:
    """Return one page of the trajectories."""
    words, query = visit.words, visit.query
    chosen: dict[str, object] = {
        name: query.get(name)
        for name in ("agent", "agent_version", "scenario_id")
        if query.get(name)
    }
    for name, known in (("status", STATES), ("purpose", PURPOSES)):
        if query.choice(name, known):
            chosen[name] = query.get(name)
    sort = query.choice("sort", SORTS, "id")
    found = trajectory_page(visit.service, chosen, sort, query.get("after") or None)
    blocks: list[Block] = [Markup("filter", _filter(words, query, sort))]
    if found.rows:
        blocks += [
            Markup("more", _more(words, query, found)),
            Markup("list", _table(words, found), wide=True),
        ]
    else:
        key = "trajectories.none_fit" if chosen else "trajectories.none"
        command = "" if chosen else visit.command("agent-gym harness")
        blocks.append(Markup("none", card(words("nav.trajectories"), empty(words, key, command))))
    return View(words("nav.trajectories"), tuple(blocks))


def _filter(words: Words, query: Query, sort: str) -> Safe:
    every = ("", words("filter.all"))
    fields = [
        el(
            "label",
            words(f"trajectories.{name}"),
            el("input", name=name, type="search", value=query.get(name), maxlength=120),
        )
        for name in ("agent", "scenario_id")
    ]
    states = [every, *((each, words.said(each)) for each in STATES)]
    purposes = [every, *((each, words.said(each)) for each in PURPOSES)]
    sorts = [(each, words(f"trajectories.by_{each}")) for each in SORTS]
    return filters(
        words,
        query,
        *fields,
        choose(words("trajectories.status"), "status", states, query.get("status")),
        choose(words("trajectories.purpose"), "purpose", purposes, query.get("purpose")),
        choose(words("compare.sort"), "sort", sorts, sort),
        clear=True,
    )


def _more(words: Words, query: Query, found: TrajectoryPage) -> Safe:
    ways: list[Part] = []
    if query.get("after"):
        ways.append(link(query.href(after=None), words("pager.first"), class_="button"))
    if found.after:
        ways.append(link(query.href(after=found.after), words("pager.next"), class_="button"))
    total = f"{words.count(COUNTED)}+" if found.total > COUNTED else words.count(found.total)
    said = words("trajectories.shown", n=len(found.rows), total=total)
    return el(
        "div",
        el("span", said, class_="faint", role="status"),
        el("nav", *(text(each, " ") for each in ways), aria_label=words("pager.label")),
        class_="pager",
    )


def _table(words: Words, found: TrajectoryPage) -> Safe:
    rows: list[list[Part]] = [
        [
            replay_link(row.trajectory_id) if row.n_steps else el("code", row.trajectory_id[:12]),
            row.agent,
            model_link(row.agent_version),
            row.scenario_id or "-",
            words.said(row.status),
            words.count(row.n_steps),
            number(row.total_reward),
            number(row.judge_score),
            stamp(row.created_ns),
        ]
        for row in found.rows
    ]
    heads = [words(f"trajectories.{name}") for name in HEADS]
    return table(words("nav.trajectories"), heads, rows, numbers=(5, 6, 7))


PAGE = Page("/trajectories", "trajectories", view)
