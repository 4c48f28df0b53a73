"""Backups: all rows of one moment, and every file that they name.

Rows are read from one snapshot of the database, so recorders may go on. A step file is synced
before the rows that name it, and is never changed, so the files of a snapshot can be copied later.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection, select

from agent_gym.core.errors import ConfigError, DataError, StoreError
from agent_gym.rollouts.database.keeping.dump import (
    Family,
    count_rows,
    own_tables,
    present,
    reflected,
    write_table,
)
from agent_gym.rollouts.database.keeping.manifest import (
    OUTBOX,
    STEPS,
    TABLES,
    BackupManifest,
    TableEntry,
)
from agent_gym.rollouts.database.keeping.place import (
    Steps,
    Watch,
    copy_checked,
    files_held,
    hash_of,
    unwatched,
)
from agent_gym.rollouts.database.outbox import Outbox
from agent_gym.rollouts.database.schema import version_of
from agent_gym.rollouts.database.step_files import StepFiles
from agent_gym.rollouts.database.store import TrajectoryStore

SUFFIX = ".jsonl.zst"


def table_file(folder: Path, name: str) -> Path:
    """Return where the rows of a table lie in a backup."""
    return folder / TABLES / f"{name}{SUFFIX}"


def back_up(
    store: TrajectoryStore,
    target: Path,
    families: Mapping[str, Family],
    watch: Watch = unwatched,
) -> BackupManifest:
    """Write a backup into a new folder; its list comes last, so a cut short one is none.

    Args:
        store: Of any version, see as_it_is().
        target: A folder that is not there yet, or empty.
        families: Tables of others in the same database, by name.
        watch: Told how far it is.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(
            "a backup needs a folder of its own", found=str(target), remedy="Name a new one"
        )
    target.mkdir(parents=True, exist_ok=True)
    with files_held(store.folder, alone=False):
        waiting = _copy_outbox(store, target)  # first: what is delivered meanwhile is in both
        with store.database.snapshot() as connection:
            version = version_of(connection)
            if version is None:
                raise StoreError("there is no store in this database", where=store.database.name)
            created = store.clock.now_ns()
            others = {name: present(connection, family.tables) for name, family in families.items()}
            names = (*present(connection, own_tables()), *(t for ts in others.values() for t in ts))
            tables = {name: _write(connection, name, target, watch) for name in names}
            files = _named(connection) | Outbox(target / OUTBOX).step_files()
        steps, lost = _copy_steps(files, store.files, target, watch)
    made = BackupManifest(
        created_ns=created,
        source=store.database.url.get_backend_name(),
        schema_version=version,
        tables=tables,
        families={name: found for name, found in others.items() if found},
        steps=steps,
        lost=lost,
        outbox=waiting,
    )
    made.write(target)
    return made


def _write(connection: Connection, name: str, target: Path, watch: Watch) -> TableEntry:
    told = Steps(watch, f"rows of {name}", count_rows(connection, name))
    found = write_table(connection, name, table_file(target, name), told)
    return TableEntry(rows=found.rows, sha256=found.sha256)


def _named(connection: Connection) -> set[str]:
    table = reflected(connection, "step_files")
    return set(connection.scalars(select(table.c.file_hash)))


def _copy_steps(
    names: set[str], files: StepFiles, target: Path, watch: Watch
) -> tuple[dict[str, int], dict[str, str]]:
    """Copy the files that rows name; return the size of each, and which could not be copied."""
    kept, steps, lost = StepFiles.within(target / STEPS), {}, {}
    told = Steps(watch, "step files", len(names))
    for name in sorted(names):
        try:
            if files.blobs.is_remote:
                files.blobs.fetch(name)
            source = files.path(name)
            if source.is_symlink():
                raise FileNotFoundError(name)
            steps[name] = copy_checked(source, kept.path(name), name)
        except FileNotFoundError:
            lost[name] = "missing"
        except (DataError, StoreError):
            lost[name] = files.state(name)
        told()
    return steps, lost


def _copy_outbox(store: TrajectoryStore, target: Path) -> dict[str, str]:
    """Copy the recordings that wait; one that is delivered meanwhile is among the rows."""
    found = {}
    for path in store.outbox.waiting():
        try:
            wanted = hash_of(path)
            copy_checked(path, target / OUTBOX / path.name, wanted)
        except FileNotFoundError:
            continue
        found[path.name] = wanted
    return found
