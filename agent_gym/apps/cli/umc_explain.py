"""``agent-gym umc explain``: what it believed at a moment, and why it traded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from agent_gym.apps.cli.output import emit, table
from agent_gym.evaluation.umc_walk import Explanation, explain, open_run
from agent_gym.markets.quality import format_time
from agent_gym.markets.readers import parse_time

FIGURES = {
    "expected_return_bp": "expected return, bp",
    "expected_return_se_bp": "give or take, bp",
    "sigma_bp": "deviation of a bar, bp",
    "coherence": "coherence",
    "information_gain": "information gain, nats",
    "lambda": "lambda",
    "surprise": "surprise of this bar, nats",
}


def explain_decision(
    run: Annotated[Path, typer.Option(help="Folder that `umc backtest` has written.")],
    at: Annotated[str, typer.Option(help="Time of the test, such as 2024-05-01T12:00; UTC.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say what UMC believed at a time of the test and why it traded.

    Told is the last decision at or before that time, by the very agent that made it.
    """
    found = explain(open_run(run), parse_time(at, where="option --at"))
    emit(found.as_dict(), as_json=as_json, view=_view(found))


def _view(found: Explanation) -> RenderableType:
    parts: list[RenderableType] = [
        Text(f"{format_time(found.ts_ns)}, fold {found.fold}, {found.tier}", style="bold"),
        Text(found.sentence),
        _plain("What it believed", _beliefs(found), ("", "")),
        _plain(
            "Heads",
            [(h.name, f"{100 * h.chance:.1f} %", f"{h.expected_bp:+.3f}") for h in found.heads],
            ("head", "chance", "next bar, bp"),
        ),
    ]
    if found.regimes:
        rows = [(name, f"{100 * belief:.1f} %") for name, belief in found.regimes.items()]
        parts.append(_plain("Regime", rows, ("macrostate", "belief")))
    parts.append(_plain("Free energy, nats; less is better", _levels(found), LEVEL_HEADS))
    if not found.same:
        parts.append(
            Text(
                "The saved agent no longer says what was recorded: this is another version of the "
                "program than the one that made the run",
                style="bold red",
            )
        )
    return Group(*parts)


LEVEL_HEADS = ("position", "from now on", "next bar", "risk", "ambiguity", "information")


def _beliefs(found: Explanation) -> list[tuple[str, ...]]:
    rows = [(text, _number(found.figures[name])) for name, text in FIGURES.items()]
    held = (("held before", found.held), ("chosen", found.chosen), ("traded", found.traded))
    return [*rows, *((text, _signed(value)) for text, value in held)]


def _levels(found: Explanation) -> list[tuple[str, ...]]:
    rows = []
    for level in found.levels:
        mark = " *" if level.position == found.chosen else ""
        planned = "not allowed" if level.planned is None else f"{level.planned:.5f}"
        terms = (level.free_energy, level.risk, level.ambiguity)
        rows.append(
            (
                f"{_signed(level.position)}{mark}",
                planned,
                *(f"{value:.5f}" for value in terms),
                f"{level.information:.2e}",
            )
        )
    return rows


def _signed(position: float) -> str:
    return f"{position:+.4g}" if position else "0"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.4g}"


def _plain(title: str, rows: Sequence[tuple[str, ...]], heads: tuple[str, ...]) -> Table:
    made = table(title, heads, [tuple(row) for row in rows])
    made.box, made.show_header = box.SIMPLE_HEAD, any(heads)
    for column in made.columns[1:]:
        column.justify, column.no_wrap = "right", True
    return made
