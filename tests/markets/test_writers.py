from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError, StoreError
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import EXTRA_COLUMNS, Bars
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.parquet import is_native
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.writers import format_of, write_series

PERIODS = {10**9: "1s", 60 * 10**9: "1m", 3_600 * 10**9: "1h", 86_400 * 10**9: "1d"}
NAMES = ("a.parquet", "a.pq", "a.csv", "a.CSV", "a.feather", "a.arrow")


def make(n: int, extras: tuple[str, ...], seed: int, start: int, period_ns: int) -> Bars:
    rng = Seeds(seed).child("bars").rng()
    close = 10.0 ** rng.uniform(-7, 7, n)
    extra = {name: rng.random(n) for name in extras}
    for column in extra.values():
        column[rng.random(n) < 0.3] = np.nan
    return Bars(
        instrument=Instrument(symbol="A/B", exchange="x", kind="perpetual"),
        period_ns=period_ns,
        ts=(start // period_ns + np.arange(n)) * period_ns,
        open=close,
        high=close * 1.01,
        low=close * 0.99,
        close=close,
        volume=rng.random(n),
        extra=extra,
    )


@settings(max_examples=40, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    n=st.integers(1, 30),
    extras=st.lists(st.sampled_from(sorted(EXTRA_COLUMNS)), unique=True),
    seed=st.integers(0, 99),
    start=st.integers(10**9, 8 * 10**18),
    period_ns=st.sampled_from(sorted(PERIODS)),
)
def test_what_is_written_reads_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    n: int,
    extras: list[str],
    seed: int,
    start: int,
    period_ns: int,
) -> None:
    path = tmp_path_factory.mktemp("out") / name
    bars = make(n, tuple(extras), seed, start, period_ns)
    form = write_series(path, bars)
    assert is_native(path) == (form == "parquet")
    asked = ReadRequest(instrument=bars.instrument, period=PERIODS[period_ns])
    assert read_bars(path, request=asked).fingerprint == bars.fingerprint
    assert [entry.name for entry in path.parent.iterdir()] == [name]


def test_a_csv_is_text_that_others_can_read(tmp_path: Path) -> None:
    bars = make(3, ("funding",), 1, 1_704_067_200 * 10**9, 3_600 * 10**9)
    assert write_series(tmp_path / "a.csv", bars) == "csv"
    frame = pl.read_csv(tmp_path / "a.csv")
    assert frame.columns == ["ts", "open", "high", "low", "close", "volume", "funding"]
    assert frame["ts"].to_list()[0] == "2024-01-01T00:00:00Z"


@pytest.mark.parametrize("name", ["a.txt", "a", "a.parquet.bak", ".parquet", "a.xlsx", "a."])
def test_another_ending_is_refused_with_a_remedy(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"one of \.parquet, .*\.csv.*Call it") as caught:
        format_of(tmp_path / name)
    assert caught.value.where == str(tmp_path / name)
    with pytest.raises(ConfigError):
        write_series(tmp_path / name, make(3, (), 0, 10**18, 10**9))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("old")

    def refuse(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agent_gym.core.files.sync", refuse)
    with pytest.raises(StoreError, match="No space left"):
        write_series(path, make(3, (), 0, 10**18, 10**9))
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
