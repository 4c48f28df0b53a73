"""The reflexive market: a walk by itself, moved by orders, and by the crowd as theory says."""

import math

import numpy as np
import pytest

from agent_gym.core import ConfigError, Ref, Seeds, VenueError
from agent_gym.core.registry import Config, register
from agent_gym.envs.reflexive import (
    LinearImpact,
    Nobody,
    ReflexiveConfig,
    SquareRootImpact,
    open_crowd,
    simulate,
)
from agent_gym.envs.reflexive.kernel import SUB_STEPS
from agent_gym.markets.quality import check_bars
from tests.envs.reflexive_samples import STILL, WEIGHTS, echoes, small

T_11 = 2.201  # 95 % of Student's t with 11 degrees of freedom


def returns(config, seed):
    return np.diff(np.log(simulate(config, Seeds(seed)).settled.close))


def lag_one(config, seed):
    r = returns(config, seed)
    away = r - r.mean()
    return float(away[1:] @ away[:-1] / (away @ away))


def test_without_flow_the_price_is_the_exact_walk_of_its_seeds():
    still = {"size": 0, "weights": {"noise": 1.0}}
    config = small(crowd=Ref(use="echo", params=still), impact=LinearImpact(strength=0.0))
    seeds = Seeds(4)
    made = simulate(config, seeds)
    draws = seeds.child("market", "news").rng().standard_normal((config.length, SUB_STEPS))
    steps = (draws * (config.sigma / math.sqrt(SUB_STEPS))).ravel().tolist()
    level, closes = math.log(config.first_price), []
    for number, step in enumerate(steps):
        level += step
        if number % SUB_STEPS == SUB_STEPS - 1:
            closes.append(level)
    assert made.worth.tolist() == closes
    np.testing.assert_array_equal(made.bars.close, [math.exp(c) for c in closes])
    assert simulate(small(crowd=None), seeds).bars.close.tobytes() == made.bars.close.tobytes()


def test_d32_echoes_change_the_price_and_not_the_news():
    alone, crowded = (simulate(small(crowd=c), Seeds(2)) for c in (None, echoes()))
    assert not np.array_equal(alone.bars.close, crowded.bars.close)
    np.testing.assert_array_equal(alone.worth, crowded.worth)
    more = simulate(small(crowd=echoes(size=80)), Seeds(2))
    np.testing.assert_array_equal(more.worth, alone.worth)
    assert not np.array_equal(more.bars.close, crowded.bars.close)
    without_impact = small(crowd=echoes(), impact=LinearImpact(strength=0.0))
    np.testing.assert_array_equal(simulate(without_impact, Seeds(2)).bars.close, alone.bars.close)


@pytest.mark.parametrize("units", [0.5, -2.0])
def test_an_own_order_moves_the_price_by_the_impact(units):
    config = small(**STILL, pull=0.0, impact=LinearImpact(strength=0.3))
    flow = np.zeros(config.length)
    flow[30] = units
    moved, calm = simulate(config, Seeds(1), flow), simulate(config, Seeds(1))
    gap = np.log(moved.bars.close / calm.bars.close)
    expected = 0.3 * units / config.daily_units
    assert gap[:30].tolist() == [0.0] * 30
    np.testing.assert_allclose(gap[30:], expected, rtol=1e-9)
    opened = np.log(moved.bars.open[30] / calm.bars.open[30])
    assert opened == pytest.approx(expected / 2.0, rel=1e-9)
    assert moved.bars.volume[30] - calm.bars.volume[30] == pytest.approx(abs(units))


def test_the_pull_brings_the_price_back_to_its_worth():
    config = small(**STILL, pull=0.2, impact=LinearImpact(strength=0.3))
    flow = np.zeros(config.length)
    flow[30] = 2.0
    moved = simulate(config, Seeds(1), flow)
    gap = np.log(moved.bars.close) - moved.worth
    shrink = (1.0 - 0.2 / SUB_STEPS) ** SUB_STEPS
    np.testing.assert_allclose(gap[31:60] / gap[30:59], shrink, rtol=1e-6)


def test_root_impact_is_concave_and_its_transient_part_goes_back():
    impact = SquareRootImpact(strength=2.0, transient=0.6, half_life_bars=5.0)
    config = small(**STILL, pull=0.0, impact=impact)
    calm = simulate(config, Seeds(1)).bars

    def moved_by(units):
        flow = np.zeros(config.length)
        flow[20] = units
        bars = simulate(config, Seeds(1), flow).bars
        return np.log(bars.close / calm.close)[20:], np.log(bars.open / calm.open)[20]

    full, opened = moved_by(config.usual_volume)
    assert full[0] == pytest.approx(2.0 * config.sigma, rel=1e-9)
    assert opened == pytest.approx(2.0 / 3.0 * full[0], rel=1e-9)
    assert moved_by(config.usual_volume / 4.0)[0][0] == pytest.approx(full[0] / 2.0, rel=1e-9)
    assert moved_by(-config.usual_volume)[0][0] == pytest.approx(-full[0], rel=1e-9)
    kept = 0.4 + 0.6 * 0.5 ** (np.arange(full.size) / 5.0)
    np.testing.assert_allclose(full / full[0], kept, rtol=1e-6)


@pytest.mark.parametrize(("family", "sign"), [("momentum", 1.0), ("market_maker", -1.0)])
def test_momentum_raises_autocorrelation_and_makers_lower_it(family, sign):
    more = {**WEIGHTS, family: 3.0 * WEIGHTS[family]}
    pair = [ReflexiveConfig(bars=600, crowd=echoes(weights=weights)) for weights in (WEIGHTS, more)]
    base, changed = (np.array([lag_one(c, seed) for seed in range(12)]) for c in pair)
    gain = sign * (changed - base)
    assert gain.mean() - T_11 * gain.std(ddof=1) / math.sqrt(12) > 0.02


def test_makers_calm_the_market():
    more = {**WEIGHTS, "market_maker": 3.0 * WEIGHTS["market_maker"]}
    spread = [
        [returns(ReflexiveConfig(bars=500, crowd=echoes(weights=w)), s).std() for s in range(6)]
        for w in (WEIGHTS, more)
    ]
    assert (np.array(spread[1]) < np.array(spread[0])).all()


def test_bars_are_sound_and_the_same_again():
    config = small(bars=300, crowd=echoes(evolve_every_bars=100))
    one, two, other = (simulate(config, Seeds(s)).bars for s in (1, 1, 2))
    assert one.fingerprint == two.fingerprint != other.fingerprint
    assert check_bars(one, source_name="reflexive").counts == {}
    assert (one.high > np.maximum(one.open, one.close)).mean() > 0.5
    assert ((one.extra["taker_buy"] >= 0.0) & (one.extra["taker_buy"] <= one.volume)).all()


def test_the_volume_counts_everybody():
    config = small(volume_spread=0.0)
    made = simulate(config, Seeds(1))
    expected = config.usual_volume + config.daily_units * made.gross
    np.testing.assert_allclose(made.bars.volume, expected, rtol=1e-12)


def test_a_crowd_is_found_by_its_name_and_must_be_one():
    assert isinstance(open_crowd(None), Nobody)
    with pytest.raises(ConfigError, match="no crowd is named"):
        open_crowd(Ref(use="ecco"))

    class Nothing(Config):
        pass

    register("crowd", "test-nothing", Nothing)(lambda config: object())
    with pytest.raises(ConfigError, match="this is no crowd"):
        open_crowd(Ref(use="test-nothing"))


def test_a_flow_must_fit_and_a_price_must_stay_a_number():
    config = small()
    with pytest.raises(VenueError, match="one finite number"):
        simulate(config, Seeds(1), np.zeros(3))
    flow = np.zeros(config.length)
    flow[3] = 1e9
    with pytest.raises(VenueError, match="ran away"):
        simulate(small(impact=LinearImpact(strength=10.0)), Seeds(1), flow)
