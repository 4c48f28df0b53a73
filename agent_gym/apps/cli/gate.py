"""``agent-gym gate``: the error rates of the regression gate, measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.output import emit, notes, table
from agent_gym.core.files import write_json, write_text
from agent_gym.evaluation.gate.power import power_study
from agent_gym.evaluation.gate.power_picture import power_svg

EXIT_MISSED = 1
app = typer.Typer(no_args_is_help=True)


@app.callback()
def gate() -> None:
    """The regression gate and what it promises."""


@app.command()
def power(
    suites: Annotated[int, typer.Option(min=1, help="Simulated suites for each question.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Root of all randomness.")] = 20_261_116,
    out: Annotated[Path | None, typer.Option(help="JSON file to write.")] = None,
    picture: Annotated[Path | None, typer.Option(help="SVG file to draw.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Measure false alarms and power of the gate on suites whose truth is known.

    Exit code 1 says that the target was missed; with few suites the bounds are too wide to meet it.
    """
    document = power_study(suites, seed, say=None if as_json else notes.print)
    if out is not None:
        write_json(out, document)
    if picture is not None:
        write_text(picture, power_svg(document))
    emit(document, as_json=as_json, view=table("Gate", _HEADS, _rows(document)))
    if not document["meets_target"]:
        raise typer.Exit(EXIT_MISSED)


_HEADS = ("noise", "false alarms", "at most (95 %)", "power of a 5 % loss", "flagged", "target")


def _rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    return [
        (
            name,
            figures["false_alarm"],
            figures["false_alarm_upper95"],
            figures["power"],
            figures["flagged"],
            "met" if figures["meets_target"] else "missed",
        )
        for name, figures in document["shapes"].items()
    ]
