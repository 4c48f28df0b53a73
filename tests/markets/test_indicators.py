from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import talib
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars
from agent_gym.markets.indicators import (
    atr,
    bollinger,
    ema,
    indicator_table,
    macd,
    realised_volatility,
    rsi,
    sma,
    volume_z,
)
from agent_gym.markets.instrument import Instrument

# Moves of +3, -1, +2, -4, +1: small enough to do in the head.
CLOSES = np.array([10.0, 13.0, 12.0, 14.0, 10.0, 11.0])


def sample_bars(num_bars: int, seed: int = 0, level: float = 60_000.0) -> Bars:
    rng = Seeds(seed).child("indicator_samples").rng()
    close = level * np.exp(np.cumsum(0.002 * rng.standard_t(4, num_bars)))
    opened = np.concatenate([close[:1], close[:-1]])
    high, low = 1.001 * np.maximum(opened, close), 0.999 * np.minimum(opened, close)
    ts = HOUR_NS * np.arange(num_bars, dtype=np.int64)
    volume = np.exp(rng.normal(3.0, 1.0, num_bars))
    return Bars(Instrument(), HOUR_NS, ts, opened, high, low, close, volume)


def wilder_rsi(close: FloatArray, window: int) -> FloatArray:
    """The recipe as Wilder wrote it: plain means first, then (n - 1)/n of the old and 1/n new."""
    moves = np.diff(close)
    gains, losses = np.maximum(moves, 0.0), np.maximum(-moves, 0.0)
    gain, loss = gains[:window].mean(), losses[:window].mean()
    index = [100.0 * gain / (gain + loss)]
    for up, down in zip(gains[window:], losses[window:], strict=True):
        gain, loss = (gain * (window - 1) + up) / window, (loss * (window - 1) + down) / window
        index.append(100.0 * gain / (gain + loss))
    return np.array([np.nan] * window + index)


def test_sma_by_hand() -> None:
    np.testing.assert_allclose(sma(np.array([1.0, 2.0, 3.0, 10.0]), 3), [np.nan, np.nan, 2.0, 5.0])


def test_ema_by_hand() -> None:
    # window 3: weight 1/2, begun at (1 + 2 + 3) / 3 = 2
    values = np.array([1.0, 2.0, 3.0, 10.0, 0.0])
    np.testing.assert_allclose(ema(values, 3), [np.nan, np.nan, 2.0, 6.0, 3.0])


def test_rsi_is_wilders_and_not_the_plain_mean() -> None:
    index = rsi(CLOSES, 3)
    assert np.isnan(index[:3]).all()
    # Mean gain 5/3 and loss 1/3; then gain 10/9, loss 14/9; then gain 29/27, loss 28/27.
    np.testing.assert_allclose(index[3:], [100 * 5 / 6, 100 * 10 / 24, 100 * 29 / 57], rtol=1e-12)
    assert index[-1] != pytest.approx(100 * 3 / 7, abs=1.0)  # the plain mean of the last 3 moves
    close = sample_bars(300, seed=5).close
    np.testing.assert_allclose(rsi(close), wilder_rsi(close, 14), rtol=1e-9)


def test_rsi_at_its_ends() -> None:
    rising = np.arange(1.0, 40.0)
    assert rsi(rising)[-1] == 100.0
    assert rsi(rising[::-1])[-1] == 0.0  # only losses: a true 0
    assert np.isnan(rsi(np.full(40, 7.0))).all()  # nothing moved: not a 0
    assert rsi(np.concatenate([np.full(40, 7.0), [8.0]]))[-1] == 100.0


def test_macd_is_the_difference_of_its_means() -> None:
    close = sample_bars(300).close
    line, signal, histogram = macd(close)
    assert np.flatnonzero(~np.isnan(line))[0] == 33  # 26 bars for the slow mean, 9 for the signal
    late = slice(250, None)  # by then the start of either mean is forgotten
    np.testing.assert_allclose(line[late], (ema(close, 12) - ema(close, 26))[late], rtol=1e-5)
    np.testing.assert_allclose(histogram, line - signal, rtol=1e-9, atol=1e-9)


def test_bollinger_is_on_price() -> None:
    close = sample_bars(100).close
    upper, middle, lower = bollinger(close, 20, 2.0)
    window = close[-20:]
    assert middle[-1] == pytest.approx(window.mean(), rel=1e-12)
    assert upper[-1] == pytest.approx(window.mean() + 2.0 * window.std(), rel=1e-9)
    assert lower[-1] == pytest.approx(window.mean() - 2.0 * window.std(), rel=1e-9)
    # The trap: deviations of returns make a band of a few thousandths of a quote unit.
    assert upper[-1] - lower[-1] > 1000.0 * np.diff(np.log(close[-21:])).std()
    inside = (close >= lower) & (close <= upper)
    assert inside[19:].mean() > 0.7


def test_atr_by_hand() -> None:
    high = np.array([10.0, 12.0, 13.0, 13.0])
    low = np.array([8.0, 9.0, 11.0, 6.0])
    close = np.array([9.0, 11.0, 12.0, 7.0])
    # true ranges from the second bar: 3, 2, 7; the first mean is of two, then (2.5 + 7) / 2
    np.testing.assert_allclose(atr(high, low, close, 2), [np.nan, np.nan, 2.5, 4.75])


@pytest.mark.parametrize(
    ("period_ns", "bars_a_year"), [(MINUTE_NS, 525_600), (HOUR_NS, 8_760), (DAY_NS, 365)]
)
def test_volatility_is_annualised_from_the_period(period_ns: int, bars_a_year: int) -> None:
    close = sample_bars(60).close
    moves = np.diff(np.log(close))[-20:]
    expected = math.sqrt((moves**2).mean() * bars_a_year)
    assert realised_volatility(close, period_ns)[-1] == pytest.approx(expected, rel=1e-9)


def test_volatility_of_a_steady_trend_is_not_nothing() -> None:
    close = 1.01 ** np.arange(50.0)
    found = realised_volatility(close, DAY_NS)[-1]
    assert found == pytest.approx(math.log(1.01) * math.sqrt(365))


def test_volatility_forgets_a_crash() -> None:
    close = np.concatenate([sample_bars(100).close, np.full(60, 60.0)])
    volatility = realised_volatility(close, HOUR_NS)
    assert volatility[100] > 50.0
    assert 0.0 <= volatility[-1] < 1e-9


def test_volume_z_by_hand() -> None:
    volume = np.array([1.0, 3.0, 5.0, 5.0, 5.0, 5.0])
    expected = [np.nan, np.nan, 2.0 / math.sqrt(8 / 3), (2 / 3) / math.sqrt(8 / 9), np.nan, np.nan]
    np.testing.assert_allclose(volume_z(volume, 3), expected)


def test_equal_to_talib_itself() -> None:
    bars = sample_bars(500, seed=3)
    table = indicator_table(bars)
    upper, middle, lower = talib.BBANDS(bars.close, 20, 2.0, 2.0)
    reference = {
        "sma_20": talib.SMA(bars.close, 20),
        "sma_50": talib.SMA(bars.close, 50),
        "ema_12": talib.EMA(bars.close, 12),
        "ema_26": talib.EMA(bars.close, 26),
        "macd": talib.MACD(bars.close, 12, 26, 9)[0],
        "macd_signal": talib.MACD(bars.close, 12, 26, 9)[1],
        "macd_histogram": talib.MACD(bars.close, 12, 26, 9)[2],
        "rsi_14": talib.RSI(bars.close, 14),
        "bollinger_upper": upper,
        "bollinger_middle": middle,
        "bollinger_lower": lower,
        "atr_14": talib.ATR(bars.high, bars.low, bars.close, 14),
    }
    for name, expected in reference.items():
        np.testing.assert_array_equal(table[name].to_numpy(), expected, err_msg=name)


def test_warm_up_is_nan_and_lasts_as_long_as_it_should() -> None:
    table = indicator_table(sample_bars(200)).drop("ts", "volume")
    first = {name: int(np.argmax(~np.isnan(table[name].to_numpy()))) for name in table.columns}
    assert first == {
        "sma_20": 19,
        "sma_50": 49,
        "ema_12": 11,
        "ema_26": 25,
        "macd": 33,
        "macd_signal": 33,
        "macd_histogram": 33,
        "rsi_14": 14,
        "bollinger_upper": 19,
        "bollinger_middle": 19,
        "bollinger_lower": 19,
        "atr_14": 14,
        "volatility_20": 20,
        "volume_z_20": 19,
    }
    for name, start in first.items():
        assert table[name].slice(0, start).is_nan().all(), name
        assert table[name].slice(start).is_finite().all(), name


def test_book_columns_come_along_when_there_are_any() -> None:
    bars = sample_bars(60)
    assert "obi" not in indicator_table(bars).columns
    table = indicator_table(replace(bars, extra={"obi": np.zeros(60), "spread": np.ones(60)}))
    assert table.columns[-2:] == ["spread", "obi"]
    assert table.schema["ts"] == pl.Int64


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    stop=st.integers(1, 120),
    level=st.sampled_from([1e-9, 1.0, 60_000.0, 1e9]),
)
def test_prefixes_give_the_same_bits(seed: int, stop: int, level: float) -> None:
    bars = sample_bars(120, seed, level)
    whole = indicator_table(bars).slice(0, stop)
    prefix = indicator_table(bars.rows(0, stop))
    for name in whole.columns:
        assert prefix[name].to_numpy().tobytes() == whole[name].to_numpy().tobytes(), name


@pytest.mark.parametrize("num_bars", [0, 1, 2, 15])
def test_short_series_are_all_warm_up(num_bars: int) -> None:
    table = indicator_table(sample_bars(num_bars))
    assert table.height == num_bars
    assert table["sma_20"].is_nan().all()


def test_windows_that_mean_nothing_are_refused() -> None:
    close = sample_bars(50).close
    with pytest.raises(ConfigError, match="window counts bars"):
        sma(close, 0)
    with pytest.raises(ConfigError, match="window counts bars"):
        rsi(close, 1)
    with pytest.raises(ConfigError, match="shorter than the slow"):
        macd(close, 26, 12)
