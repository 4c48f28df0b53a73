from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_samples import HOUR_NS, START_NS, frame, same_prices, stamps, with_time, write_csv

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.readers import (
    ReadRequest,
    parse_time,
    read_bars,
)


class TestTimes:
    def test_units_that_change_are_refused_unless_said(self, tmp_path: Path) -> None:
        mixed = frame().with_columns(
            pl.when(pl.int_range(pl.len()) >= 20)
            .then(pl.col("open_time") * 1_000)
            .otherwise(pl.col("open_time"))
        )
        path = write_csv(tmp_path / "a.csv", mixed)
        with pytest.raises(DataError, match="times change their unit") as caught:
            read_bars(path)
        assert "row 21" in str(caught.value)
        assert "--time-unit mixed" in str(caught.value)
        same_prices(read_bars(path, request=ReadRequest(time_unit="mixed")))

    def test_a_date_written_as_a_number_is_not_taken_for_seconds(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", with_time("date", [20_240_101 + n for n in range(48)]))
        with pytest.raises(DataError, match="not a time since 1970"):
            read_bars(path)
        assert read_bars(path, request=ReadRequest(time_unit="s")).ts[0] == 20_240_101 * 10**9

    def test_times_without_a_zone(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", with_time("date", stamps(None).dt.strftime("%F %T")))
        bars = read_bars(path)
        same_prices(bars)
        assert bars.provenance.details["time"]["zone"] == "UTC assumed"
        with pytest.raises(DataError, match="name no zone"):
            read_bars(path, request=ReadRequest(naive="refuse"))
        tokyo = read_bars(path, request=ReadRequest(naive="Asia/Tokyo"))
        assert tokyo.ts[0] == START_NS - 9 * HOUR_NS
        assert tokyo.provenance.details["time"]["zone"] == "Asia/Tokyo assumed"
        with pytest.raises(ConfigError, match="no such time zone"):
            read_bars(path, request=ReadRequest(naive="Mars/Olympus"))
        with_time("date", stamps(None)).write_parquet(tmp_path / "a.parquet")
        tokyo = read_bars(tmp_path / "a.parquet", request=ReadRequest(naive="Asia/Tokyo"))
        assert tokyo.ts[0] == START_NS - 9 * HOUR_NS

    @pytest.mark.parametrize(("day", "row"), [("2024-10-27", 3), ("2024-03-31", 3)])
    def test_an_hour_that_comes_twice_or_never_is_refused(
        self, tmp_path: Path, day: str, row: int
    ) -> None:
        times = [f"{day} {hour:02}:00:00" for hour in range(24)]
        table = with_time("date", times + ["2024-12-01 00:00:00"] * 24)
        path = write_csv(tmp_path / "a.csv", table)
        with pytest.raises(DataError, match="skipped or happens twice in Europe/Berlin") as caught:
            read_bars(path, request=ReadRequest(naive="Europe/Berlin"))
        assert f"row {row}" in str(caught.value)

    def test_a_day_with_a_clock_change_is_whole_when_offsets_are_written(
        self, tmp_path: Path
    ) -> None:
        utc = pl.datetime_range(
            pl.datetime(2024, 10, 26),
            pl.datetime(2024, 10, 27, 23),
            "1h",
            time_zone="UTC",
            eager=True,
        )
        texts = utc.dt.convert_time_zone("Europe/Berlin").dt.strftime("%Y-%m-%d %H:%M:%S%z")
        assert len(set(texts.str.slice(19).to_list())) == 2
        bars = read_bars(write_csv(tmp_path / "a.csv", with_time("date", texts)))
        np.testing.assert_array_equal(np.diff(bars.ts), HOUR_NS)

    def test_some_times_with_and_some_without_a_zone_are_refused(self, tmp_path: Path) -> None:
        texts = stamps(None).dt.strftime("%F %T").to_list()
        texts[9] += "+02:00"
        path = write_csv(tmp_path / "a.csv", with_time("date", texts))
        with pytest.raises(DataError, match="some times name a zone") as caught:
            read_bars(path)
        assert "row 10" in str(caught.value)

    def test_fractions_of_a_second_are_kept(self, tmp_path: Path) -> None:
        texts = [f"2024-01-01 00:00:00.{n:09}" for n in range(48)]
        bars = read_bars(write_csv(tmp_path / "a.csv", with_time("date", texts)))
        np.testing.assert_array_equal(bars.ts, START_NS + np.arange(48))

    @settings(max_examples=40, deadline=None)
    @given(
        first=st.integers(946_684_800, 4_102_444_800),
        unit=st.sampled_from(["s", "ms", "us", "ns"]),
        step=st.sampled_from([1, 60, 3_600, 86_400]),
    )
    def test_numbers_are_understood_in_every_unit(
        self, tmp_path_factory: pytest.TempPathFactory, first: int, unit: str, step: int
    ) -> None:
        scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        seconds = first + step * np.arange(48)
        path = tmp_path_factory.mktemp("unit") / "a.csv"
        bars = read_bars(write_csv(path, with_time("timestamp", seconds * scale)))
        np.testing.assert_array_equal(bars.ts, seconds * 10**9)
        assert bars.period_ns == step * 10**9

    def test_parse_time(self) -> None:
        assert parse_time("2024-01-01") == START_NS
        assert parse_time("2024-01-01T01:00:00.000001+01:00") == START_NS + 1_000
        assert parse_time(5) == 5
        with pytest.raises(ConfigError, match="not a time"):
            parse_time("yesterday")


def test_a_wrong_zone_is_refused_even_where_it_is_not_needed(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", frame())
    with pytest.raises(ConfigError, match="no such time zone"):
        read_bars(path, request=ReadRequest(naive="Mars/Base"))


def test_a_period_or_time_that_no_clock_can_say_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", frame())
    with pytest.raises(ConfigError, match="period is too long"):
        read_bars(path, request=ReadRequest(period="99999999999999999d"))
    for text in ("0001-01-01", "9999-12-31", 10**30):
        with pytest.raises(ConfigError, match=r"too far away \(at option --end"):
            read_bars(path, request=ReadRequest(end=text))
