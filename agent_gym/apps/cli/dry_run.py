"""``--dry-run``: a command says what it would do and does nothing."""

from __future__ import annotations

from typing import Any

import typer

from agent_gym.apps.cli.output import emit, table

DRY_RUN: Any = typer.Option("--dry-run", help="Say what would be done, and do nothing.")


def say_plan(what: str, planned: dict[str, Any], *, as_json: bool) -> None:
    """Print what would be done; ``done`` is false in the JSON of every dry run."""
    rows: list[tuple[object, ...]] = [(name, str(value)) for name, value in planned.items()]
    view = table(f"Dry run: this {what}, nothing was done", ("what", "how"), rows)
    emit({"dry_run": True, "done": False, "plan": planned}, as_json=as_json, view=view)
