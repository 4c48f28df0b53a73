"""The raw rows of a log, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from agent_gym.core.errors import DataError
from agent_gym.evaluation.scenarios.recorded.places import Place
from agent_gym.evaluation.scenarios.recorded.source import (
    STREAMS,
    LogNames,
    RecordedSource,
    Stream,
)
from agent_gym.evaluation.scenarios.recorded.sqlite_log import read_tables, table_streams

Row: TypeAlias = Mapping[str, Any] | str  # a text says why there is no row
MAX_LINE = 2**20
BATCH_ROWS = 16_384


def streams_of(place: Place, names: LogNames) -> tuple[Stream, ...]:
    """Return the streams that a file has even if they are empty: its tables, or its own stream."""
    if place.stream is not None:
        return (place.stream,)
    return table_streams(place.path, names) if place.format == "sqlite" else ()


def read_rows(
    place: Place, names: LogNames, source: RecordedSource
) -> Iterator[tuple[Stream | None, int, Row]]:
    """Yield stream, number from 1 and content of each row; numbers count within table or file.

    In a one-file log rows of streams that are none of ours are passed over, and the stream is None
    where it is not told.
    """
    by_name = {names.table(stream): stream for stream in STREAMS}
    if place.format == "sqlite":
        yield from read_tables(place.path, names)
    elif place.format == "jsonl":
        yield from _sorted_out(_read_jsonl(place.path), place, names.stream_field, by_name)
    else:
        rows = _read_parquet(place.path, source.max_bytes)
        yield from _sorted_out(rows, place, names.stream_field, by_name)


def _sorted_out(
    rows: Iterator[tuple[int, Row]], place: Place, field: str, by_name: Mapping[str, Stream]
) -> Iterator[tuple[Stream | None, int, Row]]:
    for number, row in rows:
        if place.stream is not None or isinstance(row, str):
            yield place.stream, number, row
            continue
        told = row.get(field)
        if told is None:
            yield None, number, f"no field {field!r} tells the stream"
        elif str(told) in by_name:
            yield by_name[str(told)], number, row


def _read_jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with _opened(path) as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                while not line.endswith(b"\n") and (line := file.readline(MAX_LINE)):
                    pass
                yield number, f"a line of more than {MAX_LINE:,} bytes"
                continue
            if not line.strip():
                continue
            try:
                yield number, decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                yield number, f"not a JSON object: {str(error)[:120]}"


def _opened(path: Path) -> BinaryIO:
    """Open a file for reading, unless it was made a link since it was looked at."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def _read_parquet(path: Path, max_bytes: int) -> Iterator[tuple[int, Row]]:
    try:
        with _opened(path) as handle, pq.ParquetFile(handle) as file:
            _check_unpacked(path, file.metadata, max_bytes)
            number = 0
            for batch in file.iter_batches(BATCH_ROWS):
                for row in _plain_times(pa.Table.from_batches([batch])).to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "the Parquet file cannot be read", where=str(path), found=str(error)[:200]
        ) from error


def _plain_times(table: pa.Table) -> pa.Table:
    """Return the table with times as nanoseconds, which lose nothing on their way to Python."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            nanos = table.column(index).cast(pa.timestamp("ns", tz=field.type.tz), safe=False)
            table = table.set_column(index, field.name, nanos.cast(pa.int64()))
    return table


def _check_unpacked(path: Path, facts: Any, max_bytes: int) -> None:
    size = sum(facts.row_group(index).total_byte_size for index in range(facts.num_row_groups))
    if size > max_bytes:
        raise DataError(
            "the log is larger than allowed once it is unpacked",
            where=str(path),
            found=f"{size:,} bytes",
            expected=f"at most {max_bytes:,}",
            remedy="Cut the log, or raise max_bytes",
        )
