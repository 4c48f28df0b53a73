from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from feature_samples import EXTRA_OF, make_bars

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars
from agent_gym.markets.features import FEATURES, FeatureConfig, FeatureTable, compute_features


def weights(count: int, half_life: float) -> FloatArray:
    """Weights of the last ``count`` values, newest last, adding up to one."""
    raw = 0.5 ** (np.arange(count)[::-1] / half_life)
    return np.asarray(raw / raw.sum())


def mean_of(values: FloatArray, half_life: float) -> float:
    return float(weights(len(values), half_life) @ values)


def sd_of(values: FloatArray, half_life: float) -> float:
    return math.sqrt(mean_of((values - mean_of(values, half_life)) ** 2, half_life))


@pytest.fixture(scope="module")
def bars() -> Bars:
    return make_bars(500, seed=11)


@pytest.fixture(scope="module")
def table(bars: Bars) -> FeatureTable:
    return compute_features(bars)


def test_the_eighteen_names() -> None:
    assert len(FEATURES) == len(set(FEATURES)) == 18
    assert FEATURES[1:5] == ("momentum_4", "momentum_24", "momentum_72", "momentum_168")


@pytest.mark.parametrize("t", [200, 333, 499])
def test_price_features_by_definition(bars: Bars, table: FeatureTable, t: int) -> None:
    logs = np.log(bars.close)
    returns = np.diff(logs)  # returns[i] ends at bar i + 1
    sigma = math.sqrt(mean_of(returns[:t] ** 2, 48))
    before = math.sqrt(mean_of(returns[: t - 1] ** 2, 48))
    assert table.column("return_z")[t] == pytest.approx(
        np.clip(returns[t - 1] / before, -8, 8), rel=1e-9
    )
    for horizon in (4, 24, 72, 168):
        moved = (logs[t] - logs[t - horizon]) / (sigma * math.sqrt(horizon))
        assert table.column(f"momentum_{horizon}")[t] == pytest.approx(
            np.clip(moved, -5, 5), rel=1e-9
        )
    ratio = math.sqrt(mean_of(returns[:t] ** 2, 24) / mean_of(returns[:t] ** 2, 168))
    assert table.column("volatility_ratio")[t] == pytest.approx(math.log(ratio), rel=1e-9)
    assert table.column("range_z")[t] == pytest.approx(
        math.log(bars.high[t] / bars.low[t]) / sigma, rel=1e-9
    )
    place = (bars.close[t] - bars.low[t]) / (bars.high[t] - bars.low[t]) - 0.5
    assert table.column("close_location")[t] == pytest.approx(place, rel=1e-12)


@pytest.mark.parametrize("t", [200, 333, 499])
def test_flow_features_by_definition(bars: Bars, table: FeatureTable, t: int) -> None:
    logs = np.log(bars.volume[: t + 1])
    expected = (logs[t] - mean_of(logs, 168)) / sd_of(logs, 168)
    assert table.column("volume_z")[t] == pytest.approx(expected, rel=1e-9)
    bought, volume = bars.extra["taker_buy"][t], bars.volume[t]
    sold = volume - bought
    assert table.column("taker_imbalance")[t] == pytest.approx((bought - sold) / volume)
    assert table.column("book_imbalance")[t] == bars.extra["obi"][t]
    flow = bars.extra["ofi"][: t + 1]
    assert table.column("order_flow")[t] == pytest.approx(flow[t] / mean_of(np.abs(flow), 168))
    width = bars.extra["spread"][: t + 1] / bars.close[: t + 1] * 1e4
    assert table.column("spread_ratio")[t] == pytest.approx(
        math.log(width[t] / mean_of(width, 168))
    )


@pytest.mark.parametrize("t", [200, 334, 499])
def test_funding_counts_settlements_and_carries_the_last(
    bars: Bars, table: FeatureTable, t: int
) -> None:
    rates = bars.extra["funding"][: t + 1]
    rates = rates[rates != 0.0]
    expected = (rates[-1] - mean_of(rates, 21)) / sd_of(rates, 21)
    assert table.column("funding_z")[t] == pytest.approx(expected, rel=1e-9)


def test_clocks_are_utc_and_of_the_close() -> None:
    # 1969-12-31 23:00 opens the hour that closes at Thursday 1970-01-01 00:00 UTC.
    ts = np.array([-HOUR_NS, 5 * HOUR_NS, 3 * DAY_NS + 23 * HOUR_NS], dtype=np.int64)
    bars = replace(make_bars(3, extras=False), ts=ts)
    clock = compute_features(bars).values[:, 14:]
    day = 2 * math.pi * np.array([0.0, 6 / 24, 0.0])
    week = 2 * math.pi * np.array([3 / 7, (3 + 6 / 24) / 7, 0.0])
    expected = np.column_stack([np.sin(day), np.cos(day), np.sin(week), np.cos(week)])
    np.testing.assert_allclose(clock, expected, atol=1e-12)


def test_a_clock_that_cannot_move_is_masked() -> None:
    daily = compute_features(make_bars(30, period_ns=DAY_NS))
    assert not daily.mask[:, 14:16].any()
    assert daily.mask[:, 16:].all()
    assert not compute_features(make_bars(30, period_ns=7 * DAY_NS)).mask[:, 14:].any()
    assert compute_features(make_bars(30, period_ns=MINUTE_NS)).mask[:, 14:].all()


def test_warm_up_is_masked_and_its_length_is_as_stated(table: FeatureTable) -> None:
    first_known = {name: int(np.argmax(table.mask[:, j])) for j, name in enumerate(table.names)}
    assert first_known == {
        "return_z": 49,  # the 48th return ends at bar 48, and the scale is of the bar before
        "momentum_4": 48,
        "momentum_24": 48,
        "momentum_72": 72,
        "momentum_168": 168,
        "volatility_ratio": 168,
        "range_z": 48,
        "close_location": 0,
        "volume_z": 167,
        "taker_imbalance": 0,
        "book_imbalance": 0,
        "order_flow": 167,
        "spread_ratio": 167,
        "funding_z": 60,  # the 21st settlement, one every third bar
        "hour_sin": 0,
        "hour_cos": 0,
        "weekday_sin": 0,
        "weekday_cos": 0,
    }
    for j, start in enumerate(first_known.values()):
        assert table.mask[start:, j].all()


def test_no_feature_is_constant(table: FeatureTable) -> None:
    for j, name in enumerate(table.names):
        known = table.values[table.mask[:, j], j]
        assert known.size > 0, name
        assert known.var() > 1e-6, name


@pytest.mark.parametrize("name", EXTRA_OF)
def test_an_absent_column_masks_its_feature_alone(bars: Bars, name: str) -> None:
    extra = {key: column for key, column in bars.extra.items() if key != EXTRA_OF[name]}
    table, full = compute_features(replace(bars, extra=extra)), compute_features(bars)
    j = table.names.index(name)
    assert not table.mask[:, j].any()
    assert np.isnan(table.values[:, j]).all()
    others = [k for k in range(18) if k != j]
    assert table.values[:, others].tobytes() == full.values[:, others].tobytes()


def test_observations_tell_a_measured_zero_from_a_missing_one() -> None:
    bars = make_bars(400, seed=2, extras=False)
    volume = bars.volume.copy()
    volume[300] = 0.0
    table = compute_features(replace(bars, volume=volume))
    names, matrix = table.observations()
    assert len(names) == len(set(names)) == 36
    assert matrix.shape == (400, 36)
    assert matrix.dtype == np.float32
    assert np.isfinite(matrix).all()
    column, flag = names.index("volume_z"), names.index("volume_z_known")
    assert (matrix[300, column], matrix[300, flag]) == (0.0, 0.0)
    assert matrix[301, flag] == 1.0
    np.testing.assert_array_equal(matrix[:, 18:] == 1.0, table.mask)
    np.testing.assert_array_equal(
        matrix[:, :18][table.mask], table.values[table.mask].astype(np.float32)
    )
    assert table.observations(np.float64)[1].dtype == np.float64


def test_tables_are_read_only_and_know_their_columns(table: FeatureTable) -> None:
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 1.0
    with pytest.raises(ConfigError, match="volume_z"):
        table.column("volume_zz")
    with pytest.raises(ConfigError, match="one column a name"):
        FeatureTable(("a",), np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))


def test_empty_series() -> None:
    table = compute_features(make_bars(0))
    assert table.values.shape == (0, 18)
    assert table.observations()[1].shape == (0, 36)


CHANGED = {
    "volatility_half_life": 5.0,
    "volatility_floor": 0.5,
    "return_clip": 0.1,
    "momentum_horizons": (1, 2, 3, 5),
    "momentum_clip": 0.1,
    "fast_half_life": 2.0,
    "slow_half_life": 400.0,
    "volume_half_life": 3.0,
    "order_flow_half_life": 3.0,
    "spread_half_life": 3.0,
    "funding_half_life": 2.0,
    "warm_up_half_lives": 2.0,
}


@pytest.mark.parametrize("field", FeatureConfig.model_fields)
def test_every_setting_does_something(bars: Bars, table: FeatureTable, field: str) -> None:
    changed = compute_features(bars, FeatureConfig(**{field: CHANGED[field]}))
    assert changed.values.tobytes() != table.values.tobytes()


@pytest.mark.parametrize(
    "wrong",
    [
        {"volatility_half_life": 0.0},
        {"volatility_floor": 0.0},
        {"momentum_horizons": (4, 4, 5, 6)},
        {"momentum_horizons": (0, 1, 2, 3)},
        {"momentum_horizons": (1, 2, 3, 10**7)},
        {"momentum_horizons": (1, 2, 3)},
        {"fast_half_life": 200.0},
        {"return_clip": float("nan")},
        {"unheard_of": 1},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        FeatureConfig.model_validate(wrong)
