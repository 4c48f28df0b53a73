from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather
from reader_samples import (
    FUNDING,
    HOUR_NS,
    PERP,
    SPOT,
    START_NS,
    cell,
    frame,
    real,
    same_prices,
    spoiled,
    stamps,
    with_time,
    write_csv,
)

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.parquet import write_bars
from agent_gym.markets.readers import (
    ReadRequest,
    attach_funding,
    read_bars,
    read_funding,
    read_raw,
)
from agent_gym.markets.repair import RepairPolicy


class TestFormats:
    def test_kline_dump_with_and_without_header_in_ms_and_us(self, tmp_path: Path) -> None:
        for scale in (1, 1_000):
            table = frame().with_columns(pl.col("open_time") * scale)
            for header in (True, False):
                path = write_csv(tmp_path / "k.txt", table, include_header=header)
                bars = read_bars(path)
                same_prices(bars)
                np.testing.assert_array_equal(bars.extra["trades"], frame()["count"].to_numpy())
                np.testing.assert_array_equal(
                    bars.extra["taker_buy"], frame()["taker_buy_volume"].to_numpy()
                )
                assert bars.provenance.details["time"]["unit"] == ("ms" if scale == 1 else "us")

    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    def test_separators_marks_and_line_ends(self, tmp_path: Path, separator: str) -> None:
        path = write_csv(
            tmp_path / "a.csv",
            frame(),
            separator=separator,
            include_bom=True,
            line_terminator="\r\n",
            quote_style="always",
        )
        same_prices(read_bars(path))

    @pytest.mark.parametrize(
        "name",
        ["open_time", "Open Time", "openTime", "timestamp", "DATE", "datetime", "time", "ts"],
    )
    def test_names_of_the_time_column(self, tmp_path: Path, name: str) -> None:
        table = with_time(name, frame()["open_time"])
        bars = read_bars(
            write_csv(tmp_path / "a.csv", table.rename({"open": "Open", "volume": "Vol"}))
        )
        same_prices(bars)
        assert bars.provenance.details["columns"]["time"] == name

    @pytest.mark.parametrize(
        "pattern",
        [
            "%Y-%m-%d %H:%M:%S",
            "%Y-%m-%dT%H:%M:%SZ",
            "%Y-%m-%d %H:%M:%S+00:00",
            "%Y-%m-%d %H:%M",
            "%Y/%m/%d %H:%M:%S",
            "%Y-%m-%d %H:%M:%S%.3f",
            "%Y-%m-%dT%H:%M:%S%.6f+0000",
            " %Y-%m-%d %H:%M:%S UTC ",
        ],
    )
    def test_written_times(self, tmp_path: Path, pattern: str) -> None:
        times = stamps(None).dt.strftime(pattern)
        same_prices(read_bars(write_csv(tmp_path / "a.csv", with_time("date", times))))

    @pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"])
    def test_zoned_times_become_utc_in_every_format(self, tmp_path: Path, zone: str) -> None:
        table = with_time("date", stamps(zone))
        texts = with_time("date", stamps(zone).dt.strftime("%Y-%m-%dT%H:%M:%S%z"))
        same_prices(read_bars(write_csv(tmp_path / "a.csv", texts)))
        table.write_parquet(tmp_path / "a.parquet")
        same_prices(read_bars(tmp_path / "a.parquet"))

    @pytest.mark.parametrize("unit", ["ms", "us", "ns"])
    @pytest.mark.parametrize("packing", ["lz4", "zstd", "uncompressed"])
    def test_feather_whatever_its_suffix(self, tmp_path: Path, unit: Any, packing: str) -> None:
        table = with_time("date", stamps("UTC").dt.cast_time_unit(unit))
        feather.write_feather(table.to_arrow(), tmp_path / "a.csv", compression=packing)
        bars = read_bars(tmp_path / "a.csv")
        same_prices(bars)
        assert bars.provenance.details["format"] == "feather"

    def test_columns_are_found_by_name_and_not_by_place(self, tmp_path: Path) -> None:
        table = with_time("date", stamps()).select("volume", "close", "date", "low", "high", "open")
        table.write_parquet(tmp_path / "a.parquet")
        same_prices(read_bars(tmp_path / "a.parquet"))
        feather.write_feather(table.to_arrow(), tmp_path / "a.feather")
        same_prices(read_bars(tmp_path / "a.feather"))
        same_prices(read_bars(write_csv(tmp_path / "a.csv", table)))

    def test_numbers_as_text_in_parquet_and_seconds_as_floats(self, tmp_path: Path) -> None:
        table = with_time("timestamp", frame()["open_time"] / 1_000.0).with_columns(
            pl.col("open").cast(pl.String)
        )
        table.write_parquet(tmp_path / "a.parquet")
        same_prices(read_bars(tmp_path / "a.parquet"))

    def test_integer_prices_with_a_stated_or_given_divisor(self, tmp_path: Path) -> None:
        table = frame().with_columns(
            (pl.col("open", "high", "low", "close") * 100).round().cast(pl.Int32)
        )
        stored = table.to_arrow()
        pa.parquet.write_table(
            stored.replace_schema_metadata({"price_tick": "100"}), tmp_path / "a.parquet"
        )
        bars = read_bars(tmp_path / "a.parquet")
        same_prices(bars)
        assert bars.provenance.details["price_divisor"] == 100.0
        pa.parquet.write_table(stored, tmp_path / "b.parquet")
        same_prices(read_bars(tmp_path / "b.parquet", request=ReadRequest(price_divisor=100.0)))
        assert read_bars(tmp_path / "b.parquet").close[0] == 100 * bars.close[0]

    def test_an_odd_file_name_is_only_a_name(self, tmp_path: Path) -> None:
        folder = tmp_path / "year=2024"
        folder.mkdir()
        same_prices(read_bars(write_csv(folder / "[a]*?.csv", frame())))
        frame().write_parquet(folder / "[b]*?.parquet")
        same_prices(read_bars(folder / "[b]*?.parquet"))

    def test_blank_lines_at_the_end_are_no_rows(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", frame())
        path.write_text(path.read_text() + "\n\n")
        same_prices(read_bars(path))


class TestRequests:
    def test_the_asked_span_is_cut_and_faults_outside_do_not_matter(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        cell(2, 4, "NaN")(path)
        asked = ReadRequest(start="2024-01-01T05:00", end="2024-01-01T09:00Z")
        bars = read_bars(path, request=asked)
        assert bars.ts.tolist() == [START_NS + n * HOUR_NS for n in range(5, 10)]
        cell(8, 4, "NaN")(path)
        with pytest.raises(DataError, match="row 8 "):
            read_bars(path, request=asked)

    def test_too_few_bars_for_the_asked_span(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", frame())
        with pytest.raises(DataError, match=r"48 of 73.*--coverage keep"):
            read_bars(path, request=ReadRequest(start="2024-01-01", end="2024-01-04"))
        with pytest.raises(ConfigError, match="no bar of the file lies in the asked span"):
            read_bars(path, request=ReadRequest(start="2025-01-01"))
        with pytest.raises(ConfigError, match="start is after the end"):
            read_bars(path, request=ReadRequest(start="2025-01-01", end="2024-01-01"))

    def test_another_period_than_asked(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", frame())
        with pytest.raises(DataError, match=r"wrong period.*--period 1h"):
            read_bars(path, request=ReadRequest(period="1m"))
        bars = read_bars(path, request=ReadRequest(period="1h"))
        assert bars.provenance.details["period"] == "asked for"

    def test_repairs_are_in_the_provenance(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        spoiled(lambda x: [x[0], *x[1:7], *x[9:], x[20]])(path)
        policy = RepairPolicy(gaps="fill", duplicates="first")
        bars = read_bars(path, request=ReadRequest(repair=policy))
        assert bars.provenance.repairs == {"duplicates_dropped": 1, "gaps_filled": 2}
        assert (bars.provenance.source, bars.provenance.origin) == ("file", "a.csv")
        assert len(bars) == 48

    def test_as_of_finds_the_unfinished_bar(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", frame())
        asked = ReadRequest(as_of="2024-01-02T23:30")
        with pytest.raises(DataError, match=r"had not closed by 2024-01-02T23:30:00Z .*row 48"):
            read_bars(path, request=asked)
        drop = asked.model_copy(update={"repair": RepairPolicy(unfinished="drop")})
        assert len(read_bars(path, request=drop)) == 47

    def test_the_instrument_is_what_was_said_or_unknown(self, tmp_path: Path) -> None:
        path = write_csv(tmp_path / "a.csv", frame())
        assert read_bars(path).instrument.symbol == "UNKNOWN"
        said = Instrument(symbol="ETH/USDT", exchange="binance")
        assert read_bars(path, request=ReadRequest(instrument=said)).instrument == said

    def test_our_own_file_keeps_what_it_says(self, tmp_path: Path) -> None:
        said = Instrument(symbol="ETH/USDT", exchange="binance")
        source = write_csv(tmp_path / "a.csv", frame())
        bars = read_bars(source, request=ReadRequest(instrument=said))
        write_bars(tmp_path / "own", bars)
        back = read_bars(tmp_path / "own")
        assert back.fingerprint == bars.fingerprint
        assert back.provenance == bars.provenance
        other = ReadRequest(instrument=Instrument(symbol="BTC/USDT", exchange="binance"))
        with pytest.raises(DataError, match="another instrument"):
            read_bars(tmp_path / "own", request=other)
        with pytest.raises(DataError, match="wrong period"):
            read_bars(tmp_path / "own", request=ReadRequest(period="1m"))
        with pytest.raises(ConfigError, match="price divisor"):
            read_bars(tmp_path / "own", request=ReadRequest(price_divisor=100.0))
        part = read_bars(tmp_path / "own", request=ReadRequest(end="2024-01-01T05:00"))
        assert len(part) == 6

    def test_gaps_kept_on_purpose_stay_kept_in_our_own_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        spoiled(lambda x: [*x[:7], *x[9:]])(path)
        bars = read_bars(path, request=ReadRequest(repair=RepairPolicy(gaps="keep")))
        write_bars(tmp_path / "own", bars)
        assert read_bars(tmp_path / "own").fingerprint == bars.fingerprint
        write_bars(tmp_path / "raw", read_raw(path).bars)  # control: nobody has agreed to these
        with pytest.raises(DataError, match="--gaps keep"):
            read_bars(tmp_path / "raw")


class TestRealFiles:
    def test_spot_hours_are_refused_for_their_gaps_and_read_when_asked(self) -> None:
        path = real(SPOT)
        with pytest.raises(
            DataError, match=r"gap: .*row 77 .*27 of this kind.*--gaps keep"
        ) as caught:
            read_bars(path)
        assert "2018-01-04T04:00:00Z" in caught.value.what
        kept = read_bars(path, request=ReadRequest(repair=RepairPolicy(gaps="keep")))
        assert (len(kept), kept.provenance.repairs) == (61_246, {"gaps_kept": 122})
        filled = read_bars(path, request=ReadRequest(repair=RepairPolicy(gaps="fill")))
        assert (len(filled), filled.provenance.repairs) == (61_368, {"gaps_filled": 122})
        assert (np.diff(filled.ts) == HOUR_NS).all()
        assert np.isin(kept.ts, filled.ts).all()

    def test_spot_year_without_gaps_needs_no_repair(self) -> None:
        asked = ReadRequest(start="2024-01-01", end="2024-12-31T23:00")
        bars = read_bars(real(SPOT), request=asked)
        assert (len(bars), bars.open[0], bars.provenance.repairs) == (8_784, 42_283.58, {})

    def test_perpetual_minutes_with_funding(self) -> None:
        bars = read_bars(real(PERP))
        assert (len(bars), bars.period_ns) == (527_040, 60 * 10**9)
        assert (bars.open[0], bars.volume[0]) == (42_314.0, 289.641)
        assert (bars.extra["trades"][0], bars.extra["taker_buy"][0]) == (3_310.0, 175.211)
        with_funding = attach_funding(bars, read_funding(real(FUNDING)))
        assert np.count_nonzero(with_funding.extra["funding"]) == 3 * 366
