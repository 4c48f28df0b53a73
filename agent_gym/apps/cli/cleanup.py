"""``agent-gym cleanup``: what could go from the folder of results, and then, if told so, goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.output import EXIT_RUN, emit, report, table
from agent_gym.core.clock import SystemClock
from agent_gym.core.errors import ConfigError
from agent_gym.core.files import home
from agent_gym.pipeline.cleanup import (
    CleanupPlan,
    CleanupResult,
    CleanupRules,
    Item,
    carry_out,
    plan_cleanup,
)
from agent_gym.pipeline.nightly import LockHeld
from agent_gym.pipeline.nightly.exits import LOCKED

app = typer.Typer(invoke_without_command=True, subcommand_metavar="")

RESULTS_PAGES = Path("docs") / "results"
UNITS = ("bytes", "kB", "MB", "GB", "TB")


@app.callback()
@with_options("rules", CleanupRules, "What is old enough")
def cleanup(
    rules: CleanupRules,
    pages: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of pages that may refer to results, repeatable; `docs/results` is "
            "looked at anyway."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without it, only show.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show, even with --yes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show what would go from the folder of results and how much it is; remove it with --yes.

    Baselines, models, what a report or a results page refers to and what is under way stay.
    """
    clock = SystemClock()
    plan = plan_cleanup(home(), rules, clock, places(pages or []))
    if dry_run or not yes:
        emit(plan.as_dict() | {"carried_out": False}, as_json=as_json, view=plan_view(plan))
        return
    try:
        done = carry_out(plan, clock)
    except LockHeld as error:
        report(error, as_json=as_json)
        raise typer.Exit(LOCKED) from error
    payload = plan.as_dict() | {"carried_out": True} | done.as_dict()
    emit(payload, as_json=as_json, view=done_view(plan, done))
    if done.left:
        raise typer.Exit(EXIT_RUN)


def places(said: Sequence[Path]) -> list[Path]:
    """Return where pages lie that may refer to results; one that is named must be there."""
    for path in said:
        if not path.is_dir():
            raise ConfigError(
                "there is no such folder of pages",
                where="--pages",
                found=str(path),
                remedy="Check the path: what it refers to could be removed otherwise",
            )
    return [*said, *([RESULTS_PAGES] if RESULTS_PAGES.is_dir() else [])]


def plan_view(plan: CleanupPlan) -> RenderableType:
    """Return what would go and what stays, for a person."""
    parts: list[RenderableType] = []
    if plan.goes:
        parts.append(_listed("Would go", plan.goes))
    if plan.stays:
        parts.append(_listed("Stays", plan.stays))
    if plan.goes:
        text = f"{len(plan.goes)} would go: {size(plan.n_bytes)}. Nothing was removed; add --yes."
    else:
        text = f"Nothing in {plan.root} would go."
    return Group(*parts, Text(text, style="bold"))


def done_view(plan: CleanupPlan, done: CleanupResult) -> RenderableType:
    """Return what has gone, for a person."""
    parts: list[RenderableType] = []
    if done.removed:
        parts.append(_listed("Gone", done.removed))
    if done.left:
        parts.append(_listed("Could not go", done.left))
    text = (
        f"{len(done.removed)} removed, {size(done.n_bytes)} are free."
        if plan.goes
        else f"Nothing in {plan.root} had to go."
    )
    return Group(*parts, Text(text, style="bold"))


def size(n_bytes: int) -> str:
    """Return a size as people say it.

    Example:
        >>> size(999), size(2_500_000)
        ('999 bytes', '2.5 MB')
    """
    value, unit = float(n_bytes), UNITS[0]
    for larger in UNITS[1:]:
        if value < 1_000:
            break
        value, unit = value / 1_000, larger
    return f"{n_bytes} bytes" if unit == UNITS[0] else f"{value:.1f} {unit}"


def _listed(title: str, items: Sequence[Item]) -> RenderableType:
    rows: list[tuple[object, ...]] = [
        (item.path, item.kind, size(item.n_bytes), item.files, item.why) for item in items
    ]
    return table(title, ("what", "kind", "size", "files", "why"), rows)
