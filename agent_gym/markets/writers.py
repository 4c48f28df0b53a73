"""Write bars in the format that the name of the file promises: Parquet, CSV or Feather.

Only our own Parquet keeps the instrument, the provenance and a fingerprint. The other two are for
other programs; read back, their times and numbers are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.files import atomic_path
from agent_gym.markets.bars import Bars
from agent_gym.markets.parquet import write_bars

_TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%.fZ"


def format_of(path: Path) -> str:
    """Return the format that a file name stands for; another ending is a ConfigError.

    Example:
        >>> format_of(Path("btc.CSV"))
        'csv'
    """
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise ConfigError(
            "no format is known by this ending of a file name",
            where=str(path),
            found=suffix or "no ending",
            expected=f"one of {', '.join(_FORMATS)}",
            remedy=f"Call it for example {path.stem or 'bars'}.parquet",
        )
    return _FORMATS[suffix]


def write_series(path: Path, bars: Bars) -> str:
    """Write bars in the format of the file name, whole or not at all, and return the format."""
    form = format_of(path)
    if form == "parquet":
        write_bars(path, bars)
        return form
    try:
        with atomic_path(path) as temporary:
            _WRITERS[form](_table(bars), temporary)
    except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as error:
        raise StoreError("cannot write the bars", where=str(path), found=error) from error
    return form


def _table(bars: Bars) -> Any:
    stamps = pa.array(bars.ts).cast(pa.timestamp("ns", tz="UTC"))
    return pa.table({"ts": stamps} | {k: pa.array(v) for k, v in bars.columns().items()})


def _write_csv(table: Any, path: Path) -> None:
    frame = pl.DataFrame(table)
    # A missing value is an empty cell, which every program reads as missing.
    frame = frame.with_columns(
        pl.col("ts").dt.strftime(_TIME_FORMAT), pl.col(pl.Float64).fill_nan(None)
    )
    frame.write_csv(path)


def _write_feather(table: Any, path: Path) -> None:
    feather.write_feather(table, str(path), compression="zstd")


_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".feather": "feather",
    ".arrow": "feather",
}
_WRITERS: dict[str, Callable[[Any, Path], None]] = {"csv": _write_csv, "feather": _write_feather}
