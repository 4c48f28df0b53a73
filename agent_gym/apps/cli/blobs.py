"""``agent-gym blobs``: step files and models by their hash, on this disk or on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.dry_run import writes
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.core.clock import HOUR_NS, SystemClock
from agent_gym.pipeline.cleanup.blobs import collect, parts_of
from agent_gym.pipeline.cleanup.blobs import verify as verify_blobs
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry import ModelRegistry
from agent_gym.rollouts.blobs import SweepReport, SweepRules
from agent_gym.rollouts.database import TrajectoryStore

app = typer.Typer(no_args_is_help=True)
_JSON = typer.Option("--json", help="Print one JSON document.")
_FOLDER = typer.Option("--folder", help="Where the loop lies; default: the folder of results.")


@app.callback()
def blobs() -> None:
    """Step files and models by their hash, on this disk or on a server (AGENT_GYM_BLOBS)."""


@app.command()
def stats(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Count blobs: how many, how large, and how many of them nobody names."""
    with _open(url, folder) as (store, registry):
        found = [part.stats().as_dict() for part in parts_of(store, registry)]
    rows: list[tuple[object, ...]] = [tuple(part.values()) for part in found]
    emit({"parts": found}, as_json=as_json, view=table("Blobs", tuple(found[0]), rows))


@app.command()
def verify(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Read every byte of every blob that is named; exit code 3 if one is damaged or missing.

    Damaged ones are set aside, and what was recorded in them is no longer trained on.
    """
    with _open(url, folder) as (store, registry):
        checked, wrong = verify_blobs(store, registry)
    rows: list[tuple[object, ...]] = [(found,) for found in wrong] or [("all are whole",)]
    payload = {"ok": not wrong, "checked": checked, "wrong": list(wrong)}
    emit(payload, as_json=as_json, view=table(f"{checked} blobs checked", ("found",), rows))
    if wrong:
        raise typer.Exit(EXIT_DATA)


@app.command()
def gc(
    grace_hours: Annotated[
        float,
        typer.Option(min=0.0, help="How long a blob stays, and then lies in the trash, unnamed."),
    ] = 24.0,
    force: Annotated[
        bool, typer.Option("--force", help="Sweep even a store of which nothing is named.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Remove blobs that no row, no waiting recording and no registered model names.

    They go into the trash first, and for good when they have lain there as long again.
    """
    rules = SweepRules(SystemClock().now_ns(), round(grace_hours * HOUR_NS), dry_run, force)
    with _open(url, folder) as (store, registry):
        done = collect(store, registry, rules)
    payload = {
        "dry_run": dry_run,
        "done": not dry_run,
        "parts": {name: report.as_dict() for name, report in done.items()},
    }
    title = "Dry run: this would go, nothing was done" if dry_run else "Swept"
    rows = [_row(name, report) for name, report in done.items()]
    emit(payload, as_json=as_json, view=table(title, _GC, rows))


@app.command()
@writes("step files that lie here alone, at AGENT_GYM_BLOBS")
def push(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Send step files and models that lie in the workspace alone to where AGENT_GYM_BLOBS says."""
    with _open(url, folder) as (store, registry):
        sent = store.files.blobs.push()
        models = registry.publish_all()
    payload = {"steps": list(sent), "models": list(models)}
    rows: list[tuple[object, ...]] = [("steps", len(sent)), ("models", len(models))]
    emit(payload, as_json=as_json, view=table("Sent", ("part", "blobs or models"), rows))


_GC = ("part", "named", "young", "to trash", "deleted", "restored", "leftovers", "bytes freed")


def _row(name: str, report: SweepReport) -> tuple[object, ...]:
    gone = (len(report.trashed), len(report.deleted), len(report.restored))
    return (name, report.named, report.young, *gone, report.leftovers, report.bytes_freed)


@contextmanager
def _open(url: str | None, folder: Path | None) -> Iterator[tuple[TrajectoryStore, ModelRegistry]]:
    loop = LoopFolder.at(folder)
    with TrajectoryStore.open(url, folder=loop.trajectories) as store:
        yield store, ModelRegistry.open(store.database, loop.models)
