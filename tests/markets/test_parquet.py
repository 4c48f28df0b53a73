from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import DataError, StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.markets import parquet
from agent_gym.markets.bars import EXTRA_COLUMNS, Bars, Provenance
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.parquet import METADATA_KEY, SEAL_KEY, is_native, read_native, write_bars

HOUR_NS = 3_600 * 10**9


def make_bars(n: int = 50, extras: tuple[str, ...] = ("trades", "funding"), seed: int = 0) -> Bars:
    rng = Seeds(seed).child("bars").rng()
    close = 100.0 * np.exp(0.01 * rng.standard_normal(n).cumsum())
    extra = {name: rng.random(n) for name in extras}
    if n and "funding" in extra:
        extra["funding"][0] = np.nan
    return Bars(
        instrument=Instrument(symbol="BTC/USDT:USDT", exchange="binance", kind="perpetual"),
        period_ns=HOUR_NS,
        ts=1_704_067_200 * 10**9 + HOUR_NS * np.arange(n),
        open=close,
        high=close * 1.01,
        low=close * 0.99,
        close=close,
        volume=rng.random(n),
        extra=extra,
        provenance=Provenance(
            source="file",
            origin="a.csv",
            repairs={"gaps_filled": 3},
            details={"time": {"unit": "ms"}},
        ),
    )


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(0, 40),
    extras=st.lists(st.sampled_from(sorted(EXTRA_COLUMNS)), unique=True),
    seed=st.integers(0, 5),
)
def test_what_is_written_comes_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, n: int, extras: list[str], seed: int
) -> None:
    path = tmp_path_factory.mktemp("bars") / "a.parquet"
    bars = make_bars(n, tuple(extras), seed)
    write_bars(path, bars)
    back = read_native(path)
    assert back.fingerprint == bars.fingerprint
    assert back.provenance == bars.provenance
    assert (back.instrument, back.period_ns) == (bars.instrument, bars.period_ns)
    assert set(back.extra) == set(extras)


def test_equal_bars_give_equal_bytes_and_other_tools_see_utc_times(tmp_path: Path) -> None:
    write_bars(tmp_path / "a.parquet", make_bars())
    write_bars(tmp_path / "b.parquet", make_bars())
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame["ts"].dtype == pl.Datetime("ns", "UTC")
    assert str(frame["ts"][0]) == "2024-01-01 00:00:00+00:00"
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_a_flipped_bit_is_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    bars = make_bars()
    write_bars(path, bars)
    whole = path.read_bytes()
    rng = Seeds(1).child("flips").rng()
    refused = 0
    for place in rng.integers(len(whole), size=300):
        torn = bytearray(whole)
        torn[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(torn)
        try:
            back = read_native(path)
        except DataError:
            refused += 1
        else:
            assert back.fingerprint == bars.fingerprint
            assert back.provenance == bars.provenance
    assert refused > 200


def test_a_torn_file_is_refused_at_every_length(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_bars(path, make_bars(5))
    whole = path.read_bytes()
    for length in (0, 1, 4, 100, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_native(path)
        assert not is_native(path)


def rewrite(path: Path, *, header: dict[str, object] | None = None, shift: float = 0.0) -> None:
    table = pq.read_table(path)
    if shift:
        place = table.column_names.index("close")
        moved = table.column("close").to_numpy() + shift
        table = table.set_column(place, "close", [moved])
    if header is not None:
        text = json.dumps(json.loads(table.schema.metadata[METADATA_KEY]) | header).encode()
        metadata = {METADATA_KEY: text, SEAL_KEY: parquet._seal(text)}
        table = table.replace_schema_metadata(metadata)
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shift": 0.01}, "not what was written"),
        ({"header": {"schema_version": 99}}, "newer agent-gym"),
        ({"header": {"schema_version": "soon"}}, "damaged"),
        ({"header": {"period_ns": 60 * 10**9}}, "not what was written"),
        ({"header": {"instrument": {"symbol": "ETH/USDT"}}}, "not what was written"),
        ({"header": {"provenance": {"source": "dream"}}}, "damaged"),
        ({"header": {"surprise": 1}}, "damaged"),
    ],
)
def test_an_edited_file_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    path = tmp_path / "a.parquet"
    write_bars(path, make_bars())
    rewrite(path)
    assert (
        read_native(path).fingerprint == make_bars().fingerprint
    )  # control: no change, no refusal
    rewrite(path, **change)
    with pytest.raises(DataError, match=words) as caught:
        read_native(path)
    assert str(path) in str(caught.value)


def test_edited_provenance_without_its_seal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_bars(path, make_bars())
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    metadata[METADATA_KEY] = metadata[METADATA_KEY].replace(b'"gaps_filled":3', b'"gaps_filled":0')
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(DataError, match="damaged"):
        read_native(path)


def test_other_files_are_not_ours(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(foreign)
    assert not is_native(foreign)
    for path, words in [
        (foreign, "not written by agent-gym"),
        (tmp_path, "no file of bars"),
        (tmp_path / "absent.parquet", "no file of bars"),
    ]:
        assert not is_native(path)
        with pytest.raises(DataError, match=words):
            read_native(path)


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    write_bars(path, make_bars())
    before = path.read_bytes()

    def full_disk(table: object, where: Path, **options: object) -> None:
        where.write_bytes(b"PAR1 half of a file")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full_disk)
    with pytest.raises(StoreError, match="No space left"):
        write_bars(path, replace(make_bars(), period_ns=1))
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.parquet"]


def test_a_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(StoreError):
        write_bars(tmp_path / "taken", make_bars())
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]
