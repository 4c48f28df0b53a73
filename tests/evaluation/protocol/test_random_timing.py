"""Random timing: the same turnover and holding times, and a p-value that knows luck from skill."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol import permutation
from agent_gym.evaluation.protocol.permutation import random_timing, turned
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


def p_values_on_nulls(sign, n, memory=120):
    found = []
    for seed in range(200):
        close = 100.0 * np.exp(np.cumsum(Seeds(seed).child("null").rng().normal(0.0, 0.006, n)))
        past = np.log(close / np.roll(close, memory))
        past[:memory] = 0.0
        tape = Tape.of(flat_bars(close), FREE.costs())
        targets = 0.2 * sign * np.sign(past)
        found.append(random_timing(tape, targets, FREE, Seeds(seed), 60).p_value)
    return np.array(found)


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["trend", "reversion"])
def test_the_p_value_of_a_rule_on_nulls_is_uniform(sign):
    p_values = p_values_on_nulls(sign, n=4_000)
    assert abs(p_values.mean() - 0.5) < 3.0 * np.sqrt(1.0 / 12.0 / p_values.size)
    assert np.mean(p_values < 0.05) < 0.10


def test_draws_that_looked_ahead_would_be_found_out(monkeypatch):
    monkeypatch.setattr(permutation, "APART", 0)
    assert p_values_on_nulls(1.0, n=1_000).mean() - 0.5 > 3.0 * np.sqrt(1.0 / 12.0 / 200)


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
