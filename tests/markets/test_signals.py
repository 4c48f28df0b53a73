"""Columns of signals: any name behind the prefix, through files, features and cuts."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.errors import DataError
from agent_gym.markets.features import FEATURES, compute_features
from agent_gym.markets.parquet import read_native, write_bars
from agent_gym.markets.readers import read_bars
from agent_gym.markets.resample import resample
from agent_gym.markets.writers import write_series
from tests.samples import random_bars


def signalled(n=300):
    bars = random_bars(n, kind="spot")
    z = np.linspace(-1.0, 1.0, n)
    return replace(
        bars, extra={"signal_b": z, "obi": z / 2, "signal_a": np.where(z < 0, np.nan, z)}
    )


def test_signals_come_last_and_sorted():
    assert list(signalled().columns())[5:] == ["obi", "signal_a", "signal_b"]


def test_an_unknown_column_is_still_refused():
    with pytest.raises(DataError, match="signal_"):
        replace(random_bars(10), extra={"drift": np.zeros(10)})


def test_signals_are_features_as_they_are():
    bars = signalled()
    table, plain = compute_features(bars), compute_features(replace(bars, extra={}))
    assert table.names == (*FEATURES, "signal_a", "signal_b")
    np.testing.assert_array_equal(table.column("signal_b"), bars.extra["signal_b"])
    assert table.mask[:, -2].sum() == (bars.extra["signal_b"] >= 0).sum()
    assert plain.names == FEATURES
    names, rows = table.observations(np.float64)
    assert rows[0, names.index("signal_a")] == 0.0
    assert rows[0, names.index("signal_a_known")] == 0.0


def test_signals_survive_a_file_and_a_cut(tmp_path):
    bars = signalled()
    write_bars(tmp_path / "bars.parquet", bars)
    assert read_native(tmp_path / "bars.parquet").fingerprint == bars.fingerprint
    assert replace(bars, extra={"obi": bars.extra["obi"]}).fingerprint != bars.fingerprint
    assert set(bars.rows(3, 9).extra) == set(bars.extra)
    longer = resample(bars, "4h")
    assert longer.extra["signal_b"][0] == bars.extra["signal_b"][3]


@pytest.mark.parametrize("suffix", [".csv", ".feather"])
def test_signals_survive_a_table_of_plain_columns(tmp_path, suffix):
    bars = signalled()
    path = tmp_path / f"bars{suffix}"
    write_series(path, bars)
    again = read_bars(path)
    assert list(again.columns()) == list(bars.columns())
    np.testing.assert_allclose(again.extra["signal_b"], bars.extra["signal_b"])
    np.testing.assert_array_equal(
        np.isnan(again.extra["signal_a"]), np.isnan(bars.extra["signal_a"])
    )
