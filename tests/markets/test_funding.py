from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_samples import HOUR_NS, START_NS, frame, spoiled, write_csv

from agent_gym.core.errors import DataError
from agent_gym.markets.bars import Bars
from agent_gym.markets.readers import (
    FundingRates,
    ReadRequest,
    attach_funding,
    read_bars,
    read_funding,
)
from agent_gym.markets.repair import RepairPolicy


class TestFunding:
    def rates(self, n: int = 6) -> pl.DataFrame:
        times = START_NS // 10**6 + 8 * 3_600_000 * np.arange(n)
        return pl.DataFrame(
            {"calc_time": times + 3, "last_funding_rate": 1e-4 * np.arange(1, n + 1)}
        )

    def bars(self, tmp_path: Path) -> Bars:
        return read_bars(write_csv(tmp_path / "bars.csv", frame()))

    def test_rates_stand_at_the_bar_that_contains_them(self, tmp_path: Path) -> None:
        funding = read_funding(write_csv(tmp_path / "f.csv", self.rates()))
        bars = attach_funding(self.bars(tmp_path), funding)
        column = bars.extra["funding"]
        np.testing.assert_array_equal(np.flatnonzero(column), np.arange(0, 48, 8))
        np.testing.assert_allclose(column[::8], 1e-4 * np.arange(1, 7))
        assert bars.provenance.details["funding"] == {"origin": "f.csv", "rates": 6}

    def test_bars_beyond_the_rates_are_refused_or_missing(self, tmp_path: Path) -> None:
        funding = read_funding(write_csv(tmp_path / "f.csv", self.rates(3)))
        with pytest.raises(DataError, match="do not cover the bars"):
            attach_funding(self.bars(tmp_path), funding)
        column = attach_funding(self.bars(tmp_path), funding, outside="missing").extra["funding"]
        assert not np.isnan(column[:24]).any()
        assert np.isnan(column[25:]).all()

    def test_a_rate_that_falls_into_a_gap_is_refused_or_moved_and_counted(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "a.csv"
        spoiled(lambda x: [*x[:8], *x[11:]])(path)
        bars = read_bars(path, request=ReadRequest(repair=RepairPolicy(gaps="keep")))
        funding = read_funding(write_csv(tmp_path / "f.csv", self.rates()))
        with pytest.raises(DataError, match="where a bar is missing"):
            attach_funding(bars, funding)
        moved = attach_funding(bars, funding, in_gap="next")
        assert moved.extra["funding"][7] == 2e-4
        assert moved.ts[7] == START_NS + 10 * HOUR_NS
        assert moved.provenance.repairs["funding_moved_to_next_bar"] == 1

    @pytest.mark.parametrize(
        ("spoil", "words"),
        [
            (
                lambda t: t.with_columns(pl.lit(None).alias("last_funding_rate")),
                "not a number .*row 1",
            ),
            (lambda t: pl.concat([t, t[5:]]), "do not rise .*row 7"),
            (lambda t: t.reverse(), "do not rise .*row 2"),
            (lambda t: pl.concat([t[:2], t[4:]]), "rates are missing .*row 3"),
            (lambda t: t.rename({"calc_time": "x"}), "missing: time"),
        ],
    )
    def test_bad_funding_files(self, tmp_path: Path, spoil: Any, words: str) -> None:
        with pytest.raises(DataError, match=words):
            read_funding(write_csv(tmp_path / "f.csv", spoil(self.rates())))

    @settings(max_examples=50, deadline=None)
    @given(offsets=st.lists(st.integers(0, 48 * 3_600 - 1), min_size=1, max_size=20, unique=True))
    def test_no_rate_is_lost(
        self, tmp_path_factory: pytest.TempPathFactory, offsets: list[int]
    ) -> None:
        bars = self.bars(tmp_path_factory.mktemp("funding"))
        times = START_NS + 10**9 * np.array(sorted(offsets))
        rates = FundingRates(times, np.full(times.size, 1e-4), "f")
        column = attach_funding(bars, rates, outside="missing").extra["funding"]
        np.testing.assert_allclose(np.nansum(column), 1e-4 * times.size)
