"""``agent-gym verify``: is the whole loop in order, and what is to be done next?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType

from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.output import emit, table
from agent_gym.pipeline.harness.checkup import Checkup, check_up
from agent_gym.pipeline.harness.workspace import LoopFolder

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="",
    context_settings={"allow_interspersed_args": True},
)
FAILED = 1


@app.callback()
def verify(
    folder: Annotated[
        Path | None, typer.Option(help="Where the loop lies; default: the folder of results.")
    ] = None,
    url: Annotated[str | None, DATABASE] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check configuration, data, automation and registry, and say what to do next.

    Ends with code 1 if something is wrong; what has merely not happened yet is not wrong.
    """
    place = LoopFolder.at(folder)
    found = check_up(place, url)
    payload = {
        "ok": found.ok,
        "findings": [one.model_dump(mode="json") for one in found.findings],
        "next_steps": list(found.next_steps),
    }
    emit(payload, as_json=as_json, view=_view(found))
    if not found.ok:
        raise typer.Exit(FAILED)


def _view(found: Checkup) -> RenderableType:
    rows: list[tuple[object, ...]] = [
        (one.area, one.name, one.state.upper() if one.state == "bad" else one.state, one.words)
        for one in found.findings
    ]
    steps: list[tuple[object, ...]] = [(step,) for step in found.next_steps]
    parts: list[RenderableType] = [table("The loop", ("area", "what", "state", "found"), rows)]
    if steps:
        parts.append(table("Next", ("what to do",), steps))
    return Group(*parts)
