"""``agent-gym db``: the database of a workspace and its step files, kept for years."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_gym.apps.cli.config_options import with_options
from agent_gym.apps.cli.database_option import DATABASE
from agent_gym.apps.cli.db_view import lines, shown, stats_view
from agent_gym.apps.cli.dry_run import DRY_RUN, say_plan
from agent_gym.apps.cli.output import EXIT_DATA, emit, table
from agent_gym.core.clock import SECOND_NS, SystemClock
from agent_gym.core.errors import StoreError
from agent_gym.pipeline.harness.workspace import LoopFolder
from agent_gym.pipeline.registry.tables import FAMILY
from agent_gym.rollouts.database import TrajectoryStore
from agent_gym.rollouts.database.keeping.backup import back_up
from agent_gym.rollouts.database.keeping.manifest import BackupManifest
from agent_gym.rollouts.database.keeping.place import as_it_is
from agent_gym.rollouts.database.keeping.restore import check_backup, restore, rows_there
from agent_gym.rollouts.database.keeping.retention import RetentionRules, plan_prune, prune
from agent_gym.rollouts.database.keeping.statistics import figures_of
from agent_gym.rollouts.database.schema import SchemaState, prepare, state_of

app = typer.Typer(no_args_is_help=True)
FAMILIES = {"registry": FAMILY}
_FOLDER = typer.Option("--folder", help="Where the loop lies; default: the folder of results.")
_JSON = typer.Option("--json", help="Print one JSON document.")
_BACKUP = typer.Argument(help="Folder of a backup.")
_OUT = typer.Option("--out", help="New folder; default: backups/<time> in the folder of results.")


@app.callback()
def db() -> None:
    """The trajectory store and what keeps it: backup, restore, migrate, prune, stats."""


@app.command()
def backup(
    out: Annotated[Path | None, _OUT] = None,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Write all rows of one moment and every step file that they name into a folder.

    Recorders may go on meanwhile. Every file is hashed. Models and keys lie elsewhere in the
    workspace and are not part of it. Exit code 3 if a step file was missing or damaged.
    """
    with _open(url, folder) as store:
        target = out or _new_folder(folder, "backup")
        if dry_run:
            _plan(store, {"what": "a backup", "to": str(target)}, as_json=as_json)
            return
        with shown(quiet=as_json) as watch:
            made = back_up(store, target, FAMILIES, watch)
    _say_backup(made, target, as_json=as_json)
    if made.lost:
        raise typer.Exit(EXIT_DATA)


@app.command()
def verify(backup: Annotated[Path, _BACKUP], as_json: Annotated[bool, _JSON] = False) -> None:
    """Check every file of a backup against its hash; exit code 3 if one is wrong."""
    with shown(quiet=as_json) as watch:
        made = check_backup(backup, watch)
    _say_backup(made, backup, as_json=as_json)


@app.command("restore")
def restore_command(
    backup: Annotated[Path, _BACKUP],
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Put a backup into an empty database, of the same kind or of the other, and compare it.

    Every hash is checked first, and every row is read again before anything is kept.
    """
    place = LoopFolder.at(folder).trajectories
    if dry_run:
        said = BackupManifest.read(backup).summary()
        planned = {"what": "the rows and files of a backup", "from": str(backup), "to": str(place)}
        say_plan("would be restored", planned | {"backup": said}, as_json=as_json)
        return
    with as_it_is(url, place, new=True) as store, shown(quiet=as_json) as watch:
        done = restore(backup, store, FAMILIES, force=force, watch=watch)
        payload = {"database": store.database.name, "folder": str(place), **done.as_dict()}
    emit(payload, as_json=as_json, view=lines("Restored, and equal to the backup", payload))


@app.command()
def migrate(
    out: Annotated[Path | None, _OUT] = None,
    no_backup: Annotated[bool, typer.Option("--no-backup", help="Take no backup first.")] = False,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    dry_run: Annotated[bool, DRY_RUN] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Bring an older schema up to date, after a backup; a newer one is refused."""
    with _open(url, folder) as store:
        state = state_of(store.database.engine)
        if state.found is None:
            raise StoreError("there is no store in this database", where=store.database.name)
        target = out or _new_folder(folder, f"before-{state.wanted}")
        payload = _told(state, None if no_backup or not state.pending else target)
        if dry_run:
            _plan(store, payload, as_json=as_json)
            return
        if state.pending:
            if not no_backup:
                with shown(quiet=as_json) as watch:
                    back_up(store, target, FAMILIES, watch)
            prepare(store.database.engine)
    title = "Migrated" if state.pending else "Nothing to do: the schema is up to date"
    emit(payload | {"migrated": bool(state.pending)}, as_json=as_json, view=lines(title, payload))


@app.command("prune")
@with_options("rules", RetentionRules, "What is old enough")
def prune_command(
    rules: RetentionRules,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without it, only show.")] = False,
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show, even with --yes.")] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Show which old trajectories would go, with their calls, judgments and step files.

    They go with --yes. What a training batch holds stays.
    """
    with _open(url, folder) as store:
        prepare(store.database.engine)
        if dry_run or not yes:
            found, title = plan_prune(store, rules), "Would go; nothing was removed, add --yes"
        else:
            with shown(quiet=as_json) as watch:
                found, title = prune(store, rules, watch), "Gone"
    payload = found.as_dict() | {"carried_out": yes and not dry_run}
    emit(payload, as_json=as_json, view=lines(title, payload))


@app.command()
def stats(
    url: Annotated[str | None, DATABASE] = None,
    folder: Annotated[Path | None, _FOLDER] = None,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Show rows, bytes, indexes, the oldest and the newest, and what belongs to nobody."""
    with _open(url, folder) as store:
        found = figures_of(store, FAMILIES)
    emit(found.as_dict(), as_json=as_json, view=stats_view(found))


def _open(url: str | None, folder: Path | None) -> TrajectoryStore:
    return as_it_is(url, LoopFolder.at(folder).trajectories)


def _new_folder(folder: Path | None, name: str) -> Path:
    now = datetime.fromtimestamp(SystemClock().now_ns() / SECOND_NS, UTC)
    return LoopFolder.at(folder).path / "backups" / f"{name}-{now:%Y%m%dT%H%M%S}"


def _told(state: SchemaState, target: Path | None) -> dict[str, Any]:
    return {
        "found": state.found,
        "wanted": state.wanted,
        "pending": list(state.pending),
        "backup": None if target is None else str(target),
    }


def _plan(store: TrajectoryStore, said: dict[str, Any], *, as_json: bool) -> None:
    with store.database.snapshot() as connection:
        rows = rows_there(connection, FAMILIES)
    planned = {"database": store.database.name, "rows": rows, **said}
    say_plan("would be done", planned, as_json=as_json)


def _say_backup(made: BackupManifest, target: Path, *, as_json: bool) -> None:
    rows: list[tuple[object, ...]] = [
        (name, entry.rows, entry.sha256[:16]) for name, entry in made.tables.items()
    ]
    rows.append(("step files", len(made.steps), f"{made.n_bytes:,} bytes"))
    rows.append(("waiting recordings", len(made.outbox), ""))
    rows += [("lost step file", name[:16], why) for name, why in made.lost.items()]
    view = table(f"Backup in {target}", ("what", "number", "sha256"), rows)
    emit({"folder": str(target), **made.summary()}, as_json=as_json, view=view)
