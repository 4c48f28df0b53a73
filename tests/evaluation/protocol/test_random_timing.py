"""Random timing: the same turnover and holding times, and a p-value that knows luck from skill."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol import permutation
from agent_gym.evaluation.protocol.permutation import (
    RandomTiming,
    random_timing,
    together,
    turned,
)
from agent_gym.exchange.costs import Costs
from agent_gym.exchange.tape import Tape
from agent_gym.markets.bars import Bars
from tests.samples import random_bars

FREE = BacktestConfig(
    allow_short=True,
    impact=0.0,
    participation=None,
    taker_bps=0,
    slippage_bps=0,
    half_spread_bps=0,
)
CONFIG = BacktestConfig(allow_short=True, impact=0.0, participation=None)


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=1, max_size=60), st.integers(0, 99)
)
def test_a_draw_trades_as_often_and_holds_as_long(targets, bars):
    targets = np.array(targets)
    drawn = turned(targets, bars)
    assert sorted(drawn) == sorted(targets)
    assert abs(np.count_nonzero(np.diff(drawn)) - np.count_nonzero(np.diff(targets))) <= 1
    assert np.array_equal(np.roll(drawn, -bars), targets)


@cache
def timings_on_nulls(decide, n, runs=300, *, rough=False):
    found = []
    for seed in range(runs):
        rng = Seeds(seed).child("null").rng()
        moves = rng.normal(0.0, 0.006, n)
        if rough:  # calm and wild spells
            moves *= np.exp(rng.normal(0.0, 0.7, n // 100 + 1)).repeat(100)[:n]
        close = 100.0 * np.exp(np.cumsum(moves))
        tape = Tape.of(flat_bars(close), FREE.costs())
        found.append(random_timing(tape, 0.2 * decide(close), FREE, Seeds(seed), 40))
    return found


def p_values(timings):
    return np.array([each.p_value for each in timings if each.p_value is not None])


def shares(timings):
    """The plain share of draws that did as well."""
    return np.array([(1 + np.sum(each.drawn >= each.own)) / 41 for each in timings])


def past(close, memory):
    before = np.log(close / np.roll(close, memory))
    before[:memory] = 0.0
    return before


def trend(close, memory=120):
    return np.sign(past(close, memory))


def reversion(close):
    return -trend(close)


def breakout(close):
    moved = past(close, 24)
    return (moved > 2.0 * moved.std()).astype(float)


def is_uniform(found):
    """Rules have skewed gains, so a tenth to and fro is as even as it gets on a short series."""
    return kstest(found, "uniform").statistic < 0.12 and np.mean(found < 0.05) < 0.09


@pytest.mark.parametrize("decide", [trend, reversion])
@pytest.mark.parametrize("n", [1_400, 2_000])
def test_the_p_value_of_a_rule_on_short_nulls_is_uniform(decide, n):
    found = p_values(timings_on_nulls(decide, n))
    assert found.size == 300  # none is left out by what came of it
    assert is_uniform(found)


@pytest.mark.parametrize("decide", [trend, reversion])
def test_the_p_value_of_a_rule_on_long_nulls_is_uniform(decide):
    found = p_values(timings_on_nulls(decide, 4_000, runs=200))
    assert found.size == 200
    assert abs(found.mean() - 0.5) < 3.0 * np.sqrt(1.0 / 12.0 / found.size)
    assert np.mean(found < 0.05) < 0.10


def test_the_plain_share_would_be_too_sharp():
    timings = timings_on_nulls(trend, 700)
    assert np.mean(shares(timings) < 0.05) > 0.10
    assert np.sum(p_values(timings) < 0.05) < 0.05 * len(timings)


def test_who_trades_when_it_is_rough_is_measured_by_what_was_risked(monkeypatch):
    assert np.mean(p_values(timings_on_nulls(breakout, 1_400, rough=True)) < 0.05) < 0.09
    monkeypatch.setattr(permutation, "_roughness", lambda *_: 1.0)
    timings_on_nulls.cache_clear()
    assert np.mean(p_values(timings_on_nulls(breakout, 1_400, rough=True)) < 0.05) > 0.09


def test_draws_that_looked_ahead_would_be_found_out(monkeypatch):
    monkeypatch.setattr(permutation, "APART", 0)
    timings_on_nulls.cache_clear()
    assert p_values(timings_on_nulls(trend, 1_000)).mean() - 0.5 > 3.0 * np.sqrt(1.0 / 12.0 / 300)


def test_where_p_cannot_be_known_it_says_why():
    (short,) = timings_on_nulls(trend, 600, runs=1)
    assert short.p_value is None
    assert short.unknown == "600 tested bars, 672 are needed"


def test_series_that_have_nothing_to_do_with_each_other_are_put_together():
    timings = timings_on_nulls(reversion, 700, runs=300)
    both = [together(timings[at : at + 3]) for at in range(0, 300, 3)]
    assert abs(p_values(both).mean() - 0.5) < 3.0 * np.sqrt(1.0 / 12.0 / 100)
    assert np.mean(p_values(both) < 0.05) < 0.13
    assert both[0].freedom > max(each.freedom for each in timings[:3])
    assert both[0].own == pytest.approx(sum(each.own for each in timings[:3]))
    one = together(timings[:1])
    assert one.p_value == timings[0].p_value
    assert RandomTiming.of(one.as_dict()).p_value == one.p_value


def flat_bars(close):
    bars = random_bars(close.size, kind="spot")
    open_ = np.concatenate([close[:1], close[:-1]])
    prices = (open_, np.maximum(open_, close), np.minimum(open_, close), close)
    return Bars(bars.instrument, bars.period_ns, bars.ts, *prices, np.full(close.size, 1e9))


def timing(decide, draws=200):
    bars = random_bars(2_000, kind="spot")
    costs = Costs(impact=0.0, participation=None)
    ahead = np.diff(bars.open, append=bars.open[-1])
    rng = Seeds(5).rng()
    return random_timing(Tape.of(bars, costs), decide(ahead, rng), CONFIG, Seeds(1), draws)


def test_foresight_is_no_chance():
    found = timing(lambda ahead, rng: np.roll(np.sign(ahead), -1))
    assert found.p_value == 1 / 201
    assert found.own > found.drawn.max()


def test_dice_are_chance():
    found = timing(lambda ahead, rng: np.repeat(rng.integers(-1, 2, 200), 10).astype(float))
    assert 0.02 < found.p_value < 0.98


def test_who_never_trades_has_no_timing():
    assert timing(lambda ahead, rng: np.ones(ahead.size)).p_value == 1.0
    assert timing(lambda ahead, rng: np.zeros(ahead.size)).p_value == 1.0


def test_the_same_seed_gives_the_same_draws():
    one, two = (timing(lambda ahead, rng: (ahead > 0).astype(float), 20) for _ in range(2))
    assert np.array_equal(one.drawn, two.drawn)


def test_the_draws_are_told_by_their_mean_and_where_most_of_them_lie():
    found = RandomTiming(own=9.0, drawn=np.arange(101.0), bars=700, variance=1.0, freedom=3.0).draws
    assert (found.draws, found.mean, found.low, found.high) == (101, 50.0, 5.0, 95.0)
