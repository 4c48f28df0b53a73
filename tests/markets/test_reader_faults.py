from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather
from reader_samples import cell, frame, same_prices, spoiled, stamps, with_time, write_csv

from agent_gym.core.errors import AgentGymError, ConfigError, DataError
from agent_gym.markets.readers import (
    read_bars,
)


def torn_parquet(path: Path) -> None:
    frame().write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])


def torn_feather(path: Path) -> None:
    feather.write_feather(frame().to_arrow(), path)
    path.write_bytes(path.read_bytes()[:300])


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda p: p.write_bytes(b""), "the file is empty"),
    "blank": (lambda p: p.write_bytes(b"\n \n"), "the file is empty"),
    "header only": (lambda p: write_csv(p, frame(0)), "no bars .*0 data rows"),
    "no rows in parquet": (lambda p: frame(0).write_parquet(p), "no bars .*0 data rows"),
    "wrong columns": (
        lambda p: p.write_text("a,b\n1,2\n"),
        "columns of bars are missing: time, open",
    ),
    "no volume": (lambda p: write_csv(p, frame().drop("volume")), "missing: volume"),
    "two of a name": (
        spoiled(lambda x: [x[0] + ",Close", *x[1:]]),
        "two columns have the same name",
    ),
    "no header": (lambda p: p.write_text("1704067200000,1,2,3\n"), "no header line"),
    "garbage": (lambda p: p.write_bytes(bytes(range(256)) * 9), "neither CSV, Parquet nor Feather"),
    "not text": (
        lambda p: p.write_bytes(b"\xff\xfe,\x80\n" * 9),
        "neither CSV, Parquet nor Feather",
    ),
    "torn parquet": (torn_parquet, "parquet file is damaged"),
    "torn feather": (torn_feather, "feather file is damaged"),
    "only the magic": (lambda p: p.write_bytes(b"PAR1"), "parquet file is damaged"),
    "zip": (lambda p: p.write_bytes(b"PK\x03\x04rest"), "packed .*zip.*Unpack"),
    "gzip": (lambda p: p.write_bytes(b"\x1f\x8brest"), "packed .*gzip"),
    "text in a number": (cell(7, 4, "n.b."), r"not a number \(at .* row 7 column 'close'.*'n.b.'"),
    "text in a time": (cell(7, 0, "soon"), "row 7.*'soon'"),
    "empty time": (cell(7, 0, ""), r"no time \(at .* row 7"),
    "negative time": (cell(7, 0, "-5"), "row 7"),
    "too many cells": (spoiled(lambda x: [*x[:7], x[7] + ",1", *x[8:]]), "more cells .*row 7"),
    "blank line": (spoiled(lambda x: [*x[:7], "", *x[7:]]), r"no time \(at .* row 7"),
    "NaN": (cell(7, 4, "NaN"), "nan: close: not a number .*row 7 .*--bad-rows drop"),
    "empty price": (cell(7, 1, ""), "nan: open: not a number .*row 7 .*--bad-rows drop"),
    "infinite": (cell(7, 2, "inf"), "inf: high: not finite .*row 7 .*--bad-rows drop"),
    "zero price": (cell(7, 3, "0"), "low: a price must be above 0 .*row 7 .*--bad-rows drop"),
    "negative price": (cell(7, 1, "-3"), "open: a price must be above 0 .*row 7"),
    "negative volume": (cell(7, 5, "-3"), "volume: a traded amount .*row 7 .*--bad-rows drop"),
    "high below low": (cell(7, 2, "1"), "the high is below the low .*row 7 .*--bad-rows drop"),
    "duplicate": (spoiled(lambda x: [*x[:7], x[6], *x[7:]]), "same time .*row 7 .*--duplicates"),
    "unsorted": (
        spoiled(lambda x: [*x[:7], x[8], x[7], *x[9:]]),
        "row above it has a later time .*row 8 .*--order sort",
    ),
    "gap": (spoiled(lambda x: [*x[:7], *x[9:]]), "no bars from .*row 7 .*2 missing.*--gaps fill"),
    "off the grid": (cell(7, 0, "1704089700000"), "not open on the grid .*row 7 .*--off-grid drop"),
    "truncated last line": (spoiled(lambda x: [*x[:-1], x[-1][:20]]), "nan: .*row 48"),
    "one row": (spoiled(lambda x: x[:2]), "period .* cannot be told .*--period"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_ends_in_a_clear_error(tmp_path: Path, name: str) -> None:
    make, words = BAD_FILES[name]
    path = tmp_path / "bad.csv"
    make(path)
    with pytest.raises(DataError, match=words) as caught:
        read_bars(path)
    assert str(path) in str(caught.value.where)
    assert caught.value.remedy


def test_the_table_of_bad_files_starts_from_a_good_one(tmp_path: Path) -> None:
    spoiled(lambda lines: lines)(tmp_path / "good.csv")
    same_prices(read_bars(tmp_path / "good.csv"))


def test_a_thousands_comma_far_down_does_not_shift_its_row(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", frame(40_000))
    lines = path.read_text().splitlines()
    cells = lines[39_000].split(",")
    lines[39_000] = ",".join([cells[0], "1", *cells[1:]])
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"more cells .*row 39000"):
        read_bars(path)


def test_a_directory_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a directory"):
        read_bars(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        read_bars(tmp_path / "absent.csv")


@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from(["csv", "parquet", "feather"]), data=st.data())
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "a"
    table = with_time("date", stamps())
    if kind == "csv":
        write_csv(path, table)
    elif kind == "parquet":
        table.write_parquet(path)
    else:
        feather.write_feather(table.to_arrow(), path)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + 8] = data.draw(st.binary(max_size=8))
    path.write_bytes(content)
    with suppress(AgentGymError):
        bars = read_bars(path)
        assert (bars.high >= bars.low).all()
