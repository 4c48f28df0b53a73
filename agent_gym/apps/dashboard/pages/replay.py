"""Replay: a trajectory step by step, with buttons or the arrow keys."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from nicegui import events, ui

from agent_gym.apps.dashboard.charts import BAD, BLUE, lines
from agent_gym.apps.dashboard.figures.trajectories import ReplayFigures, replay_figures
from agent_gym.apps.dashboard.markup import Part, Safe, el, link, text
from agent_gym.apps.dashboard.parts import facts, table
from agent_gym.apps.dashboard.query import Query
from agent_gym.apps.dashboard.view import Block, Chart, Markup, Page, Stage, View, Visit, card
from agent_gym.apps.dashboard.words import Words
from agent_gym.core.clock import SECOND_NS
from agent_gym.reporting.text import number

FAR = 2**31 - 1
LONG = 100


def view(visit: Visit) -> View:
    """Return one step, and where it lies in the whole."""
    words, query = visit.words, visit.query
    found = replay_figures(visit.service, query.get("id"), query.whole("step", 0))
    steps = el(
        "div",
        card(words("replay.observation"), _observation(words, found)),
        card(words("replay.decision"), _decision(words, found)),
        class_="steps",
    )
    blocks: list[Block] = [
        Markup("where", _where(words, found)),
        Markup("step", steps),
        Chart("reward", _option(words, found), words("replay.curve"), 240),
        Markup("around", _around(words, query, found), wide=True),
        Markup("judges", card(words("replay.judges"), _judges(words, found))),
    ]
    return View(words("replay.title", id=found.row.trajectory_id[:12]), tuple(blocks))


def tools(visit: Visit, stage: Stage) -> None:
    """Draw the buttons, and listen to the keys."""
    words = visit.words

    async def move(by: int) -> None:
        here = stage.visit.query
        row = stage.visit.service.stages.store.get(here.get("id"))
        last = max(row.n_steps - 1, 0)
        step = min(max(min(here.whole("step", 0), last) + by, 0), last)
        await stage.go(step=step)

    async def pressed(event: events.KeyEventArguments) -> None:
        if not event.action.keydown:
            return
        ways = {
            "ArrowRight": 1,
            "ArrowLeft": -1,
            "PageDown": LONG,
            "PageUp": -LONG,
            "Home": -FAR,
            "End": FAR,
        }
        if event.key.name in ways:
            await move(ways[event.key.name])

    ui.keyboard(on_key=pressed, ignore=["input", "select", "textarea"])
    with (
        ui.element("div").classes("tools").props(f'role=group aria-label="{words("replay.keys")}"')
    ):
        for label, name, by in (
            ("|◀", "first", -FAR),
            ("◀◀", "far_back", -LONG),
            ("◀", "back", -1),
            ("▶", "next", 1),
            ("▶▶", "far_next", LONG),
            ("▶|", "last", FAR),
        ):
            button = ui.button(label, on_click=lambda by=by: move(by), color=None)
            button.classes("button").props(
                f'flat no-caps dense aria-label="{words(f"replay.{name}")}" data-move={name}'
            )
        ui.html(el("span", words("replay.hint"), class_="faint small"), sanitize=False)


def _where(words: Words, found: ReplayFigures) -> Safe:
    row = found.row
    rows: list[tuple[str, Part]] = [
        (
            words("replay.step"),
            el("b", f"{words.count(found.step)} / {words.count(row.n_steps - 1)}", id="step"),
        ),
        (words("trajectories.agent"), row.agent),
        (words("trajectories.version"), el("code", row.agent_version or "-")),
        (words("trajectories.scenario_id"), row.scenario_id or "-"),
        (words("trajectories.status"), words.said(row.status)),
        (words("replay.total"), number(row.total_reward, 6)),
        (words("trajectories.judge"), number(row.judge_score)),
    ]
    back = link("/dashboard/trajectories", words("replay.all"))
    return el("section", facts(rows), el("p", back, class_="small"), class_="card")


def _observation(words: Words, found: ReplayFigures) -> Safe:
    steps, at = found.steps, found.at
    parts: list[Part] = []
    if steps.text[at]:
        parts.append(el("pre", steps.text[at], id="seen"))
    if steps.observation is None:
        parts.append(el("p", words("replay.no_observation"), class_="faint"))
    else:
        values = steps.observation[at].tolist()
        rows: list[list[Part]] = [
            [name, number(value, 6)] for name, value in zip(found.names, values, strict=True)
        ]
        heads = [words("replay.feature"), words("replay.value")]
        parts.append(table(words("replay.features"), heads, rows, numbers=(1,)))
    return text(*parts)


def _decision(words: Words, found: ReplayFigures) -> Safe:
    steps, at = found.steps, found.at
    action = ", ".join(number(value, 6) for value in steps.action[at].tolist())
    log_prob = float(steps.log_prob[at])
    rows: list[tuple[str, Part]] = [
        (words("replay.action"), el("b", action, id="action")),
        (words("replay.rationale"), el("span", steps.rationale[at] or "-", id="rationale")),
        (words("replay.reward"), el("b", number(float(steps.reward[at]), 6), id="reward")),
        (words("replay.log_prob"), "-" if math.isnan(log_prob) else number(log_prob)),
        (words("replay.policy"), el("code", steps.policy_version[at] or "-")),
        (words("replay.time"), _moment(int(steps.ts[at]))),
        (words("replay.ends"), _end(words, found)),
    ]
    signals = {
        name: float(column[at])
        for name, column in steps.signals.items()
        if not math.isnan(float(column[at]))
    }
    rows += [(name, number(value, 6)) for name, value in signals.items()]
    parts: list[Part] = [facts(rows)]
    if steps.info[at]:
        parts += [el("h3", words("replay.info")), el("pre", steps.info[at])]
    return text(*parts)


def _end(words: Words, found: ReplayFigures) -> str:
    if found.steps.terminated[found.at]:
        return words("replay.terminated")
    return words("replay.truncated") if found.steps.truncated[found.at] else words("replay.goes_on")


def _around(words: Words, query: Query, found: ReplayFigures) -> Safe:
    steps = found.steps
    rows: list[list[Part]] = [
        [
            el("b", f"▸ {words.count(found.first + at)}", aria_current="step")
            if at == found.at
            else link(query.href(step=found.first + at), words.count(found.first + at)),
            ", ".join(number(value) for value in steps.action[at].tolist()),
            number(float(steps.reward[at])),
            (steps.rationale[at] or "")[:200],
        ]
        for at in range(len(steps))
    ]
    heads = [words(f"replay.{name}") for name in ("step", "action", "reward", "rationale")]
    return table(words("replay.around"), heads, rows, numbers=(2,))


def _judges(words: Words, found: ReplayFigures) -> Safe:
    if not found.judgments:
        return el("p", words("replay.no_judge"), class_="faint")
    parts: list[Part] = []
    for each in found.judgments:
        rows: list[tuple[str, Part]] = [
            (words("replay.score"), el("b", number(each.overall_score), class_="score")),
            *((name, number(value)) for name, value in each.component_scores.items()),
            (words("replay.reasoning"), each.reasoning or "-"),
            (words("replay.strengths"), ", ".join(map(str, each.strengths)) or "-"),
            (words("replay.weaknesses"), ", ".join(map(str, each.weaknesses)) or "-"),
        ]
        parts += [el("h3", f"{each.judge_model} {each.judge_version}"), facts(rows)]
    return text(*parts)


def _option(words: Words, found: ReplayFigures) -> dict[str, object]:
    curve = found.curve
    here = {"xAxis": found.step, "lineStyle": {"color": BAD}, "label": {"show": False}}
    series = {
        "name": words("replay.so_far"),
        "lineStyle": {"color": BLUE, "width": 1.5},
        "data": [[int(t), float(v)] for t, v in zip(curve.t, curve.total, strict=True)],
        "markLine": {"symbol": "none", "data": [here]},
    }
    axis = {"type": "value", "min": 0, "max": max(found.row.n_steps - 1, 1)}
    return dict(lines([series], x=axis, y=words("replay.so_far")))


def _moment(ts: int) -> str:
    if ts <= 0:
        return str(ts)
    return f"{datetime.fromtimestamp(ts // SECOND_NS, UTC):%Y-%m-%d %H:%M:%S} UTC"


PAGE = Page(
    "/replay", "trajectories", view, tools=tools, listed=False, live=False, back="/trajectories"
)
