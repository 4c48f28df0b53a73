"""How large a store is, what its indexes are worth, and what nobody owns any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, exists, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from agent_gym.rollouts.blobs.store import DAMAGED
from agent_gym.rollouts.database.keeping.dump import Family, count_rows, own_tables, present
from agent_gym.rollouts.database.schema import state_of
from agent_gym.rollouts.database.step_files import SUFFIX
from agent_gym.rollouts.database.store import TrajectoryStore
from agent_gym.rollouts.database.tables import StepFile, Trajectory

LISTED = 20
SIZES = text(
    "select pg_table_size(c.oid), pg_indexes_size(c.oid), coalesce(s.n_dead_tup, 0), "
    "(select count(*) from pg_inherits i where i.inhparent = c.oid) "
    "from pg_class c left join pg_stat_user_tables s on s.relid = c.oid "
    "where c.oid = to_regclass(:name)"
)
INDEXES = text(
    "select s.indexrelname, s.relname, pg_relation_size(s.indexrelid), s.idx_scan, s.idx_tup_read, "
    "i.indisunique, i.indisvalid from pg_stat_user_indexes s "
    "join pg_index i on i.indexrelid = s.indexrelid where s.relname = any(:names) "
    "and s.schemaname = current_schema() order by s.relname, s.indexrelname"
)
PAGES = text("select name, sum(pgsize) from dbstat where aggregate = true group by name")


@dataclass(frozen=True, slots=True)
class TableFigures:
    """A table: None is what a database does not tell."""

    name: str
    rows: int
    bytes: int | None = None
    index_bytes: int | None = None
    dead_rows: int | None = None
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """An index: how often it was asked since the server's figures began, and rows read each time.

    The more rows a scan reads, the slower it is. One that is unique is needed even if nobody asks.
    """

    name: str
    table: str
    bytes: int | None
    scans: int | None
    rows_per_scan: float | None
    unique: bool
    valid: bool = True

    @property
    def unused(self) -> bool:
        """Whether it costs writes and serves nobody, as far as is known."""
        return self.scans == 0 and not self.unique


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """A store in figures.

    Attributes:
        database: Its address, without the password.
        schema: Version of its tables, and the versions that are to come.
        bytes: Of the database; None if it does not tell.
        tables: Its tables.
        indexes: Their indexes.
        oldest_ns: When the first trajectory was recorded; None without any.
        newest_ns: When the last one was.
        steps: Steps of all trajectories.
        step_files: Files on the disk, and their bytes.
        orphans: What belongs to nobody: see orphans_of().
        waiting: Recordings in the outbox.
    """

    database: str
    schema: dict[str, Any]
    bytes: int | None
    tables: tuple[TableFigures, ...]
    indexes: tuple[IndexFigures, ...]
    oldest_ns: int | None
    newest_ns: int | None
    steps: int
    step_files: dict[str, int]
    orphans: dict[str, Any]
    waiting: int

    def as_dict(self) -> dict[str, Any]:
        """Return the figures by name, and which indexes are not used or slow."""
        slow = sorted(
            (each for each in self.indexes if each.rows_per_scan),
            key=lambda each: -(each.rows_per_scan or 0.0),
        )
        return asdict(self) | {
            "unused_indexes": [each.name for each in self.indexes if each.unused],
            "slowest_indexes": [each.name for each in slow[:5]],
        }


def figures_of(store: TrajectoryStore, families: Mapping[str, Family]) -> StoreFigures:
    """Look at a store; nothing is changed."""
    database, state = store.database, state_of(store.database.engine)
    names = [*own_tables(), *(name for family in families.values() for name in family.tables)]
    with database.snapshot() as connection:
        there = present(connection, names)
        span = select(
            func.min(Trajectory.created_ns),
            func.max(Trajectory.created_ns),
            func.coalesce(func.sum(Trajectory.n_steps), 0),
        )
        oldest, newest, steps = (
            connection.execute(span).one() if "trajectories" in there else (None, None, 0)
        )
        tables, indexes = _tables(connection, there), _indexes(connection, there)
        orphans = orphans_of(connection, store) if "step_files" in there else {}
        n_bytes = _bytes(connection)
    return StoreFigures(
        database=database.name,
        schema={"found": state.found, "wanted": state.wanted, "pending": list(state.pending)},
        bytes=n_bytes,
        tables=tables,
        indexes=indexes,
        oldest_ns=oldest,
        newest_ns=newest,
        steps=int(steps),
        step_files=_on_disk(store),
        orphans=orphans,
        waiting=len(store.outbox.waiting()),
    )


def orphans_of(connection: Connection, store: TrajectoryStore) -> dict[str, Any]:
    """Return files without a row, rows without a file, and files of no trajectory.

    Files are looked for, not read: TrajectoryStore.check() tells whether they are whole.
    """
    known = set(connection.scalars(select(StepFile.file_hash)))
    there = store.files.names()
    named = select(Trajectory.id).where(Trajectory.step_file == StepFile.file_hash)
    unowned = connection.scalar(select(func.count()).select_from(StepFile).where(~exists(named)))
    strays, missing = sorted(there - known), sorted(known - there)
    return {
        "files_without_row": len(strays),
        "rows_without_file": len(missing),
        "files_of_no_trajectory": unowned or 0,
        "examples": (strays + missing)[:LISTED],
    }


def _on_disk(store: TrajectoryStore) -> dict[str, int]:
    sizes = [path.stat().st_size for path in store.files.folder.glob(f"??/*{SUFFIX}")]
    damaged = list((store.files.folder / DAMAGED).glob(f"*{SUFFIX}"))
    return {"files": len(sizes), "bytes": sum(sizes), "damaged": len(damaged)}


def _bytes(connection: Connection) -> int | None:
    if connection.dialect.name == "postgresql":
        found = connection.scalar(text("select pg_database_size(current_database())"))
        return None if found is None else int(found)
    pages, size = (
        connection.scalar(text(f"pragma {name}")) for name in ("page_count", "page_size")
    )
    return int(pages or 0) * int(size or 0)


def _tables(connection: Connection, names: tuple[str, ...]) -> tuple[TableFigures, ...]:
    if connection.dialect.name != "postgresql":
        sizes, owner = _page_sizes(connection), _owners(connection, names)
        return tuple(
            TableFigures(
                name,
                count_rows(connection, name),
                sizes.get(name),
                sum(size for each, size in sizes.items() if owner.get(each) == name)
                if sizes
                else None,
            )
            for name in names
        )
    made = []
    for name in names:
        row = connection.execute(SIZES, {"name": name}).one()
        made.append(TableFigures(name, count_rows(connection, name), *map(int, row)))
    return tuple(made)


def _indexes(connection: Connection, names: tuple[str, ...]) -> tuple[IndexFigures, ...]:
    if connection.dialect.name == "postgresql":
        rows = connection.execute(INDEXES, {"names": list(names)}).all()
        return tuple(
            IndexFigures(name, table, int(size), scans, read / scans if scans else None, one, valid)
            for name, table, size, scans, read, one, valid in rows
        )
    sizes, look = _page_sizes(connection), inspect(connection)
    return tuple(
        IndexFigures(
            str(each["name"]), name, sizes.get(str(each["name"])), None, None, bool(each["unique"])
        )
        for name in names
        for each in look.get_indexes(name)
    )


def _page_sizes(connection: Connection) -> dict[str, int]:
    """Return bytes by table and index of SQLite; nothing if it was built without that."""
    try:
        return {name: int(size) for name, size in connection.execute(PAGES)}
    except DBAPIError:
        return {}


def _owners(connection: Connection, names: tuple[str, ...]) -> dict[str, str]:
    rows = connection.execute(text("select name, tbl_name from sqlite_master where type = 'index'"))
    return {name: table for name, table in rows if table in names}
