"""Market files for the tests of the readers, sound and spoiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
HOUR_NS = 3_600 * 10**9
START_NS = 1_704_067_200 * 10**9
SPOT, PERP = "BTCUSDT_spot_1h_2018-2024.parquet", "BTCUSDT_perp_1m_2024.parquet"
FUNDING = "BTCUSDT_perp_funding_8h_2019-2024.parquet"


def real(name: str) -> Path:
    if not (DATA / name).is_file():
        pytest.skip(f"real data {name} is not on this machine")
    return DATA / name


def frame(n: int = 48) -> pl.DataFrame:
    rng = Seeds(0).child("frame").rng()
    close = np.round(100.0 * np.exp(0.01 * rng.standard_normal(n).cumsum()), 2)
    open_ = np.r_[close[:1], close[:-1]]
    return pl.DataFrame(
        {
            "open_time": (START_NS + HOUR_NS * np.arange(n)) // 10**6,
            "open": open_,
            "high": np.maximum(open_, close) + 1.0,
            "low": np.minimum(open_, close) - 1.0,
            "close": close,
            "volume": np.round(rng.random(n), 3),
            "close_time": (START_NS + HOUR_NS * (np.arange(n) + 1)) // 10**6 - 1,
            "quote_volume": np.ones(n),
            "count": rng.integers(1, 99, n),
            "taker_buy_volume": np.round(rng.random(n), 3),
            "taker_buy_quote_volume": np.ones(n),
            "ignore": np.zeros(n, dtype=np.int64),
        }
    )


def with_time(name: str, times: Any) -> pl.DataFrame:
    return frame().select(pl.Series(name, times), "open", "high", "low", "close", "volume")


def stamps(zone: str | None = "UTC") -> pl.Series:
    times = pl.from_epoch(frame()["open_time"], time_unit="ms")
    return times if zone is None else times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def write_csv(path: Path, table: pl.DataFrame, **options: Any) -> Path:
    table.write_csv(path, **options)
    return path


def same_prices(bars: Bars) -> None:
    table = frame()
    np.testing.assert_array_equal(bars.ts, table["open_time"].to_numpy() * 10**6)
    for name in ("open", "high", "low", "close", "volume"):
        np.testing.assert_array_equal(getattr(bars, name), table[name].to_numpy())
    assert bars.period_ns == HOUR_NS


def spoiled(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        write_csv(path, frame())
        path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")

    return write


def cell(row: int, column: int, text: str) -> Callable[[Path], None]:
    def change(lines: list[str]) -> list[str]:
        cells = lines[row].split(",")
        cells[column] = text
        lines[row] = ",".join(cells)
        return lines

    return spoiled(change)
