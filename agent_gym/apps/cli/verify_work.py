"""The work of ``agent-gym verify``; it needs the whole loop, and torch with it."""

from __future__ import annotations

from pathlib import Path

import typer
from rich.console import Group, RenderableType

from agent_gym.apps.cli.output import emit, table
from agent_gym.pipeline.harness.checkup import Checkup, check_up
from agent_gym.pipeline.harness.workspace import LoopFolder

FAILED = 1


def check(folder: Path | None, url: str | None, *, as_json: bool) -> None:
    """Look at everything and print what was found."""
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
