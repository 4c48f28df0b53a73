"""Take the columns that are wanted out of a CSV, Parquet or Feather file."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.feather as feather
import pyarrow.parquet as pq

from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.markets.parquet import UNREADABLE
from agent_gym.markets.readers.layout import Column, Layout, match
from agent_gym.markets.readers.opening import Opened, open_file

_DECIMAL_COMMA = r"^\s*[+-]?\d+,\d+\s*$"
_EMPTY = ("", "nan", "na", "n/a", "null", "none")


@dataclass(frozen=True, slots=True)
class Table:
    """The wanted columns of a file under our own names, as they are stored."""

    path: Path
    format: str
    frame: pl.DataFrame
    columns: dict[str, Column]
    price_divisor: float | None = None

    def cell(self, row: int) -> str:
        """Return a place in the file in words; rows count from 1."""
        return f"{self.path} row {row}"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written: what parts the cells, whether they are named, how many."""

    separator: str
    named: bool
    width: int


def load_table(path: Path, layout: Layout) -> Table:
    """Read the columns of a layout from a CSV, Parquet or Feather file, packed or not."""
    opened = open_file(path)
    table = (_load_csv if opened.form == "csv" else _load_arrow)(opened, layout)
    if table.frame.height == 0:
        raise DataError(
            f"the file has no {layout.noun}",
            where=str(path),
            found="0 data rows",
            expected="at least one row",
            remedy="Copy or download it again",
        )
    return table


def numbers(table: Table, name: str, *, divisor: float | None = None) -> FloatArray:
    """Return a column as float64; an empty cell is NaN, text is an error with its row."""
    series = table.frame[name]
    if series.dtype == pl.String:
        values = _parsed(table, name, series)
    elif series.dtype.is_numeric():
        values = series.cast(pl.Float64)
    else:
        raise DataError(
            "a column does not hold numbers",
            where=f"{table.path} column {table.columns[name].name!r}",
            found=series.dtype,
            expected="numbers, or text that is numbers",
            remedy="Store the column as numbers",
        )
    array: FloatArray = values.fill_null(np.nan).to_numpy()
    scale = divisor or table.columns[name].divisor
    with np.errstate(over="ignore"):  # an infinite price is found and named by the check
        return array if scale == 1.0 else array / scale


def _parsed(table: Table, name: str, series: pl.Series) -> pl.Series:
    values = series.cast(pl.Float64, strict=False)
    failed = values.is_null() & series.is_not_null()
    if not failed.any():
        return values
    # Padding and names for "missing" are looked at only where the quick way has failed.
    text = series.str.strip_chars()
    values = text.cast(pl.Float64, strict=False)
    failed = values.is_null() & ~text.str.to_lowercase().is_in(_EMPTY).fill_null(value=True)
    if failed.any():
        at = int(failed.arg_true()[0])
        raise DataError(
            "a cell is not a number",
            where=f"{table.cell(at + 1)} column {table.columns[name].name!r}",
            found=f"{series[at]!r}; {int(failed.sum())} such cells in all",
            expected="a number with a decimal point, such as 1234.5",
            remedy="Write decimals with a point and thousands without a mark"
            if re.match(_DECIMAL_COMMA, str(series[at]))
            else "Correct the cell; leave it empty if the value is unknown",
        )
    return values


def _load_arrow(opened: Opened, layout: Layout) -> Table:
    path, form, source = opened.path, opened.form, opened.stream()
    try:
        stored = pq.ParquetFile(source) if form == "parquet" else feather.read_table(source)
        schema = stored.schema_arrow if form == "parquet" else stored.schema
        columns = match(layout, schema.names, where=str(path))
        wanted = [column.name for column in columns.values()]
        table = stored.read(columns=wanted) if form == "parquet" else stored.select(wanted)
        frame = pl.DataFrame(
            {name: pl.from_arrow(table.column(at.name)) for name, at in columns.items()}
        )
    except (*UNREADABLE, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"this {form} file is damaged or of a kind that cannot be read",
            where=str(path),
            found=str(error)[:300],
            remedy="Copy it again or make it again from its source",
        ) from error
    return Table(path, form, frame, columns, _divisor(path, schema))


def _divisor(path: Path, schema: Any) -> float | None:
    """Return the integer price scale that a file states in its metadata, if it does."""
    text = (schema.metadata or {}).get(b"price_tick")
    if text is None:
        return None
    try:
        divisor = float(text)
    except ValueError:
        divisor = np.nan
    if not (np.isfinite(divisor) and divisor > 0.0):
        raise DataError(
            "the price scale in the file is not a number above 0",
            where=str(path),
            found=text,
            expected="a number above 0 as price_tick in the metadata",
            remedy="Make the file again, or remove price_tick and say --price-divisor",
        )
    return divisor


def _load_csv(opened: Opened, layout: Layout) -> Table:
    path = opened.path
    line = (opened.head.splitlines() or [b""])[0].decode("utf-8-sig")
    separator = max(",;\t|", key=line.count)
    cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    if len(cells) == 1:
        raise DataError(
            f"columns of {layout.noun} are missing: {', '.join(layout.required)}",
            where=f"{path} header",
            found=f"one cell in the first line: {line[:100]!r}",
            expected="cells parted by a comma, a semicolon, a tab or a bar (|)",
            remedy="Save it with commas between the cells, if this is a table at all",
        )
    named = not _looks_like_data(cells)
    header = cells if named else _positions(path, layout, len(cells))
    columns = match(layout, header, where=f"{path} header" if named else str(path))
    places = {name: header.index(column.name) for name, column in columns.items()}
    frame = _read_csv(opened, Dialect(separator, named, len(cells)), places)
    return Table(path, "csv", _without_blank_end(frame), columns)


def _read_csv(opened: Opened, dialect: Dialect, places: dict[str, int]) -> pl.DataFrame:
    names = [str(place) for place in range(dialect.width)]
    try:
        # All columns are read: with only some of them the parser does not see a cell too many,
        # such as a thousands comma, that moves the rest of its row to the right.
        frame = pl.scan_csv(
            opened.stream(),
            has_header=False,
            skip_rows=1 if dialect.named else 0,
            separator=dialect.separator,
            schema=dict.fromkeys(names, pl.String),
            missing_columns="insert",
            raise_if_empty=False,
            glob=False,
        ).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _unreadable(opened, dialect, reason=str(error)) from error
    return frame.select(pl.col(names[place]).alias(name) for name, place in places.items())


def _unreadable(opened: Opened, dialect: Dialect, *, reason: str) -> DataError:
    row = _first_ragged(opened, dialect)
    if row is None:
        return DataError(
            "this CSV file cannot be read",
            where=str(opened.path),
            found=reason.strip().partition("\n")[0][:300],
            expected="rows of text in UTF-8",
            remedy="Save it as CSV UTF-8",
        )
    return DataError(
        "a row has more cells than the file has columns",
        where=f"{opened.path} row {row}",
        expected=f"{dialect.width} cells",
        remedy="Correct the row; decimals take a point and thousands no mark",
    )


def _first_ragged(opened: Opened, dialect: Dialect) -> int | None:
    content = opened.content
    file = opened.path.open("rb") if content is None else io.BytesIO(content)
    with io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="") as stream:
        lines = csv.reader(stream, delimiter=dialect.separator)
        try:
            for row, cells in enumerate(lines, 0 if dialect.named else 1):
                if len(cells) > dialect.width:
                    return row
        except csv.Error:
            return None
    return None


def _looks_like_data(cells: list[str]) -> bool:
    return len(cells) > 1 and cells[0][:1].isdigit() and cells[1][:1].isdigit()


def _positions(path: Path, layout: Layout, width: int) -> list[str]:
    if width not in layout.headerless:
        known = " or ".join(map(str, layout.headerless)) or "none"
        raise DataError(
            "the file has no header line",
            where=str(path),
            found=f"{width} columns without names",
            expected=f"a header, or without one {known} columns",
            remedy=f"Add a header line that names the columns: {', '.join(layout.required)}",
        )
    return list(layout.headerless[width])


def _without_blank_end(frame: pl.DataFrame) -> pl.DataFrame:
    filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return frame.head(int(filled[-1]) + 1 if len(filled) else 0)
