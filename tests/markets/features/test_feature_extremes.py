from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from feature_samples import QUICK, make_bars
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.markets.bars import Bars
from agent_gym.markets.features import FeatureTable, compute_features

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from(
    [0.0, 1e-12, 1e12, 1e-300, 1e300, 1.0, np.nan]
)


def check(table: FeatureTable) -> None:
    assert np.isfinite(table.values[table.mask]).all()
    assert np.isnan(table.values[~table.mask]).all()
    assert np.isfinite(table.observations()[1]).all()


def scaled(bars: Bars, factor: float) -> Bars:
    prices = {name: getattr(bars, name) * factor for name in ("open", "high", "low", "close")}
    spread = {"spread": bars.extra["spread"] * factor}
    return replace(bars, extra={**bars.extra, **spread}, **prices)


@pytest.mark.parametrize("factor", [1e-12, 1e-17, 1e7, 1e12])
def test_the_price_level_does_not_matter(factor: float) -> None:
    bars = make_bars(300, seed=8)
    table = compute_features(scaled(bars, factor))
    check(table)
    np.testing.assert_allclose(table.values, compute_features(bars).values, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("keep", [0.001, 1000.0])
def test_a_flash_crash_and_its_mirror_hold(keep: float) -> None:
    bars = make_bars(600, seed=9)
    prices = {}
    for name in ("open", "high", "low", "close"):
        column = getattr(bars, name).copy()
        column[300:310] *= keep
        prices[name] = column
    table = compute_features(replace(bars, **prices))
    check(table)
    assert table.mask[300:, :9].all()
    assert table.column("return_z")[300] == np.sign(np.log(keep)) * 8.0
    assert abs(table.column("momentum_4")[300]) == pytest.approx(5.0, abs=3.0)


def test_a_constant_price_is_calm_not_undefined() -> None:
    bars = make_bars(500, seed=1)
    flat = np.full(500, 100.0)
    table = compute_features(replace(bars, open=flat, high=flat, low=flat, close=flat))
    check(table)
    for name in ("return_z", "momentum_4", "momentum_168", "volatility_ratio", "range_z"):
        column = table.column(name)
        assert (column[~np.isnan(column)] == 0.0).all()
        assert not np.isnan(column[-1])
    assert not table.mask[:, table.names.index("close_location")].any()


def test_price_stands_still_for_long_and_then_moves() -> None:
    bars = make_bars(60_000, seed=1, extras=False)
    close = bars.close.copy()
    close[500:-1] = close[500]
    prices = {"open": close, "high": close, "low": close, "close": close}
    table = compute_features(replace(bars, **prices))
    check(table)
    assert table.mask[-1, :7].all()


def test_long_silence_masks_volume_and_then_resumes() -> None:
    bars = make_bars(2000, seed=6)
    volume = bars.volume.copy()
    volume[500:1500] = 0.0
    table = compute_features(replace(bars, volume=volume))
    check(table)
    j, k = table.names.index("volume_z"), table.names.index("taker_imbalance")
    assert not table.mask[500:1500, [j, k]].any()
    assert table.mask[1500:, [j, k]].all()
    joined = np.concatenate([volume[:500], volume[1500:]])
    shorter = compute_features(replace(bars.rows(0, 1000), volume=joined))
    # Bars without trades enter no average, so the silence is as if it had not been.
    assert table.values[1500:, j].tobytes() == shorter.values[500:, j].tobytes()


def test_constant_volume_flow_and_funding_are_calm() -> None:
    bars = make_bars(500, seed=6)
    ones = np.ones(500)
    extra = {"ofi": 0.0 * ones, "funding": 1e-4 * ones, "taker_buy": 0.5 * ones}
    table = compute_features(replace(bars, volume=ones, extra=extra))
    check(table)
    for name in ("volume_z", "order_flow", "funding_z", "taker_imbalance"):
        assert table.column(name)[-1] == 0.0


def test_a_missing_close_hides_two_returns_and_spoils_nothing() -> None:
    bars = make_bars(400, seed=7)
    close = bars.close.copy()
    close[250] = np.nan
    table = compute_features(replace(bars, close=close))
    check(table)
    assert not table.mask[250, :8].any()
    assert not table.mask[251, 0]
    assert table.mask[252:, 0].all()
    late = table.mask[251:, table.names.index("momentum_24")]
    assert np.flatnonzero(~late).tolist() == [23]  # the bar whose past close is the missing one


def test_values_outside_their_definition_are_unknown() -> None:
    bars = make_bars(300, seed=7)
    extra = {name: column.copy() for name, column in bars.extra.items()}
    extra["obi"][250] = 1.5
    extra["taker_buy"][250] = bars.volume[250] * 1.1
    extra["spread"][250] = 0.0
    table = compute_features(replace(bars, extra=extra))
    check(table)
    names = ("book_imbalance", "taker_imbalance", "spread_ratio")
    columns = [table.names.index(name) for name in names]
    assert not table.mask[250, columns].any()
    assert table.mask[249, columns].all()
    assert table.mask[251, columns].all()


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_input_makes_a_known_value_that_is_not_a_number(data: st.DataObject) -> None:
    bars = make_bars(40, seed=3)
    columns = {name: column.copy() for name, column in bars.columns().items()}
    for _ in range(data.draw(st.integers(1, 12))):
        name = data.draw(st.sampled_from(sorted(columns)))
        start = data.draw(st.integers(0, 39))
        columns[name][start : start + data.draw(st.integers(1, 20))] = data.draw(ANY_NUMBER)
    prices = {name: columns.pop(name) for name in ("open", "high", "low", "close", "volume")}
    check(compute_features(replace(bars, extra=columns, **prices), QUICK))
