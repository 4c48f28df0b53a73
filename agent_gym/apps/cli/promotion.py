"""``agent-gym promotion``: the error rates of the promotion gate and its monitor, measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.core.files import write_json, write_text
from agent_gym.evaluation.promotion.picture import promotion_svg
from agent_gym.evaluation.promotion.power import promotion_study

EXIT_MISSED = 1
app = typer.Typer(no_args_is_help=True)


@app.callback()
def promotion() -> None:
    """The promotion gate and what it promises."""


@app.command()
@writes("the figures, where --out says")
def power(
    runs: Annotated[int, typer.Option(min=1, help="Simulated cases of a main question.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Root of all randomness.")] = 20_261_116,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    picture: Annotated[Path | None, typer.Option(help="SVG file to draw.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure false promotions, power and false rollbacks on cases whose truth is known.

    Bad rules stand beside them. Exit code 1 says that a target was missed; few runs miss by chance.
    """
    document = promotion_study(runs, seed, workers=workers, say=None if as_json else notes.print)
    if out is not None:
        write_json(out, document)
    if picture is not None:
        write_text(picture, promotion_svg(document))
    emit(document, as_json=as_json, view=table("Promotion gate", _HEADS, _rows(document)))
    if not document["meets_target"]:
        raise typer.Exit(EXIT_MISSED)


_HEADS = (
    "noise",
    "false promotion",
    "95 % interval",
    "power",
    "false rollback",
    "95 % interval",
    "episodes to find -0.6 sd",
)


def _rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for shape, watched in document["rollback"]["shapes"].items():
        false = document["false_promotion"][shape]["first_candidate"]
        rollback = watched["false_rollback"]
        rows.append(
            (
                shape,
                false["share"],
                _range(false),
                document["power"]["shapes"][shape]["share"],
                rollback["share"],
                _range(rollback),
                watched["harm"]["-0.6"]["median_episodes"],
            )
        )
    return rows


def _range(found: dict[str, Any]) -> str:
    return f"{found['low']:.4f} to {found['high']:.4f}"
