from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.errors import ConfigError, DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.exchange.risk import (
    TailConfig,
    TailSeries,
    bars_per_day,
    christoffersen,
    ewma_sigma,
    exceedances,
    kupiec_pof,
    tail_risk,
)

ROWS = ("var_long", "var_short", "es_long", "es_short")


def garch_t(bars: int, seed: int, sigma: float, alpha: float, beta: float) -> FloatArray:
    noise = Seeds(seed).child("garch").rng().standard_t(5.0, bars) * math.sqrt(3.0 / 5.0)
    logs = np.empty(bars)
    level, variance = 0.0, sigma**2
    for i in range(bars):
        move = math.sqrt(variance) * noise[i]
        variance = sigma**2 * (1.0 - alpha - beta) + alpha * move**2 + beta * variance
        level += move
        logs[i] = level
    return np.exp(logs)


DAILY = garch_t(6000, 1, 0.02, 0.08, 0.90)
HOURLY = garch_t(24 * 1500, 4, 0.004, 0.03, 0.965)


@pytest.mark.parametrize(("close", "day_bars"), [(DAILY, 1), (HOURLY, 24)])
def test_var_of_garch_t_is_exceeded_as_often_as_it_says(close: FloatArray, day_bars: int) -> None:
    hits = exceedances(close, tail_risk(close, day_bars, TailConfig()).var_long, day_bars)
    test = kupiec_pof(hits, 0.01)
    low, high = stats.binom.interval(0.99, test.days, 0.01)
    assert low <= test.exceedances <= high
    assert test.p_value > 0.01
    assert christoffersen(hits).p_value > 0.01


def test_a_var_that_is_too_small_fails_the_backtest() -> None:
    small = tail_risk(DAILY, 1, TailConfig()).var_long * 0.7
    assert kupiec_pof(exceedances(DAILY, small, 1), 0.01).p_value < 1e-4


def test_a_var_that_ignores_volatility_fails_independence() -> None:
    close = garch_t(6000, 3, 0.02, 0.15, 0.84)
    constant = np.full(close.size, np.quantile(1.0 - close[1:] / close[:-1], 0.99))
    assert christoffersen(exceedances(close, constant, 1)).p_value < 1e-3


def test_real_hours_are_covered() -> None:
    path = Path(__file__).resolve().parents[2].parent / "shared/data"
    path /= "BTCUSDT_spot_1h_2018-2024.parquet"
    if not path.exists():
        pytest.skip("the real hourly bars are not on this machine")
    close = pl.read_parquet(path, columns=["close"])["close"].to_numpy()
    tails = tail_risk(close, 24, TailConfig())
    test = kupiec_pof(exceedances(close, tails.var_long, 24), 0.01)
    assert test.days > 2000
    assert test.p_value > 0.01


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 400), st.integers(0, 10**6), st.sampled_from([1, 4, 24]))
def test_a_longer_series_never_changes_an_earlier_value(cut: int, seed: int, day: int) -> None:
    close = garch_t(400, seed, 0.01, 0.1, 0.8)
    config = TailConfig(window_days=9, prior_days=3, half_life_days=3.0, level=0.9)
    poisoned = close.copy()
    poisoned[cut:] = 1e9
    whole, part = tail_risk(close, day, config), tail_risk(close[:cut], day, config)
    future = tail_risk(poisoned, day, config)
    for name in ROWS:
        assert getattr(whole, name)[:cut].tobytes() == getattr(part, name).tobytes()
        assert getattr(whole, name)[:cut].tobytes() == getattr(future, name)[:cut].tobytes()
    assert ewma_sigma(close, 10.0)[:cut].tobytes() == ewma_sigma(close[:cut], 10.0).tobytes()


def slow_tails(close: FloatArray, day: int, config: TailConfig) -> FloatArray:
    """The same estimate by sorting every window from scratch, without a prior."""
    logs = np.log(close)
    decay = 0.5 ** (1.0 / (config.half_life_days * day))
    stride = max(1, day // config.samples_per_day)
    window = config.window_days * day // stride
    sigma = np.full(close.size, np.nan)
    for i in range(1, close.size):
        weights = decay ** np.arange(i)
        squares = np.diff(logs[: i + 1])[::-1] ** 2
        sigma[i] = np.sqrt(np.sum(weights * squares) / weights.sum() * day)
    rows = np.full((4, close.size), np.nan)
    for i in range(2 * day, close.size):
        ends = [j for j in range(2 * day, i + 1) if j % stride == 0][-window:]
        if not ends:
            continue
        days = np.sort([(logs[j] - logs[j - day]) / sigma[j - day] for j in ends])
        k = max(1, int((1 - config.level) * (len(ends) + 1) + 1e-9))
        long = np.maximum(0.0, 1 - np.exp(days[:k] * sigma[i]))
        short = np.maximum(0.0, np.exp(days[::-1][:k] * sigma[i]) - 1)
        rows[:, i] = long[-1], short[-1], long.mean(), short.mean()
    return rows


@pytest.mark.parametrize(("day", "samples"), [(1, 24), (6, 24), (6, 2)])
def test_the_kernel_equals_sorting_each_window(day: int, samples: int) -> None:
    close = garch_t(300, 7, 0.01, 0.1, 0.8)
    config = TailConfig(
        window_days=20, prior_days=0, half_life_days=2.0, level=0.9, samples_per_day=samples
    )
    found = tail_risk(close, day, config)
    expected = slow_tails(close, day, config)
    for row, name in enumerate(ROWS):
        np.testing.assert_allclose(getattr(found, name), expected[row], rtol=1e-9, atol=1e-12)


def test_the_prior_is_a_unit_student_t_and_fades() -> None:
    close = np.exp(np.cumsum(np.tile([0.01, -0.01], 100)))
    tails = tail_risk(close, 1, TailConfig(prior_days=50, half_life_days=5.0))
    scale = math.sqrt(0.5)
    assert tails.var_long[1] == pytest.approx(1 - math.exp(-stats.t.ppf(0.99, 4) * scale * 0.01))
    shortfall = stats.t.expect(lambda x: x, (4,), lb=stats.t.ppf(0.99, 4), conditional=True)
    assert tails.es_long[1] == pytest.approx(1 - math.exp(-shortfall * scale * 0.01), rel=1e-6)
    # After the prior has faded only days of exactly one sigma are known.
    assert tails.var_long[-1] == pytest.approx(1 - math.exp(-0.01))
    assert tails.var_short[-1] == pytest.approx(math.exp(0.01) - 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"level": 0.95},
        {"window_days": 30},
        {"samples_per_day": 2},
        {"half_life_days": 2.0},
        {"prior_days": 0},
    ],
)
def test_each_field_acts(changes: dict[str, float]) -> None:
    close = HOURLY[: 24 * 50]
    usual = tail_risk(close, 24, TailConfig())
    changed = tail_risk(close, 24, TailConfig.model_validate(changes))
    assert not np.array_equal(usual.var_long, changed.var_long, equal_nan=True)
    assert set(TailConfig.model_fields) == {
        "level",
        "window_days",
        "samples_per_day",
        "half_life_days",
        "prior_days",
    }


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0, -1.0])
def test_a_close_that_is_no_price_raises(value: float) -> None:
    close = np.array([1.0, 2.0, value, 2.0])
    with pytest.raises(DataError, match="row 2"):
        tail_risk(close, 1, TailConfig())
    with pytest.raises(DataError, match="row 2"):
        ewma_sigma(close, 5.0)


def test_wild_and_dead_markets_stay_finite() -> None:
    dead = np.ones(100)
    jump = np.concatenate([np.ones(50), np.full(50, 1e12)])
    for close in (dead, jump):
        tails = tail_risk(close, 1, TailConfig(half_life_days=1.0))
        assert all(np.isfinite(getattr(tails, name)[1:]).all() for name in ROWS)
        assert (tails.es_long[1:] >= tails.var_long[1:]).all()
        assert (tails.var_long[1:] <= 1.0).all()


def test_unknown_is_none_and_known_is_plain() -> None:
    tails = tail_risk(DAILY[:10], 4, TailConfig())
    assert [tails.at(i) is None for i in (0, 3, 4, 9)] == [True, True, False, False]
    known = tails.at(9)
    assert known is not None
    assert all(type(value) is float for value in known)
    assert isinstance(tails, TailSeries)


def test_a_day_must_be_whole_bars() -> None:
    assert [bars_per_day(DAY_NS), bars_per_day(HOUR_NS)] == [1, 24]
    for wrong in (7 * DAY_NS, 5 * HOUR_NS, 0, -HOUR_NS):
        with pytest.raises(ConfigError):
            bars_per_day(wrong)
    with pytest.raises(ConfigError):
        tail_risk(DAILY, 0, TailConfig())
    with pytest.raises(ConfigError):
        ewma_sigma(DAILY, 0.0)


def test_kupiec_and_christoffersen_at_the_edges() -> None:
    never = np.zeros(500, dtype=np.bool_)
    test = kupiec_pof(never, 0.01)
    assert test.statistic == pytest.approx(-2 * 500 * math.log(0.99))
    assert (test.rate, christoffersen(never).p_value) == (0.0, 1.0)
    always = np.ones(5, dtype=np.bool_)
    assert kupiec_pof(always, 0.01).p_value < 1e-9
    assert christoffersen(always).p_value == 1.0
    exact = np.zeros(500, dtype=np.bool_)
    exact[::100] = True
    assert kupiec_pof(exact, 0.01).p_value == pytest.approx(1.0)
    clustered = np.zeros(500, dtype=np.bool_)
    clustered[100:105] = True
    assert christoffersen(clustered).p_value < 1e-3
    wrong: list[Any] = [np.zeros(0, dtype=np.bool_), np.zeros(5)]
    for hits in wrong:
        with pytest.raises(DataError):
            kupiec_pof(hits, 0.01)
    with pytest.raises(DataError):
        kupiec_pof(never, 0.0)


def test_kupiec_p_values_are_uniform_enough_under_the_null() -> None:
    rng = Seeds(5).child("null").rng()
    rejected = sum(kupiec_pof(rng.random(1000) < 0.01, 0.01).p_value < 0.05 for _ in range(1000))
    assert 20 <= rejected <= 90
