"""Restores: a backup is checked, its files are put in place, its rows are put in and compared.

All rows go in within one transaction, and are read again and compared with the backup before it is
kept. A restore that fails leaves the database as it was. The kinds of databases may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, text

from agent_gym.core.errors import DataError, StoreError
from agent_gym.rollouts.database.keeping.backup import table_file
from agent_gym.rollouts.database.keeping.dump import (
    Dumped,
    Family,
    check_file,
    count_rows,
    digest,
    load_table,
    own_tables,
    present,
    reflected,
)
from agent_gym.rollouts.database.keeping.manifest import OUTBOX, STEPS, BackupManifest, TableEntry
from agent_gym.rollouts.database.keeping.place import (
    Steps,
    Watch,
    copy_checked,
    files_held,
    hash_of,
    unwatched,
)
from agent_gym.rollouts.database.schema import VERSION_TABLE, build, prepare
from agent_gym.rollouts.database.step_files import StepFiles
from agent_gym.rollouts.database.store import TrajectoryStore


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore has done.

    Attributes:
        rows: Rows that were put in and compared.
        step_files: Files that are in place and have the right hash.
        copied: Those of them that were not there before.
        lost: Files that the backup does not have.
        outbox: Recordings that wait again.
        replaced: Rows that were there before.
    """

    rows: int
    step_files: int
    copied: int
    lost: int
    outbox: int
    replaced: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def check_backup(folder: Path, watch: Watch = unwatched) -> BackupManifest:
    """Check every file of a backup against its hash; return what it says of itself."""
    manifest = BackupManifest.read(folder)
    for name, entry in manifest.tables.items():
        told = Steps(watch, f"checking {name}", entry.rows)
        _compare(name, check_file(table_file(folder, name), told), entry)
    files, told = (
        StepFiles.within(folder / STEPS),
        Steps(watch, "checking files", len(manifest.steps)),
    )
    for name in manifest.steps:
        if files.state(name) != "whole":
            raise _bad_file(files.path(name), files.state(name))
        told()
    for name, wanted in manifest.outbox.items():
        path = folder / OUTBOX / Path(name).name
        if not path.is_file() or hash_of(path) != wanted:
            raise _bad_file(path, "changed or missing")
    return manifest


def rows_there(connection: Connection, families: Mapping[str, Family]) -> int:
    """Return how many rows a database has; those that a new one has do not count."""
    found = sum(count_rows(connection, name) for name in present(connection, own_tables()))
    for family in families.values():
        rows = sum(count_rows(connection, name) for name in present(connection, family.tables))
        found += max(0, rows - family.first_rows)
    return found


def restore(
    folder: Path,
    store: TrajectoryStore,
    families: Mapping[str, Family],
    *,
    force: bool = False,
    watch: Watch = unwatched,
) -> Restored:
    """Put a backup into a store that is empty; the schema is brought up to date afterwards.

    Args:
        folder: The backup.
        store: Where to, see as_it_is().
        families: Tables of others that the backup may have, by name.
        force: Replace what is there.
        watch: Told how far it is.
    """
    manifest = check_backup(folder, watch)
    strangers = set(manifest.families) - set(families)
    if strangers:
        raise DataError("nobody knows some tables of the backup", found=", ".join(strangers))
    with store.database.snapshot() as connection:
        there = _refuse_rows(connection, families, store, force=force)
    with files_held(store.folder, alone=False):
        copied = _put_files(folder, manifest, store, watch)
        with store.database.writing(limited=False) as connection:
            _lock_out(connection, families)
            there = _refuse_rows(connection, families, store, force=force)
            _make_new(connection, manifest, families)
            _put_rows(connection, folder, manifest, watch)
        for name, wanted in manifest.outbox.items():
            copy_checked(folder / OUTBOX / name, store.outbox.folder / Path(name).name, wanted)
    prepare(store.database.engine)
    return Restored(
        rows=manifest.n_rows,
        step_files=len(manifest.steps),
        copied=copied,
        lost=len(manifest.lost),
        outbox=len(manifest.outbox),
        replaced=there,
    )


def _put_files(folder: Path, manifest: BackupManifest, store: TrajectoryStore, watch: Watch) -> int:
    """Put step files in place; one that is there and whole stays, as names are hashes."""
    kept, told = StepFiles.within(folder / STEPS), Steps(watch, "step files", len(manifest.steps))
    copied = 0
    for name in manifest.steps:
        if store.files.state(name) != "whole":
            copy_checked(kept.path(name), store.files.path(name), name)
            copied += 1
        told()
    store.files.blobs.push()
    return copied


def _refuse_rows(
    connection: Connection, families: Mapping[str, Family], store: TrajectoryStore, *, force: bool
) -> int:
    there = rows_there(connection, families)
    if there and not force:
        raise StoreError(
            "there is something here already",
            where=store.database.name,
            found=f"{there} rows",
            expected="an empty database",
            remedy="Choose another one, or replace it with --force",
        )
    return there


def _lock_out(connection: Connection, families: Mapping[str, Family]) -> None:
    """Let nobody write until the end; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        names = [*own_tables(), *(name for family in families.values() for name in family.tables)]
        for name in present(connection, names):
            connection.execute(text(f'lock table "{name}" in access exclusive mode'))


def _make_new(
    connection: Connection, manifest: BackupManifest, families: Mapping[str, Family]
) -> None:
    """Make the tables as they were when the backup was taken."""
    for name in (*reversed(present(connection, own_tables())), VERSION_TABLE):
        connection.execute(text(f'drop table if exists "{name}"'))
    if connection.dialect.name == "postgresql":
        connection.execute(text("drop function if exists refuse_change_of_events()"))
    build(connection, manifest.schema_version)
    for family in families.values():
        family.remove(connection)
    for name in manifest.families:
        families[name].make(connection)
        for table in manifest.families[name]:
            if count_rows(connection, table):
                connection.execute(delete(reflected(connection, table)))


def _put_rows(connection: Connection, folder: Path, manifest: BackupManifest, watch: Watch) -> None:
    """Put all rows in, then read them again and compare."""
    known = (*own_tables(), *(name for names in manifest.families.values() for name in names))
    if not manifest.tables.keys() <= set(known):
        raise DataError("nobody knows a table of the backup", where=str(folder))
    for name in known:  # each after those that it refers to
        if name in manifest.tables:
            told = Steps(watch, f"rows of {name}", manifest.tables[name].rows)
            load_table(connection, name, table_file(folder, name), told)
    for name, entry in manifest.tables.items():
        told = Steps(watch, f"comparing {name}", entry.rows)
        _compare(name, digest(connection, name, told), entry)


def _compare(name: str, found: Dumped, entry: TableEntry) -> None:
    if (found.rows, found.sha256) != (entry.rows, entry.sha256):
        raise DataError(
            "the rows of a table are not those of the backup",
            where=name,
            found=f"{found.rows} rows, sha256 {found.sha256}",
            expected=f"{entry.rows} rows, sha256 {entry.sha256}",
        )


def _bad_file(path: Path, found: str) -> DataError:
    return DataError("a file of the backup is not what was written", where=str(path), found=found)
