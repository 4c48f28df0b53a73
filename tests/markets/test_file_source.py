from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from agent_gym.core import Ref, Seeds
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets import Bars, file_source
from agent_gym.markets.parquet import write_bars
from agent_gym.markets.source import open_market
from tests.samples import random_bars

NAME = file_source.__name__  # importing it registers the market


def opened(path: Path, **params: object) -> Bars:
    return open_market(Ref(use="file", params={"path": str(path), **params}), Seeds(0))


def write_csv(path: Path, *, without: tuple[int, ...] = ()) -> Path:
    bars = random_bars(80)
    kept = [i for i in range(80) if i not in without]
    columns = {name: column[kept] for name, column in bars.columns().items()}
    pl.DataFrame({"time": bars.ts[kept] // 10**6} | columns).write_csv(path)
    return path


def test_a_file_can_be_named_in_a_config(tmp_path):
    write_bars(tmp_path / "a.parquet", random_bars(80))
    assert opened(tmp_path / "a.parquet").fingerprint == random_bars(80).fingerprint


def test_what_a_file_does_not_say_can_be_said_for_it(tmp_path):
    file = write_csv(tmp_path / "a.csv")
    plain = opened(file)
    named = opened(file, symbol="ETH/USDT", exchange="kraken", kind="perpetual")
    assert (plain.instrument.symbol, plain.instrument.kind) == ("UNKNOWN", "spot")
    assert named.instrument.symbol == "ETH/USDT"
    assert named.instrument.exchange == "kraken"
    assert named.instrument.kind == "perpetual"
    assert np.array_equal(named.close, plain.close)


def test_what_a_file_says_cannot_be_contradicted(tmp_path):
    write_bars(tmp_path / "a.parquet", random_bars(80, kind="spot"))
    assert len(opened(tmp_path / "a.parquet", kind="spot")) == 80
    with pytest.raises(ConfigError, match="something else"):
        opened(tmp_path / "a.parquet", kind="perpetual")


def test_gaps_are_refused_unless_a_policy_says_otherwise(tmp_path):
    file = write_csv(tmp_path / "a.csv", without=(20, 21))
    with pytest.raises(DataError, match="gap"):
        opened(file)
    assert len(opened(file, repair={"gaps": "keep"})) == 78
    assert len(opened(file, repair={"gaps": "fill"})) == 80


def test_the_span_is_cut_and_an_empty_one_is_a_wrong_question(tmp_path):
    file = write_csv(tmp_path / "a.csv")
    assert len(opened(file, start="2024-01-02", end="2024-01-02T05:00")) == 6
    for span in ({"start": "2030-01-01"}, {"end": "2001-01-01"}):
        with pytest.raises(ConfigError, match="no bar of the file"):
            opened(file, **span)


def test_faults_within_a_span_stay_faults_of_the_data(tmp_path):
    file = write_csv(tmp_path / "a.csv", without=(30,))
    with pytest.raises(DataError, match="gap"):
        opened(file, start="2024-01-02")
    assert len(opened(file, start="2024-01-03")) == 32


def test_a_path_without_a_file_is_a_wrong_question(tmp_path):
    for path in (tmp_path, tmp_path / "none.csv"):
        with pytest.raises(ConfigError, match="no market file"):
            opened(path)


def test_a_misspelt_field_is_named(tmp_path):
    with pytest.raises(ConfigError, match="symbl"):
        opened(tmp_path / "a.csv", symbl="BTC/USDT")
