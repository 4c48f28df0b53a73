"""The linear-Gaussian tier against closed forms and filters that know the law."""

import numpy as np
import pytest

from agent_gym.agents.umc.tiers import Series
from agent_gym.agents.umc.tiers.yardsticks import HiddenLevel, shortfall, unit_series
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds

KALMAN = Ref(use="umc/kalman")
YEAR = 8_760


def with_inputs(returns, inputs):
    ones = np.ones(returns.size)
    names = tuple(f"input_{i}" for i in range(inputs.shape[1]))
    return Series(returns, ones, ones, inputs, names)


def led_by_an_input(seed, bars, slope):
    """Returns that the input before them leads, beside an input that says nothing."""
    rng = Seeds(seed).child("led").rng()
    inputs = rng.standard_normal((bars, 2))
    returns = rng.standard_normal(bars)
    returns[1:] += slope * inputs[:-1, 0]
    return with_inputs(returns, inputs)


def fitted(series, **params):
    tier = make("tier", Ref(use="umc/kalman", params=params))
    tier.fit(series, Seeds(0))
    return tier


def test_it_is_near_the_filter_that_knows_a_linear_gaussian_law():
    """The persistence, 0.93, is none of those it weighs."""
    gap = shortfall(KALMAN, HiddenLevel(), range(3), past_bars=4_000, later_bars=4_000)
    assert gap.lead > 0.1
    assert gap.mean < 0.005
    blind = Ref(use="umc/kalman", params={"persistences": []})
    assert shortfall(blind, HiddenLevel(), [0], 4_000, 4_000).mean > 0.02


def test_a_level_is_followed_by_the_head_that_has_its_persistence():
    tier = fitted(HiddenLevel(persistence=0.98, share=0.3).draw(YEAR, Seeds(2)))
    chance = dict(zip(tier.heads, tier.weights()["chance"], strict=True))
    assert max(chance, key=chance.get) == "level_0.98"
    assert chance["still"] < 0.01  # what is forgotten goes back to it


def test_slopes_are_those_of_a_bayesian_regression():
    """Without a level, the filter is recursive least squares with a Gaussian prior."""
    series = led_by_an_input(3, 500, 0.3)
    tier = fitted(series, persistences=(), slope_sigmas=(0.1,), forget=0.0)
    weights = tier.weights()
    scaled = (series.inputs - weights["input_mean"]) / weights["input_deviation"]
    known = np.column_stack([series.returns, scaled])
    rows = np.vstack([np.zeros(3), known[:-1]])
    noise = weights["laws"][0, 2]
    precision = rows.T @ rows / noise + np.eye(3) / (0.1**2 * noise)
    expected = np.linalg.solve(precision, rows.T @ series.returns / noise)
    assert np.abs(weights["slopes"][0] - expected).max() < 1e-9
    assert np.abs(weights["doubt"][0] - np.linalg.inv(precision)).max() < 1e-9
    assert expected[1] > 0.2 > abs(expected[2])


@pytest.mark.parametrize("seed", range(3))
def test_an_input_that_leads_is_used_and_one_that_does_not_is_not(seed):
    series = led_by_an_input(seed, YEAR, 0.05)
    slopes = fitted(series).weights()["slopes"][0]
    assert slopes[1] == pytest.approx(0.05, abs=0.035)
    assert abs(slopes[2]) < 0.03


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_expected_of_a_walk(seed):
    walk = unit_series(Seeds(seed).child("walk").rng().standard_normal(2 * YEAR))
    tier = fitted(walk.rows(0, YEAR))
    memory = tier.begin()
    tier.filter(walk.rows(0, YEAR), memory)
    later = walk.rows(YEAR, 2 * YEAR)
    told = tier.filter(later, memory)
    plain = -0.5 * (np.log(2 * np.pi) + later.returns**2)
    assert np.sqrt((told.edge**2).mean()) < 0.05
    assert (plain - told.score).mean() < 1e-3


def test_heads_tell_their_doubt_apart_from_their_noise():
    series = led_by_an_input(1, 400, 0.1)
    tier = fitted(series)
    odd = with_inputs(np.zeros(1), np.array([[8.0, 8.0]]))
    usual = with_inputs(np.zeros(1), np.array([[0.0, 0.0]]))
    far, near = (tier.filter(row, tier.begin()).variance[0, 0] for row in (odd, usual))
    assert far > near + 1e-3  # what is far from all that was seen is less sure


@pytest.mark.parametrize(
    "change", [{"forget": 0.01}, {"still_prior": 0.7}, {"persistences": [0.6]}]
)
def test_every_setting_counts(change):
    series = led_by_an_input(1, 400, 0.1)
    plain, other = fitted(series), fitted(series, **change)
    scores = [tier.filter(series, tier.begin()).score for tier in (plain, other)]
    assert scores[0].tobytes() != scores[1].tobytes()
    assert fitted(series, slope_sigmas=[0.5]).weights()["slopes"][0, 1] > 0.05


def test_a_wild_return_does_not_take_the_level_with_it():
    calm = HiddenLevel().draw(1_000, Seeds(0))
    tier = fitted(calm)
    edges = []
    for wild in (8.0, 1e6):
        memory = tier.begin()
        tier.filter(calm, memory)
        edges.append(tier.filter(unit_series(np.array([wild])), memory).edge[0])
    assert edges[0] == edges[1]
