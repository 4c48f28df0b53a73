from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agent_gym.core.errors import DataError
from agent_gym.evaluation.scenarios.recorded import (
    recorded_metrics,
)
from tests.evaluation.recorded_samples import (
    T0,
    WRITERS,
    Rows,
    read,
    sample,
    signal,
    write_jsonl,
    write_jsonl_folder,
    write_parquet,
    write_sqlite,
)

BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"signal_id": None}, "signal_id"),
    ({"signal_id": "x" * 300}, "signal_id"),
    ({"timestamp": "soon"}, "timestamp"),
    ({"timestamp": 12.0}, "timestamp"),
    ({"timestamp": True}, "timestamp"),
    ({"timestamp": 9e18}, "timestamp"),
    ({"symbol": "?"}, "symbol"),
    ({"symbol": ["BTC"]}, "symbol"),
    ({"amount": "much"}, "amount"),
    ({"confidence": 1.5}, "confidence"),
    ({"side": "hold"}, "side"),
    ({"quality": {"a": 1}}, "quality"),
]


@pytest.mark.parametrize(("change", "column"), BROKEN)
def test_a_row_that_cannot_be_read_is_counted_and_named(
    tmp_path: Path, change: dict[str, Any], column: str
) -> None:
    rows = sample()
    rows["signals"].insert(1, signal("bad", 5, "BTC/USDT") | change)
    log = read(write_jsonl(tmp_path, rows))
    assert log.unread == {"signals": 1}
    assert (log.named[0].stream, log.named[0].row, log.named[0].column) == ("signals", 2, column)
    assert any("signals row 2" in note and column in note for note in log.notes)
    assert recorded_metrics("signal_throughput", log)["rows_unread"] == 1.0
    assert recorded_metrics("signal_throughput", log)["signals_total"] == 3.0


def test_broken_lines_do_not_hide_the_good_ones(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, sample())
    bad = [b"{not json", b"[1, 2]", b'{"stream": "orders", "price": NaN}', b"\xff\xfe", b"{}"]
    bad.append(b'{"stream": "signals", "x": "' + b"y" * 2**20 + b'"}')
    bad.append(b'{"a":' * 100_000)
    path.write_bytes(b"\n".join(bad) + b"\n\n" + path.read_bytes())
    log = read(path, max_unread_share=0.5)
    assert log.unread == {"unknown": 7}
    assert [row.row for row in log.named] == [1, 2, 3, 4, 5, 6, 7]
    assert len(log.signals) == 3
    assert read(path, max_unread_share=0.5, max_named=2).named == log.named[:2]
    with pytest.raises(DataError, match="too many rows"):
        read(path)


def test_bad_cells_of_sqlite_are_named_too(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path, sample())
    base = sqlite3.connect(path)
    base.execute("UPDATE signals SET symbol = CAST(x'ff41' AS TEXT) WHERE signal_id = 's2'")
    base.execute("UPDATE signals SET amount = x'00ff' WHERE signal_id = 's3'")
    base.commit()
    base.close()
    log = read(path, max_unread_share=0.5)
    assert [(row.row, row.column) for row in log.named] == [(2, "symbol"), (3, "amount")]


@pytest.mark.parametrize("write", WRITERS)
def test_an_empty_log_is_refused(tmp_path: Path, write: Callable[[Path, Rows], Path]) -> None:
    rows: Rows = {"signals": [], "orders": []}
    with pytest.raises(DataError, match=r"none of the streams|no row that can be read"):
        read(write(tmp_path, rows))


def test_a_log_without_our_tables_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="signals, orders, fills, protections"):
        read(write_sqlite(tmp_path, {"trades": sample()["fills"]}))


def test_caps_hold(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, sample())
    total = sum(map(len, sample().values()))
    assert read(path, max_rows=total).signals
    with pytest.raises(DataError, match="more rows"):
        read(path, max_rows=total - 1)
    size = path.stat().st_size
    assert read(path, max_bytes=size).signals
    with pytest.raises(DataError, match="larger than allowed"):
        read(path, max_bytes=size - 1)


def test_a_huge_log_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(2**31)  # a hole: it takes no room on the disk
    with pytest.raises(DataError, match="larger than allowed"):
        read(path)


def test_a_packed_parquet_log_is_measured_unpacked(tmp_path: Path) -> None:
    row = signal("s", 0, "BTC/USDT") | {"note": "x" * 10_000}
    path = tmp_path / "signals.parquet"
    table = pa.Table.from_pylist([row] * 1_000)
    pq.write_table(table, path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 2**20
    with pytest.raises(DataError, match="once it is unpacked"):
        read(tmp_path, max_bytes=2**20)


def test_parquet_times_keep_their_zone_and_digits(tmp_path: Path) -> None:
    stamp = pa.array([int(T0) * 10**9 + 123], pa.timestamp("ns", tz="Asia/Tokyo"))
    names = pa.array(["a"])
    table = pa.table({"timestamp": stamp, "signal_id": names, "symbol": pa.array(["BTC/USDT"])})
    pq.write_table(table, tmp_path / "signals.parquet")
    assert read(tmp_path).signals[0].time_ns == int(T0) * 10**9 + 123


def test_a_truncated_parquet_file_is_an_error_of_the_data(tmp_path: Path) -> None:
    path = write_parquet(tmp_path, sample())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="Parquet"):
        read(path)


def test_links_devices_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, sample())
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    with pytest.raises(DataError, match="symbolic link"):
        read(link)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "signals.jsonl").symlink_to(path)
    with pytest.raises(DataError, match="plain file"):
        read(folder)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="plain file"):
        read(tmp_path / "pipe")
    with pytest.raises(DataError, match="cannot be opened"):
        read(tmp_path / "none")


def test_a_folder_holds_one_file_a_stream(tmp_path: Path) -> None:
    folder = write_jsonl_folder(tmp_path, sample())
    pq.write_table(pa.Table.from_pylist(sample()["signals"]), folder / "signals.parquet")
    with pytest.raises(DataError, match="one file for each stream"):
        read(folder)
    assert len(read(folder, format="jsonl").signals) == 3
    assert read(folder, format="parquet").present == ("signals",)


def test_a_wrong_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="another format"):
        read(write_sqlite(tmp_path, sample()), format="jsonl")


def test_a_locked_database_is_an_error_and_a_writer_in_wal_mode_is_none(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path, sample())
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DataError, match="locked"):
        read(path)
    writer.execute("ROLLBACK")
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM signals")
    assert len(read(path).signals) == 3
    writer.execute("ROLLBACK")
    writer.close()


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_nothing_is_written_to_the_log_or_beside_it(tmp_path: Path, journal: str) -> None:
    path = write_sqlite(tmp_path, sample())
    base = sqlite3.connect(path)
    base.execute(f"PRAGMA journal_mode={journal}")
    base.close()
    before = path.read_bytes()
    path.chmod(0o444)
    read(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["log.db"]


def test_a_view_that_never_ends_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = sqlite3.connect(tmp_path / "log.db")
    base.execute(
        "CREATE VIEW signals AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
        "SELECT i AS signal_id FROM n WHERE i < 0"
    )
    base.close()
    module = sys.modules["agent_gym.evaluation.scenarios.recorded.sqlite_log"]
    monkeypatch.setattr(module, "MAX_CALLS", 5)
    with pytest.raises(DataError, match="interrupted"):
        read(tmp_path / "log.db")


def test_a_log_that_changes_is_read_again(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, sample())
    first = read(path)
    assert read(path) is first
    row = {"stream": "signals", **signal("s4", 8_000, "BTC/USDT")}
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    assert len(read(path).signals) == 4
    assert read(path).data_hash != first.data_hash


def test_the_hash_is_of_the_content_whatever_the_order_and_the_process(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    turned = {name: part[::-1] for name, part in sample().items()}
    turned["signals"][0]["amount"] = 0.1
    paths = write_jsonl(one, sample()), write_jsonl(two, turned)
    code = (
        "import sys\nfrom agent_gym.evaluation.scenarios.recorded import *\n"
        "print(read_log(RecordedSource(path=sys.argv[1])).data_hash)"
    )
    environment = os.environ | {"PYTHONHASHSEED": "5", "TZ": "Asia/Tokyo"}
    out = subprocess.run(
        [sys.executable, "-c", code, str(paths[1])],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.strip() == read(paths[0]).data_hash == read(paths[1]).data_hash
    changed = sample()
    changed["fills"][0]["fee"] = 0.02
    assert read(write_jsonl(two, changed)).data_hash != read(paths[0]).data_hash
