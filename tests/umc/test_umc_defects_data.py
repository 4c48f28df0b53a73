"""Traps of the data: dead columns, NaN that counts as true, wrong indicators, naive markets."""

import math
from dataclasses import replace

import numpy as np
import pytest

from agent_gym.agents.umc.series import SeriesReader
from agent_gym.core.clock import HOUR_NS
from agent_gym.core.errors import AgentError, DataError
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.markets.features import FEATURES, compute_features
from agent_gym.markets.indicators import bollinger, realised_volatility, rsi, sma
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.order_flow import (
    Quotes,
    Tape,
    attach_book_columns,
    bars_from_trades,
    trade_imbalance,
)
from agent_gym.markets.source import open_market
from tests.samples import random_bars


@pytest.fixture(scope="module")
def synthetic():
    return open_market(Ref(use="synthetic/btc-1h", params={"n_bars": 3_000}), Seeds(1))


# --- columns that say nothing --------------------------------------------------------------------


def dead_columns(names, values, mask):
    """Return the columns that are said to be known and never vary."""
    dead = []
    for i, name in enumerate(names):
        known = values[mask[:, i], i]
        if known.size > 1 and not known.std() > 0.0:
            dead.append(name)
    return dead


def test_d22_no_column_that_is_known_stands_still_on_the_training_span(synthetic):
    table = compute_features(synthetic)
    train = slice(0, 2_000)
    assert dead_columns(table.names, table.values[train], table.mask[train]) == []
    padded = np.column_stack([table.values[train], np.full(2_000, 1_000.0)])
    shown = np.column_stack([table.mask[train], np.ones(2_000, dtype=bool)])
    assert dead_columns((*table.names, "volume"), padded, shown) == ["volume"]  # a made-up default


def test_d22_there_are_as_many_columns_as_features_and_no_padding(synthetic):
    names, matrix = compute_features(synthetic).observations()
    assert matrix.shape[1] == len(names) == 2 * len(FEATURES)
    assert len(set(FEATURES)) == len(FEATURES) == 18


def test_d22_a_column_that_the_data_lack_is_unknown_and_not_a_constant():
    table = compute_features(replace(random_bars(400, 1, kind="spot"), extra={}))
    for name in ("taker_imbalance", "book_imbalance", "order_flow", "spread_ratio", "funding_z"):
        assert np.isnan(table.column(name)).all()
        assert not table.mask[:, FEATURES.index(name)].any()


# --- NaN is not a number, and not a yes ----------------------------------------------------------


def counted_if_true(values):
    """The defect: ``if value`` lets NaN through, as NaN is true."""
    return [value for value in values if value]


def test_d25_what_is_unknown_is_masked_and_a_known_zero_is_not():
    bars = random_bars(400, 1, kind="spot")
    half = bars.volume / 2.0
    half[300] = math.nan
    table = compute_features(replace(bars, extra={"taker_buy": half}))
    at = FEATURES.index("taker_imbalance")
    assert not table.mask[300, at]
    assert table.mask[299, at]
    assert table.values[299, at] == 0.0  # measured, and 0
    asked_by_truth = counted_if_true(table.values[[299, 300], at])
    assert np.isnan(asked_by_truth).all()  # it drops the measured 0 and keeps the unknown
    names, matrix = table.observations()
    flag = names.index("taker_imbalance_known")
    assert matrix[[299, 300], flag].tolist() == [1.0, 0.0]
    assert np.isfinite(matrix).all()


def test_d25_the_warm_up_of_volatility_is_unknown():
    table = compute_features(random_bars(400, 1))
    assert not table.mask[0, FEATURES.index("return_z")]
    assert np.array_equal(np.isnan(table.values), ~table.mask)


def test_d25_a_model_reads_unknown_as_nan_and_refuses_a_close_that_is_none():
    reader = SeriesReader(("signal",))
    close = 100.0 + np.arange(50.0)
    columns = {"close": close, "signal": np.ones(50), "signal_known": np.ones(50)}
    columns["signal_known"][7] = 0.0
    reader.fit(columns)
    seen = reader.read(columns, reader.begin())
    assert np.flatnonzero(np.isnan(seen.inputs[:, 0])).tolist() == [7]
    broken = dict(columns, close=np.where(np.arange(50) == 9, math.nan, close))
    with pytest.raises(AgentError, match="not a price"):
        reader.read(broken, reader.begin())


# --- indicators ----------------------------------------------------------------------------------


def test_d26_bollinger_bands_are_deviations_of_the_price():
    close = random_bars(200, 3, start_price=50_000.0).close
    bands = bollinger(close, 20)
    window = close[180:200]
    assert bands.upper[-1] - bands.middle[-1] == pytest.approx(2.0 * window.std(), rel=1e-6)
    of_returns = 2.0 * np.diff(np.log(window)).std()  # the defect: a band of a fraction of a cent
    assert of_returns < 1e-4 * (bands.upper[-1] - bands.middle[-1])


def wilder(close, window):
    """Return the last index by Wilder's own recipe, step by step."""
    moves = np.diff(close)
    gain, loss = np.maximum(moves, 0.0), np.maximum(-moves, 0.0)
    up, down = gain[:window].mean(), loss[:window].mean()
    for i in range(window, moves.size):
        up, down = (up * (window - 1) + gain[i]) / window, (down * (window - 1) + loss[i]) / window
    return 100.0 * up / (up + down)


def by_plain_means(close, window):
    """The defect: plain means of the last moves."""
    moves = np.diff(close)[-window:]
    return 100.0 * np.maximum(moves, 0.0).sum() / np.abs(moves).sum()


def test_d26_rsi_is_wilders():
    close = random_bars(120, 4).close
    assert rsi(close, 14)[-1] == pytest.approx(wilder(close, 14), rel=1e-9)
    assert abs(by_plain_means(close, 14) - wilder(close, 14)) > 0.5


def test_d26_a_warm_up_is_no_zero_and_volatility_knows_no_price_level():
    close = random_bars(120, 4).close
    assert np.isnan(sma(close, 20)[:19]).all()
    assert sma(close, 20)[19] == pytest.approx(close[:20].mean())
    small, large = (realised_volatility(scale * close, HOUR_NS) for scale in (1.0, 1_000.0))
    assert np.allclose(small, large, rtol=1e-9, equal_nan=True)
    of_prices = [(scale * close[-20:]).std() for scale in (1.0, 1_000.0)]  # the defect
    assert of_prices[1] > 900.0 * of_prices[0]


# --- order flow ----------------------------------------------------------------------------------


def one_bar():
    ones = np.ones(2)
    bars = random_bars(2, 1, kind="spot")
    return replace(bars, period_ns=10, ts=np.array([0, 10]), open=ones, high=ones, low=ones)


def quotes(*rows):
    table = np.array([row[1:] for row in rows], dtype=np.float64)
    return Quotes(np.array([row[0] for row in rows], dtype=np.int64), *table.T)


def tape(times, ids=None):
    n = len(times)
    numbers = np.arange(n) if ids is None else np.array(ids)
    prices, sizes = np.full(n, 100.0), np.ones(n)
    return Tape(np.array(times), numbers.astype(np.int64), prices, sizes, np.ones(n, np.int64))


def test_d27_order_flow_counts_quotes_and_not_trades():
    moved = quotes((-1, 100, 5, 101, 5), (5, 100, 1, 101, 5))
    flow = attach_book_columns(one_bar(), moved, heard_until_ns=20).extra["ofi"][0]
    assert flow == -4.0  # four left the bid although nobody sold
    assert trade_imbalance(tape([1, 2]), one_bar())[0] == 1.0  # and here all trades are buys


def test_d27_a_download_that_overlaps_does_not_count_twice():
    with pytest.raises(DataError, match="twice"):
        tape([1, 2, 2, 3], ids=[0, 1, 1, 2])


def test_d27_the_book_is_that_of_the_close_and_no_poll_late():
    moved = quotes((-1, 100, 5, 101, 5), (9, 100, 5, 103, 5), (15, 100, 5, 104, 5))
    spread = attach_book_columns(one_bar(), moved, heard_until_ns=20).extra["spread"]
    assert spread.tolist() == [3.0, 4.0]
    late = np.concatenate([[np.nan], spread[:-1]])  # the defect
    assert not np.array_equal(late, spread)


def test_d27_trades_of_a_bar_that_is_still_open_make_no_bar():
    assert bars_from_trades(tape([0, 5, 10, 15, 20, 23]), 10, Instrument()).ts.tolist() == [0, 10]


# --- made markets --------------------------------------------------------------------------------


def autocorrelation(close):
    moves = np.diff(np.log(close))
    return float(np.corrcoef(moves[1:], moves[:-1])[0, 1])


def naive_market(n=3_000):
    """The defect: a straight line with noise on the level, in candles without a body."""
    close = 50_000.0 + 0.1 * np.arange(n) + Seeds(1).rng().normal(0.0, 50.0, n)
    return {"open": close, "high": 1.001 * close, "low": 0.999 * close, "close": close}


def test_d29_candles_of_a_made_market_say_something(synthetic):
    body = np.abs(np.log(synthetic.close / synthetic.open))
    wick = np.log(synthetic.high / np.maximum(synthetic.open, synthetic.close))
    assert np.mean(body == 0.0) < 0.01
    assert wick.std() > 0.5 * wick.mean()
    assert np.corrcoef(np.log(synthetic.volume), body)[0, 1] > 0.2
    naive = naive_market()
    assert np.abs(np.log(naive["close"] / naive["open"])).max() == 0.0
    assert np.log(naive["high"] / naive["close"]).std() < 1e-12


def test_d29_a_made_market_has_no_false_reversion_and_no_straight_line(synthetic):
    moves = np.diff(np.log(synthetic.close))
    assert abs(autocorrelation(synthetic.close)) < 0.15
    assert abs(moves.mean()) < 4.0 * moves.std() / math.sqrt(moves.size)
    assert autocorrelation(naive_market()["close"]) < -0.45
    line = np.diff(np.log(50_000.0 + 100.0 * np.arange(3_000)))
    assert abs(line.mean()) > 4.0 * line.std() / math.sqrt(line.size)
