"""Moments tell markets apart, and a search finds a crowd whose bars look like given ones."""

import json

import numpy as np
import pytest

from agent_gym.core import ConfigError, DataError, Ref, Seeds
from agent_gym.envs.reflexive import ClusteredNews, ReflexiveConfig, simulate
from agent_gym.evaluation.reflexive import FitConfig, RealismTarget, fit_crowd, moments_of
from agent_gym.evaluation.reflexive.crowds import echo_config, point_of, weights_at, with_echoes

CROWD = Ref(use="echo", params={"size": 24, "evolve_every_bars": None})
MARKET = ReflexiveConfig(bars=500, warmup_bars=50, crowd=CROWD)
TINY = MARKET.model_copy(update={"bars": 300})


def given(seed=3, bars=3_000):
    """Return bars of a market that shakes by turns."""
    config = ReflexiveConfig(
        bars=bars, crowd=None, sigma=0.008, clustering=ClusteredNews(spread=0.5)
    )
    return simulate(config, Seeds(seed)).settled


def test_moments_of_a_normal_series_are_those_of_the_law():
    found = moments_of(Seeds(1).rng().normal(0.0, 0.01, 20_000))
    assert found["deviation_bp"] == pytest.approx(100.0, rel=0.02)
    assert found["kurtosis"] == pytest.approx(3.0, abs=0.15)
    assert found["skew"] == pytest.approx(0.0, abs=0.06)
    for name in ("acf_r1", "acf_r10", "acf_abs1_1", "acf_abs21_50"):
        assert abs(found[name]) < 0.03


def test_hill_finds_the_exponent_of_a_known_tail():
    dice = Seeds(2).rng()
    signs = np.where(dice.random(50_000) < 0.5, -1.0, 1.0)
    found = moments_of(signs * (1.0 + dice.pareto(3.0, 50_000)))
    assert found["hill"] == pytest.approx(3.0, abs=0.3)


def test_too_few_or_too_still_returns_are_refused():
    with pytest.raises(DataError, match="moments"):
        moments_of(np.zeros(500))
    with pytest.raises(DataError, match="moments"):
        moments_of(Seeds(1).rng().normal(size=20))


def test_a_piece_of_the_same_kind_is_near_and_another_kind_is_far():
    target = RealismTarget.of(given(bars=8_000), 1_000)
    near = [target.distance(given(seed, bars=1_000)) for seed in (4, 5, 6)]
    walk = ReflexiveConfig(bars=1_000, crowd=None, sigma=0.008)
    far = [target.distance(simulate(walk, Seeds(seed)).settled) for seed in (4, 5, 6)]
    assert max(near) < min(far)
    assert 0.6 < np.mean(near) < 1.6
    assert set(target.misses(given(4))) == set(target.values)


def test_distance_1_is_that_of_real_stretches():
    target = RealismTarget.of(given(bars=6_000), 500)
    assert (target.stretch_bars, len(target.stretches)) == (500, 23)
    assert np.median(target.stretches) == pytest.approx(1.0)
    assert target.real_share(1.0) == pytest.approx(0.5, abs=0.05)
    assert target.real_share(0.0) == 0.0
    assert target.real_share(1e9) == 1.0


def test_a_stretch_is_at_most_a_fourth_of_the_bars_and_too_few_are_refused():
    assert RealismTarget.of(given(bars=1_200), 2_000).stretch_bars == 300
    with pytest.raises(DataError, match="stretches"):
        RealismTarget.of(given(bars=700))


def test_a_mixture_and_its_point_belong_together():
    mixture = echo_config(MARKET).mixture
    again = weights_at(point_of(mixture))
    np.testing.assert_allclose(list(again.values()), mixture, atol=0.01)
    assert sum(again.values()) == pytest.approx(1.0)
    assert with_echoes(MARKET, capital_adv=2.0).crowd.params["size"] == 24


def test_a_fit_comes_nearer_and_can_be_told_again():
    told = []
    config = FitConfig(market=MARKET, generations=4, candidates=8, seed=1)
    bars = given()
    found = fit_crowd(bars, config, lambda number, distance: told.append((number, distance)))
    assert found.fresh_distance < 0.8 * found.start_distance
    assert [number for number, _ in told] == [1, 2, 3, 4]
    assert found.history == [distance for _, distance in told]
    assert found.history == sorted(found.history, reverse=True)
    shown = json.loads(json.dumps(found.as_dict()))
    assert ReflexiveConfig.model_validate(shown["market"]) == found.market
    assert shown["target"]["fingerprint"] == bars.fingerprint
    again = fit_crowd(bars, config)
    assert again.as_dict() == found.as_dict()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("too_wild", [1.0, 1.3, 4.0])
def test_a_fit_is_never_less_real_than_what_it_began_with(seed, too_wild):
    """Also where the start made the bars or nearly did, and little is tried."""
    bars = simulate(TINY.model_copy(update={"bars": 2_000}), Seeds(seed)).settled
    start = TINY.model_copy(update={"sigma": too_wild * TINY.sigma})
    found = fit_crowd(bars, FitConfig(market=start, generations=1, candidates=4, seed=seed))
    assert found.fresh_distance <= found.start_distance
    assert found.moved or (found.market, found.fresh_distance) == (start, found.start_distance)
    assert found.moved or too_wild < 4.0, "what is far off can be bettered by anything"


@pytest.mark.parametrize(
    "more",
    [
        {"seed": 2},
        {"generations": 3},
        {"candidates": 9},
        {"paths": 2},
        {"market": TINY.model_copy(update={"bars": 320})},
    ],
)
def test_every_field_of_a_fit_acts(more):
    base = FitConfig(market=TINY, generations=2, candidates=4)
    bars = given()
    one, two = (fit_crowd(bars, c) for c in (base, base.model_copy(update=more)))
    assert (one.market, one.history) != (two.market, two.history)


def test_only_echoes_can_be_fitted():
    with pytest.raises(ConfigError, match="crowd of echoes"):
        fit_crowd(given(), FitConfig(market=MARKET.model_copy(update={"crowd": None})))
