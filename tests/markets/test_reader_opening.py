"""What a path can lead to: packed files, other encodings, wrong names, things that are no file."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from reader_samples import DATA, FUNDING, frame, same_prices, stamps, with_time, write_csv

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.readers import ReadRequest, opening, read_bars, read_funding, read_raw


def text(header: bool = True) -> bytes:
    return frame().write_csv(include_header=header).encode()


def parquet() -> bytes:
    sink = io.BytesIO()
    with_time("date", stamps()).write_parquet(sink)
    return sink.getvalue()


def zipped(**members: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


READABLE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("a.csv.gz", lambda: gzip.compress(text())),
    "two gzips in one": ("a.gz", lambda: gzip.compress(text()[:500]) + gzip.compress(text()[500:])),
    "gzip of parquet": ("a.gz", lambda: gzip.compress(parquet())),
    "gzip without its suffix": ("a.csv", lambda: gzip.compress(text())),
    "zstd": ("a.csv.zst", lambda: zstd(text())),
    "zip": ("a.zip", lambda: zipped(**{"a.csv": text()})),
    "a month of klines": (
        "BTCUSDT-1h-2024-01.zip",
        lambda: zipped(**{"BTCUSDT-1h-2024-01.csv": text(header=False)}),
    ),
    "zip of a Mac": (
        "a.zip",
        lambda: zipped(**{"b/": b"", "b/a.csv": text(), "__MACOSX/b/._a.csv": b"x"}),
    ),
    "zip of parquet": ("a.zip", lambda: zipped(**{"a.parquet": parquet()})),
    "utf-8 with a mark": ("a.csv", lambda: b"\xef\xbb\xbf" + text()),
    "utf-16": ("a.csv", lambda: text().decode().encode("utf-16")),
    "utf-16 the other way": ("a.csv", lambda: b"\xfe\xff" + text().decode().encode("utf-16-be")),
    "utf-32": ("a.csv", lambda: text().decode().encode("utf-32")),
    "unicode text of a spreadsheet": (
        "a.txt",
        lambda: text().decode().replace(",", "\t").replace("\n", "\r\n").encode("utf-16"),
    ),
    "zipped utf-16": ("a.zip", lambda: zipped(**{"a.csv": text().decode().encode("utf-16")})),
    "parquet called feather": ("a.feather", parquet),
    "a name with blanks and signs": ("ünï 价格 '%s'.csv", text),
}


@pytest.mark.parametrize("case", READABLE)
def test_what_can_be_read_is_read(tmp_path: Path, case: str) -> None:
    name, content = READABLE[case]
    (tmp_path / name).write_bytes(content())
    bars = read_bars(tmp_path / name)
    same_prices(bars)
    assert bars.provenance.origin == name


REFUSED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "garbage called parquet": ("a.parquet", lambda: b"no parquet\n" * 9, r"\.parquet but is not"),
    "csv called parquet": ("a.parquet", text, r"called \.parquet but is not Parquet.*\.csv"),
    "csv called PQ": ("a.PQ", text, "is not Parquet"),
    "csv called feather": ("a.feather", text, "is not Feather"),
    "zeros called arrow": ("a.arrow", lambda: bytes(99), "is not Feather"),
    "torn gzip": ("a.gz", lambda: gzip.compress(text())[:-300], "packed file cannot be read"),
    "flipped gzip": (
        "a.gz",
        lambda: gzip.compress(text())[:40] + b"xxxx" + gzip.compress(text())[44:],
        "packed file cannot be read",
    ),
    "torn zip": ("a.zip", lambda: zipped(a=text())[:-30], "cannot be read .*zip archive"),
    "flipped zip": (
        "a.zip",
        lambda: zipped(a=text())[:60] + b"xxxx" + zipped(a=text())[64:],
        "cannot be read .*zip archive",
    ),
    "zip of two": ("a.zip", lambda: zipped(a=text(), b=text()), "2 files: a, b.*Unpack"),
    "zip of none": ("a.zip", lambda: zipped(**{"a/": b""}), "0 files"),
    "zip of nothing": ("a.zip", lambda: zipped(a=b""), "is empty"),
    "gzip of nothing": ("a.gz", lambda: gzip.compress(b""), "is empty"),
    "zip in gzip": ("a.gz", lambda: gzip.compress(zipped(a=text())), "neither CSV"),
    "workbook": ("a.xlsx", lambda: zipped(**{"xl/workbook.xml": b"<x/>"}), "Excel.*CSV UTF-8"),
    "bzip2": ("a.bz2", lambda: b"BZh91AY&SY", "packed .*bzip2.*Unpack"),
    "utf-16 without a mark": (
        "a.csv",
        lambda: text().decode().encode("utf-16-le"),
        "neither CSV.*byte-order mark.*Save it as CSV UTF-8",
    ),
    "latin-1 header": (
        "a.csv",
        lambda: text().decode().replace("ignore", "größe").encode("latin-1"),
        "neither CSV.*UTF-8",
    ),
    "latin-1 further down": (
        "a.csv",
        lambda: text() + "größe".encode("latin-1"),
        "cannot be read|not a",
    ),
    "blanks between cells": ("a.csv", lambda: text().replace(b",", b"  "), "parted by a comma"),
    "web page": ("a.csv", lambda: b"<!DOCTYPE html>\n<p>404</p>\n", "one cell"),
    "json": ("a.csv", lambda: b'[{"open": 1}]\n', "one cell"),
    "decimal commas": (
        "a.csv",
        lambda: text().replace(b",", b";").replace(b".", b","),
        "not a number.*row 1.*Write decimals with a point",
    ),
    "decimal commas between commas": (
        "a.csv",
        lambda: text().replace(b".", b","),
        "more cells.*row 1.*decimals take a point",
    ),
    "mixed units": (
        "a.csv",
        lambda: text()[:1500] + text()[1500:].replace(b"\n17", b"\n00017").replace(b"00017", b"17")
        .replace(b"00000,", b"00000000,"),
        "times change their unit.*--time-unit mixed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_a_remedy(tmp_path: Path, case: str) -> None:
    name, content, words = REFUSED[case]
    path = tmp_path / name
    path.write_bytes(content())
    with pytest.raises(DataError, match=words) as caught:
        read_bars(path)
    assert str(path) in str(caught.value.where)
    assert caught.value.remedy


def test_a_packed_file_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_MOST_BYTES", 1_000)
    for name, content in (("a.gz", gzip.compress(text())), ("a.zip", zipped(a=text()))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=r"too large.*Unpack"):
            read_bars(tmp_path / name)


def test_a_torn_row_in_a_packed_file_is_named(tmp_path: Path) -> None:
    lines = text().splitlines()
    lines[7] += b",1"
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    with pytest.raises(DataError, match=r"more cells .*a\.gz row 7"):
        read_bars(tmp_path / "a.gz")


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda p: None, "no such file"),
    "folder": (lambda p: p.mkdir(), "a directory"),
    "pipe": (os.mkfifo, "a pipe"),
    "lost link": (lambda p: p.symlink_to("nowhere"), "leads nowhere"),
    "ring of links": (lambda p: p.symlink_to(p), "leads nowhere"),
    "device": (lambda p: p.symlink_to("/dev/zero"), "a device"),
    "below a file": (lambda p: p.parent.rename(p.parent.with_name("x")), "no such file"),
}


@pytest.mark.parametrize("case", NO_FILES)
def test_what_is_no_file_is_a_wrong_question(tmp_path: Path, case: str) -> None:
    make, words = NO_FILES[case]
    folder = tmp_path / "in"
    folder.mkdir()
    make(folder / "a.csv")
    for read in (read_bars, read_raw, read_funding):
        with pytest.raises(ConfigError, match=words) as caught:
            read(folder / "a.csv")
        assert caught.value.where == str(folder / "a.csv")
        assert caught.value.remedy


def test_a_near_name_and_the_files_of_a_folder_are_offered(tmp_path: Path) -> None:
    write_csv(tmp_path / "btc-1h.csv", frame())
    with pytest.raises(ConfigError, match=r"Did you mean btc-1h\.csv"):
        read_bars(tmp_path / "btc_1h.csv")
    with pytest.raises(ConfigError, match=r"Name one file, such as btc-1h\.csv"):
        read_bars(tmp_path)


def test_a_file_that_may_not_be_read_is_a_wrong_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_csv(tmp_path / "a.csv", frame())

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError, match=r"cannot read the file .*Permission denied"):
        read_bars(tmp_path / "a.csv")


def test_one_row_is_read_when_its_period_is_said(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", frame(1))
    with pytest.raises(DataError, match="--period 1h"):
        read_bars(path)
    assert len(read_bars(path, request=ReadRequest(period="1h"))) == 1


def test_recordings_that_are_no_bars_are_refused() -> None:
    files = [each for each in sorted(DATA.glob("*.gz")) if each.stat().st_size < 5_000_000]
    if not files:
        pytest.skip("no packed recordings on this machine")
    for each in files:
        with pytest.raises(DataError, match=r"columns of bars are missing"):
            read_bars(each)


def test_funding_is_read_packed_too(tmp_path: Path) -> None:
    source = DATA / FUNDING
    if not source.is_file():
        pytest.skip(f"real data {FUNDING} is not on this machine")
    (tmp_path / "f.gz").write_bytes(gzip.compress(source.read_bytes(), 1))
    assert read_funding(tmp_path / "f.gz").rate.size == read_funding(source).rate.size
