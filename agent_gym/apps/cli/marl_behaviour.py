"""``agent-gym marl behaviour``: how a team fights, beside others on the same starts."""

from __future__ import annotations

import math
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.marl_players import AsJson, Battles
from agent_gym.apps.cli.output import emit, table
from agent_gym.evaluation.battle import METRICS, BehaviourMetric, Comparison, ScriptPlayer, compare
from agent_gym.evaluation.battle.comparison import Figure
from agent_gym.rollouts.progress import progress_bar

USUAL = ("random", "nearest", "focus", "hand-over")
NONE = "-"
SAME = 1e-9
"""Differences below are those of adding up."""


@with_options("battles", Battles, "Who plays what")
def behaviour(
    battles: Battles,
    episodes: Annotated[int, typer.Option(min=2, help="Battles that each of them plays.")] = 100,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="SCRIPT", help=f"May be repeated; default {', '.join(USUAL)}."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure focus fire, overkill, exchange, kiting and survival against random and scripts."""
    player = battles.player()
    others = [ScriptPlayer(name) for name in against or USUAL]
    with progress_bar("battles") as progress:
        found = compare(
            [player, *others],
            battles.battle(player),
            battles.seed,
            episodes,
            lambda done, every: progress(done, every, {"status": "ok"}),
        )
    emit(found.as_dict(), as_json=as_json, view=behaviour_view(found))


def behaviour_view(found: Comparison) -> RenderableType:
    """Return two tables: figures of each team, and the lead of the first over each other one."""
    first, *others = found.teams
    figures: list[tuple[object, ...]] = [
        (f"{_name(each)}\n{each.unit}", *(_words(team.figures[each.name]) for team in found.teams))
        for each in METRICS
    ]
    leads: list[tuple[object, ...]] = [
        (f"{_name(each)}\n{_better(each)}", *(_lead(team.lead, each.name) for team in others))
        for each in METRICS
    ]
    title = f"{found.battle.name}: {found.episodes} battles each, seed {found.seed}"
    names = [team.name for team in found.teams]
    return Group(
        table(title, ("figure", *names), figures),
        table(f"Lead of {first.name}, start by start", ("figure", *names[1:]), leads),
        Text(
            "Means with intervals of 95 %, each for itself; * holds no 0; - is not defined; "
            "one without an interval is the same in every battle."
        ),
    )


def _name(metric: BehaviourMetric) -> str:
    return metric.name.replace("_", " ")


def _better(metric: BehaviourMetric) -> str:
    return "" if metric.better == "neither" else f"({metric.better})"


def _words(figure: Figure) -> str:
    found = figure.interval
    if found is None:
        return NONE
    return figure_words(found.estimate, found.low, found.high)


def _lead(leads: dict[str, Figure] | None, name: str) -> str:
    figure = None if leads is None else leads[name]
    if figure is None or figure.interval is None:
        return NONE
    return _words(figure) + ("" if figure.interval.holds(0.0) else " *")


def figure_words(estimate: float, low: float, high: float) -> str:
    r"""Return a figure and its interval, with as many digits as tell its ends apart.

    Example:
        >>> figure_words(0.9456, 0.91, 0.97), figure_words(217.6, 199.0, 230.4)
        ('.95\n.91 to .97', '218\n199 to 230')
        >>> figure_words(0.0004, 0.0, 0.0012), figure_words(-0.0121, -0.0126, -0.0119)
        ('.0004\n0 to .0012', '-.0121\n-.0126 to -.0119')
        >>> figure_words(0.0, 0.0, 0.0), figure_words(1.0, 1.0, 1.0)
        ('0', '1.00')
    """
    width = high - low
    if width <= SAME:
        return _short(estimate, _digits(estimate))
    digits = _digits(width)
    if abs(estimate) > SAME and round(estimate, digits) == 0.0:
        digits += 1
    return f"{_short(estimate, digits)}\n{_short(low, digits)} to {_short(high, digits)}"


def _digits(size: float) -> int:
    """Return the place of a number's first digit behind the point."""
    return math.ceil(-math.log10(abs(size))) if abs(size) > SAME else 0


def _short(value: float, digits: int) -> str:
    """Return a number without what nobody reads; what would be all zeros is 0."""
    usual = 2 if abs(value) < 10.0 else 1 if abs(value) < 100.0 else 0
    text = f"{value:.{max(usual, digits)}f}"
    if float(text) == 0.0:
        return "0"
    return text.replace("-0.", "-.") if text.startswith("-0.") else text.removeprefix("0")
