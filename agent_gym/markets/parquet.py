"""The project's own file of bars: Parquet with the instrument, provenance and a fingerprint.

Other tools read it as a plain table (``ts`` is a UTC timestamp). What this reader hands back is
what was written, to the bit, or an error: the fingerprint of the content is stored and checked.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.files import atomic_path
from agent_gym.core.registry import Config
from agent_gym.markets.bars import PRICE_COLUMNS, Bars, Provenance, extra_names
from agent_gym.markets.instrument import Instrument

SCHEMA_VERSION = 1
METADATA_KEY = b"agent_gym.bars"
SEAL_KEY = b"agent_gym.bars.seal"
UNREADABLE = (pa.ArrowException, OSError, UnicodeError)  # what a damaged file makes Arrow raise


class BarsHeader(Config):
    """What the file says of its rows."""

    schema_version: int
    instrument: Instrument
    period_ns: int
    provenance: Provenance
    fingerprint: str


def write_bars(path: Path, bars: Bars) -> None:
    """Write a series, whole or not at all; equal series give equal bytes."""
    header = BarsHeader(
        schema_version=SCHEMA_VERSION,
        instrument=bars.instrument,
        period_ns=bars.period_ns,
        provenance=bars.provenance,
        fingerprint=bars.fingerprint,
    )
    stamps = pa.array(bars.ts).cast(pa.timestamp("ns", tz="UTC"))
    table = pa.table({"ts": stamps} | {k: pa.array(v) for k, v in bars.columns().items()})
    text = header.model_dump_json().encode()
    table = table.replace_schema_metadata({METADATA_KEY: text, SEAL_KEY: _seal(text)})
    try:
        with atomic_path(path) as temporary:
            pq.write_table(
                table,
                temporary,
                compression="zstd",
                use_dictionary=False,
                use_byte_stream_split=list(bars.columns()),
                column_encoding={"ts": "DELTA_BINARY_PACKED"},
                write_page_checksum=True,
            )
    except OSError as error:
        raise StoreError("cannot write the bars", where=str(path), found=error) from error


def read_native(path: Path) -> Bars:
    """Read a file of ``write_bars``; a changed, torn or newer file is an error."""
    parquet = _open(path)
    header = _header(path, parquet.schema_arrow.metadata or {})
    try:
        table = parquet.read()
    except UNREADABLE as error:
        raise _broken(path, error) from error
    names = tuple(table.column_names)
    extras = extra_names(names)
    if names != ("ts", *PRICE_COLUMNS, *extras):
        raise _broken(path, f"columns {names}")
    prices = {name: _values(path, table, name, pa.float64()) for name in PRICE_COLUMNS}
    bars = Bars(
        instrument=header.instrument,
        period_ns=header.period_ns,
        ts=_values(path, table, "ts", pa.int64()),
        extra={name: _values(path, table, name, pa.float64()) for name in extras},
        provenance=header.provenance,
        **prices,
    )
    if bars.fingerprint != header.fingerprint:
        raise DataError(
            "the content of this file is not what was written",
            where=str(path),
            found=f"fingerprint {bars.fingerprint}",
            expected=header.fingerprint,
            remedy="The file was damaged or edited; make it again from its source",
        )
    return bars


def is_native(path: Path) -> bool:
    """Return whether the file was written by ``write_bars`` (its content may still be damaged)."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return METADATA_KEY in metadata or SEAL_KEY in metadata
    except UNREADABLE:
        return False


def _open(path: Path) -> Any:
    if not path.is_file():
        found = "a directory" if path.is_dir() else "no such file"
        raise DataError("there is no file of bars here", where=str(path), found=found)
    try:
        return pq.ParquetFile(path, page_checksum_verification=True)
    except UNREADABLE as error:
        raise _broken(path, error) from error


def _header(path: Path, metadata: dict[bytes, bytes]) -> BarsHeader:
    if METADATA_KEY not in metadata:
        raise DataError(
            "this Parquet file was not written by agent-gym",
            where=str(path),
            remedy="Read it with markets.readers, or convert it with `agent-gym data import`",
        )
    try:
        fields = json.loads(metadata[METADATA_KEY])
        version = int(fields["schema_version"])
        if version > SCHEMA_VERSION:
            raise DataError(
                "this file was written by a newer agent-gym",
                where=str(path),
                found=f"schema version {version}",
                expected=f"at most {SCHEMA_VERSION}",
                remedy="Upgrade agent-gym, or write the file again with this version",
            )
        header = BarsHeader.model_validate(fields)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise _broken(path, error) from error
    if metadata.get(SEAL_KEY) != _seal(metadata[METADATA_KEY]):
        raise _broken(path, "a header that is not what was written")
    return header


def _seal(header: bytes) -> bytes:
    """Return the hash that shows whether instrument, period or provenance were changed."""
    return blake2b(header, digest_size=16).hexdigest().encode()


def _values(path: Path, table: Any, name: str, kind: Any) -> Any:
    column = table.column(name)
    if column.null_count:
        raise _broken(path, f"{column.null_count} empty cells in column {name}")
    try:
        return np.asarray(column.cast(kind).to_numpy())
    except pa.ArrowException as error:
        raise _broken(path, error) from error


def _broken(path: Path, reason: object) -> DataError:
    return DataError(
        "this file of bars is damaged",
        where=str(path),
        found=reason,
        remedy="Copy it again or make it again from its source",
    )
