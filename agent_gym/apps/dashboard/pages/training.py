"""Training: curves of every seed, how far each is, checkpoints, videos, and the loop's own jobs."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from agent_gym.apps.dashboard.charts import COLOURS, lines
from agent_gym.apps.dashboard.figures.training import TrainingFigures, training_figures
from agent_gym.apps.dashboard.markup import Part, Safe, el
from agent_gym.apps.dashboard.parts import choose, facts, filters, meter, model_link, stamp, table
from agent_gym.apps.dashboard.query import Query, place
from agent_gym.apps.dashboard.view import Block, Chart, Markup, Page, View, Visit, card, empty
from agent_gym.apps.dashboard.words import Words
from agent_gym.reporting.rl.overview import SeedProgress
from agent_gym.reporting.text import number

SIGNS, DASHES = ("circle", "rect", "triangle", "diamond"), ("solid", "dashed", "dotted")
VIDEO = "/dashboard/files/video"
TRAIN = "agent-gym train --config lander-ppo"


def view(visit: Visit) -> View:
    """Return a training, and what the loop trains."""
    words, query = visit.words, visit.query
    found = training_figures(visit.service, query.get("name"))
    blocks: list[Block] = []
    if found.job is not None:
        blocks.append(Markup("job", _job(words, found)))
    if not found.names:
        none = empty(words, "training.none", visit.command(TRAIN))
        blocks.append(Markup("none", card(words("nav.training"), none)))
    else:
        said = words("training.curves", name=found.chosen)
        blocks += [
            Markup("filter", _filter(words, query, found)),
            Chart("curves", _option(words, found.seeds), said, 380),
            Markup("seeds", _seeds(words, found.seeds), wide=True),
        ]
    blocks.append(Markup("videos", card(words("training.videos"), _videos(visit, found))))
    if found.batches:
        blocks.append(Markup("batches", _batches(words, found), wide=True))
    return View(words("nav.training"), tuple(blocks))


def _job(words: Words, found: TrainingFigures) -> Safe:
    job = found.job
    assert job is not None
    bar = meter(words("training.progress"), job.progress, met=False, tall=True)
    rows: list[tuple[str, Part]] = [
        (words("training.job"), job.job_id),
        (words("training.stage"), job.stage),
        (words("training.status"), words.said(job.status)),
    ]
    return card(words("training.under_way"), bar, facts(rows))


def _filter(words: Words, query: Query, found: TrainingFigures) -> Safe:
    names = [(name, name) for name in found.names]
    chosen = choose(words("training.name"), "name", names, found.chosen)
    return filters(words, query, chosen)


def _option(words: Words, seeds: tuple[SeedProgress, ...]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for at, (arm, group) in enumerate(groupby(seeds, key=lambda each: each.arm)):
        look = {"color": COLOURS[at % len(COLOURS)]}
        series += [
            {
                "name": f"{arm}, {words('training.seed')} {seed.seed}",
                "lineStyle": look | {"width": 1.6, "type": DASHES[place % len(DASHES)]},
                "itemStyle": look,
                "symbol": SIGNS[place % len(SIGNS)],
                "data": [[step, mean] for step, mean in seed.curve],
            }
            for place, seed in enumerate(group)
        ]
    return dict(lines(series, x={"type": "value"}, y=words("training.return"), zoom=True))


def _seeds(words: Words, seeds: tuple[SeedProgress, ...]) -> Safe:
    rows: list[list[Part]] = []
    for seed in seeds:
        share = seed.steps / seed.total if seed.total else 0.0
        bar = meter(words("training.progress"), share, met=share >= 1.0)
        rows.append(
            [
                seed.arm,
                str(seed.seed),
                words.said(seed.status),
                el(
                    "div",
                    bar,
                    el(
                        "span",
                        f"{words.count(seed.steps)} / {words.count(seed.total)}",
                        class_="small",
                    ),
                    class_="progress",
                ),
                number(seed.score),
                number(seed.curve[-1][1] if seed.curve else None),
                ", ".join(words.count(step) for step in seed.checkpoints[-3:]) or "-",
            ]
        )
    names = ("arm", "seed", "status", "progress", "final", "latest", "checkpoints")
    heads = [words.head(words(f"training.{name}")) for name in names]
    return table(words("training.seeds"), heads, rows, numbers=(4, 5), story=heads)


def _videos(visit: Visit, found: TrainingFigures) -> Safe:
    if not found.videos:
        return empty(visit.words, "training.no_videos", visit.command(f"{TRAIN} --video"))
    shown = [
        el(
            "figure",
            el("video", controls=True, preload="none", src=place(VIDEO, [("name", name)])),
            el("figcaption", name, class_="small faint"),
        )
        for name in found.videos
    ]
    return el("div", *shown, class_="grid")


def _batches(words: Words, found: TrainingFigures) -> Safe:
    rows: list[list[Part]] = [
        [
            batch.batch_id,
            words.said(batch.status),
            model_link(batch.model_version),
            number(batch.training_loss),
            number(batch.policy_improvement),
            stamp(batch.completed_ns),
        ]
        for batch in found.batches
    ]
    heads = [
        words(f"training.{name}")
        for name in ("batch", "status", "model", "loss", "improvement", "ended")
    ]
    return table(words("training.batches"), heads, rows, numbers=(3, 4), story=heads)


PAGE = Page("/training", "training", view)
