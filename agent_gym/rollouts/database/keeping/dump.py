"""Rows as lines of JSON, the same for every database, so that two stores can be compared.

A table is written in the order of its primary key. Columns of JSON are kept as the text they are,
numbers so that they read back equal; what is no number (NaN) is null, as everywhere in the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from sqlalchemy import (
    JSON,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    cast,
    func,
    insert,
    inspect,
    select,
    text,
    type_coerce,
)

from agent_gym.core.errors import DataError
from agent_gym.core.files import atomic_path
from agent_gym.rollouts.database.base import Base
from agent_gym.rollouts.database.reading import batched

ROWS_AT_ONCE = 1_000
BLOCK = 1 << 20
CODEC = "zstd"

Tell: TypeAlias = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Family:
    """Tables that belong to somebody, and the way to make them.

    Attributes:
        tables: Their names, each after those that it refers to.
        make: Makes them in a transaction.
        remove: Removes them, if they are there.
        first_rows: Rows that they have when they are new.
    """

    tables: tuple[str, ...]
    make: Callable[[Connection], None]
    remove: Callable[[Connection], None]
    first_rows: int = 0


@dataclass(frozen=True, slots=True)
class Dumped:
    """What a table holds: how many rows, and the hash of their lines."""

    rows: int
    sha256: str


def own_tables() -> tuple[str, ...]:
    """Return the names of the store's own tables, each after those that it refers to."""
    return tuple(table.name for table in Base.metadata.sorted_tables)


def present(connection: Connection, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of some tables that are there, in the same order."""
    there = set(inspect(connection).get_table_names())
    return tuple(name for name in names if name in there)


def reflected(connection: Connection, name: str) -> Table:
    """Return a table as the database has it, whatever its version is."""
    return Table(name, MetaData(), autoload_with=connection, resolve_fks=False)


def count_rows(connection: Connection, name: str) -> int:
    """Return how many rows a table has."""
    table = reflected(connection, name)
    return connection.scalar(select(func.count()).select_from(table)) or 0


def lines_of(connection: Connection, name: str) -> Iterator[bytes]:
    """Yield the rows of a table as lines; some rows at a time are in memory."""
    table = reflected(connection, name)
    columns = [_read(column) for column in table.columns]
    order = [_ordered(column, connection) for column in table.primary_key.columns]
    names = [column.name for column in table.columns]
    chosen, streamed = select(*columns).order_by(*order), {"yield_per": ROWS_AT_ONCE}
    for row in connection.execute(chosen, execution_options=streamed):
        said = {name: _plain(value) for name, value in zip(names, row, strict=True)}
        yield json.dumps(said, allow_nan=False, sort_keys=True).encode() + b"\n"


def digest(connection: Connection, name: str, tell: Tell) -> Dumped:
    """Return what a table holds, without keeping it."""
    return _digested(lines_of(connection, name), lambda _: None, tell)


def write_table(connection: Connection, name: str, path: Path, tell: Tell) -> Dumped:
    """Write a table into a compressed file."""
    with (
        atomic_path(path) as temporary,
        pa.OSFile(str(temporary), "wb") as raw,
        pa.CompressedOutputStream(raw, CODEC) as packed,
    ):
        return _digested(lines_of(connection, name), packed.write, tell)


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that write_table() made."""
    rest = b""
    try:
        with pa.OSFile(str(path), "rb") as raw, pa.CompressedInputStream(raw, CODEC) as unpacked:
            while part := unpacked.read(BLOCK):
                *whole, rest = (rest + part).split(b"\n")
                yield from (line + b"\n" for line in whole)
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            "a file of a backup cannot be read", where=str(path), found=error
        ) from error
    if rest:
        raise DataError("a file of a backup ends within a row", where=str(path))


def check_file(path: Path, tell: Tell) -> Dumped:
    """Return what a file holds."""
    return _digested(read_lines(path), lambda _: None, tell)


def load_table(connection: Connection, name: str, path: Path, tell: Tell) -> None:
    """Put the rows of a file into a table, ids and all."""
    table = reflected(connection, name)
    values = {column.name: _written(column, connection) for column in table.columns}
    statement = insert(table).values(values)
    for some in batched(read_lines(path), ROWS_AT_ONCE):
        rows = [json.loads(line) for line in some]
        if set(rows[0]) != set(values):
            raise DataError(
                "the rows of a backup do not fit the table",
                where=f"{name}, {path}",
                found=", ".join(sorted(set(rows[0]) ^ set(values))),
                expected="the same columns",
            )
        connection.execute(statement, [{f"v_{key}": row[key] for key in row} for row in rows])
        tell(len(rows))
    _go_on_counting(connection, table)


def _digested(lines: Iterable[bytes], put: Callable[[bytes], Any], tell: Tell) -> Dumped:
    found, rows = sha256(), 0
    for some in batched(lines, ROWS_AT_ONCE):
        joined = b"".join(some)
        put(joined)
        found.update(joined)
        rows += len(some)
        tell(len(some))
    return Dumped(rows, found.hexdigest())


def _read(column: Column[Any]) -> Any:
    """Return how a column is asked for: JSON as the text that it is."""
    if isinstance(column.type, JSON):
        return cast(column, Text).label(column.name)
    return column


def _ordered(column: Column[Any], connection: Connection) -> Any:
    """Return the order of a key: that of bytes, whatever language the server speaks."""
    if connection.dialect.name == "postgresql" and isinstance(column.type, String):
        return column.collate("C")
    return column


def _written(column: Column[Any], connection: Connection) -> Any:
    if isinstance(column.type, JSON):
        said = bindparam(f"v_{column.name}", type_=Text())
        if connection.dialect.name == "postgresql":
            return cast(said, JSON)
        return type_coerce(said, Text)
    return bindparam(f"v_{column.name}", type_=column.type)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _go_on_counting(connection: Connection, table: Table) -> None:
    """Let PostgreSQL count on from the largest id; SQLite does so by itself."""
    keys = list(table.primary_key.columns)
    if connection.dialect.name != "postgresql" or len(keys) != 1:
        return
    if not isinstance(keys[0].type, Integer):
        return
    named = {"table": f'"{table.name}"', "column": keys[0].name}
    sequence = connection.scalar(text("select pg_get_serial_sequence(:table, :column)"), named)
    if sequence is not None:
        largest = connection.scalar(select(func.max(keys[0])))
        connection.execute(
            text("select setval(cast(:sequence as regclass), :last, :used)"),
            {"sequence": sequence, "last": largest or 1, "used": largest is not None},
        )
