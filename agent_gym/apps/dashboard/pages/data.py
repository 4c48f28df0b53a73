"""Data sets: the snapshots that agents play and learn from."""

from __future__ import annotations

from agent_gym.apps.dashboard.figures.data import (
    SIZE,
    DataPage,
    SnapshotFigures,
    data_page,
    snapshot_figures,
)
from agent_gym.apps.dashboard.markup import Part, Safe, el, link
from agent_gym.apps.dashboard.parts import facts, folded, pager, replay_link, table
from agent_gym.apps.dashboard.query import place
from agent_gym.apps.dashboard.view import Block, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.files import to_json
from agent_gym.reporting.text import number

HERE = "/dashboard/data"
KIB = 1024


def view(visit: Visit) -> View:
    """Return the list of snapshots, or the one that was asked for."""
    words, name = visit.words, visit.query.get("id")
    if name:
        return _one(words, snapshot_figures(visit.service, name))
    found = data_page(visit.service, visit.query.whole("page", 1, 1))
    said = el("p", words("data.sealed", n=found.sealed), class_="faint")
    if not found.total:
        body = empty(words, "data.none", visit.command("agent-gym harness"))
        none = card(words("nav.data"), body)
        return View(words("nav.data"), (Markup("none", none), Markup("sealed", said)))
    blocks: tuple[Block, ...] = (
        Markup("pager", pager(words, visit.query, found.total, SIZE)),
        Markup("list", _list(words, found), wide=True),
        Markup("sealed", said),
    )
    return View(words("nav.data"), blocks)


def _list(words: Words, found: DataPage) -> Safe:
    rows: list[list[Part]] = [
        [
            link(place(HERE, [("id", row.name)]), row.name[:12], title=row.name, class_="mono"),
            row.snapshot.config.scenario,
            words.count(row.snapshot.ticks),
            words.count(len(row.snapshot.predictions)),
            words.count(len(row.snapshot.perpetuals)),
            words.count(len(row.snapshot.posts)),
            f"{row.size_bytes / KIB:,.0f}",
            words.count(row.trajectories),
        ]
        for row in found.rows
    ]
    names = ("snapshot", "scenario", "ticks", "predictions", "perpetuals", "posts", "size")
    heads = [*(words(f"data.{name}") for name in names), words("data.trajectories")]
    return table(words("data.snapshots"), heads, rows, numbers=range(2, len(heads)))


def _one(words: Words, found: SnapshotFigures) -> View:
    snapshot = found.snapshot
    rows: list[tuple[str, Part]] = [
        (words("data.scenario"), snapshot.config.scenario),
        (words("data.ticks"), words.count(snapshot.ticks)),
        (words("data.predictions"), words.count(len(snapshot.predictions))),
        (words("data.perpetuals"), words.count(len(snapshot.perpetuals))),
        (words("data.posts"), words.count(len(snapshot.posts))),
        (words("data.truth"), el("code", snapshot.truth_hash)),
    ]
    best: list[list[Part]] = [
        [replay_link(row.trajectory_id), row.agent, number(row.total_reward)] for row in found.best
    ]
    heads = [words(f"trajectories.{name}") for name in ("id", "agent", "reward")]
    config = to_json(snapshot.config.model_dump(mode="json"))
    blocks: list[Block] = [
        Markup("about", card(snapshot.id, facts(rows), el("p", link(HERE, words("data.all"))))),
        Markup("config", folded(words("data.config"), el("pre", config))),
    ]
    if best:
        made = table(words("data.best"), heads, best, numbers=(2,))
        blocks.append(Markup("best", made, wide=True))
    return View(words("data.one", id=snapshot.id[:12]), tuple(blocks))


PAGE = Page("/data", "data", view)
