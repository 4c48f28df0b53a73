"""Random timing: the same turnover and holding times, and a p-value that knows luck from skill."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.permutation import Holdings, random_timing
from agent_gym.exchange.costs import Costs
from agent_gym.exchange.tape import Tape
from tests.samples import random_bars

CONFIG = BacktestConfig(allow_short=True, impact=0.0, participation=None)


def holdings(targets):
    made = Holdings.of(np.asarray(targets))
    return sorted(zip(made.values.tolist(), made.lengths.tolist(), strict=True))


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=1, max_size=60), st.integers(0, 9))
def test_a_draw_trades_as_often_and_holds_as_long(targets, seed):
    targets = np.array(targets)
    drawn = Holdings.of(targets).shuffled(Seeds(seed).rng())
    assert sorted(drawn) == sorted(targets)
    turns = np.count_nonzero(np.diff(targets))
    assert abs(np.count_nonzero(np.diff(drawn)) - turns) <= 1
    # Turned back to some start, the holding times of each position are the same.
    matches = [holdings(np.roll(drawn, k)) == holdings(targets) for k in range(targets.size)]
    assert any(matches)


def test_draws_differ():
    targets = np.repeat([0.0, 1.0, 0.0, 1.0, -1.0], [5, 3, 9, 2, 6])
    rng = Seeds(0).rng()
    drawn = {Holdings.of(targets).shuffled(rng).tobytes() for _ in range(50)}
    assert len(drawn) > 25


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
