import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from agent_gym.agents.umc.efe import (
    BAR_DRAWS,
    Market,
    Mixture,
    conditional_entropy,
    entropy,
    gaussian_entropy,
    information_gain_linear,
    information_lower_bound,
    information_upper_bound,
    label_information,
    normal_draws,
    parameter_information,
    row_mixture,
    stratified_draws,
)
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds


def heads(seed, count=5, dimensions=8, apart=1.0):
    rng = Seeds(seed).child("heads").rng()
    mean = apart * rng.normal(size=(count, dimensions)) / math.sqrt(dimensions)
    return mean, np.exp(0.3 * rng.normal(size=(count, dimensions)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("apart", [0.3, 1.0, 4.0])
def test_the_estimate_lies_between_the_bounds(seed, apart):
    mean, variance = heads(seed, apart=apart)
    told = float(parameter_information(mean, variance, normal_draws(Seeds(seed), 4000, 8)))
    low, high = information_lower_bound(mean, variance), information_upper_bound(mean, variance)
    assert low <= told <= high
    assert 0.0 <= told <= math.log(5)
    if apart <= 1.0:  # far apart all of them are the log of the heads
        assert high - low > 0.02  # so loose that neither is an estimate


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 6), apart=st.floats(0.0, 30.0))
def test_information_is_never_above_the_log_of_the_heads(seed, count, apart):
    mean, variance = heads(seed, count, 2, apart)
    few = normal_draws(Seeds(seed), 8, 2)  # however few draws there are
    assert parameter_information(mean, variance, few) <= math.log(count) + 1e-12
    low, high = information_lower_bound(mean, variance), information_upper_bound(mean, variance)
    assert -1e-12 <= low <= high + 1e-12
    assert low <= math.log(count) + 1e-12


def test_equal_heads_teach_nothing_and_far_heads_everything():
    same = np.zeros((5, 8)), np.ones((5, 8))
    draws = normal_draws(Seeds(1), 200, 8)
    assert abs(float(parameter_information(*same, draws))) < 1e-12
    assert abs(float(information_lower_bound(*same))) < 1e-12
    assert abs(float(information_upper_bound(*same))) < 1e-12
    far = 100.0 * np.arange(5.0)[:, None] * np.ones((1, 8)), np.ones((5, 8))
    assert math.isclose(float(parameter_information(*far, draws)), math.log(5), rel_tol=1e-12)


def test_information_in_one_dimension_against_an_integral():
    mean, variance = np.array([-0.5, 0.1, 1.3]), np.array([0.5, 1.0, 2.0])

    def mixed(x):
        return float(norm.pdf(x, mean, np.sqrt(variance)).mean())

    whole, _ = quad(lambda x: -mixed(x) * math.log(mixed(x)), -15, 15, epsabs=1e-12, limit=300)
    right = whole - float(gaussian_entropy(variance).mean())
    shape = mean[:, None], variance[:, None]
    assert abs(float(parameter_information(*shape, stratified_draws(20_000))) - right) < 1e-5
    assert abs(float(parameter_information(*shape, BAR_DRAWS)) - right) < 1e-3
    assert abs(float(parameter_information(*shape, normal_draws(Seeds(2), 20_000))) - right) < 5e-3


def test_draws_are_common_to_all_actions():
    """An action that changes nothing has bitwise the same information as its neighbour."""
    mean, variance = heads(3)
    several = parameter_information(
        np.stack([mean, mean, 2.0 * mean]), np.stack([variance] * 3), normal_draws(Seeds(4), 100, 8)
    )
    assert several[0] == several[1]
    assert several[2] > several[0]
    again = parameter_information(mean, variance, normal_draws(Seeds(4), 100, 8))
    assert again == several[0]
    other = parameter_information(mean, variance, normal_draws(Seeds(5), 100, 8))
    assert other != several[0]


@pytest.mark.parametrize(
    ("doubt", "noise", "right"),
    [(1.0, 1.0, 0.5 * math.log(2)), (0.0, 1.0, 0.0), (24.0, 1.0, math.log(5))],
)
def test_linear_information(doubt, noise, right):
    gain = information_gain_linear([1.0, 0.0], [[doubt, 0.0], [0.0, 7.0]], noise)
    assert math.isclose(float(gain), right, abs_tol=1e-15)


def test_linear_information_is_the_limit_of_many_heads():
    """Heads that are drawn from a Gaussian belief tell what the closed form tells."""
    spread = stratified_draws(150)
    told = parameter_information(0.7 * spread, np.full((150, 1), 0.5), stratified_draws(150))
    assert abs(float(told) - float(information_gain_linear([1.0], [[0.49]], 0.5))) < 2e-3


def test_state_and_head_information_are_kept_apart():
    """Two heads that agree: all that is learned is about the state, and the reverse."""
    rows = np.array([[-1.0, 1.0], [-1.0, 1.0]])
    agree = Market.of_returns([0.5, 0.5], rows, np.ones((2, 2)))
    assert abs(float(label_information(agree.seen, agree.heads, BAR_DRAWS))) < 1e-12
    assert float(label_information(agree.seen, agree.states, BAR_DRAWS)) > 0.3
    differ = Market.of_returns([0.5, 0.5], rows.T, np.ones((2, 2)))
    assert abs(float(label_information(differ.seen, differ.states, BAR_DRAWS))) < 1e-12
    assert float(label_information(differ.seen, differ.heads, BAR_DRAWS)) > 0.3


def test_information_is_entropy_less_conditional_entropy():
    market = Market.of_returns([0.2, 0.8], [[-1.0, 0.5], [-0.3, 1.0]], [[1.0, 2.0], [0.5, 1.5]])
    for labels in (market.states, market.heads):
        gap = entropy(market.seen, BAR_DRAWS) - conditional_entropy(market.seen, labels, BAR_DRAWS)
        assert abs(float(gap - label_information(market.seen, labels, BAR_DRAWS))) < 1e-12


def test_a_state_that_is_impossible_counts_for_nothing():
    sure = Market.of_returns([0.0, 1.0], [[-1.0, 0.5]], [[1.0, 2.0]])
    assert abs(float(label_information(sure.seen, sure.states, BAR_DRAWS))) < 1e-12
    alone = entropy(row_mixture([1.0], [0.5], [2.0]), BAR_DRAWS)
    assert abs(float(entropy(sure.seen, BAR_DRAWS) - alone)) < 1e-12
    assert abs(float(conditional_entropy(sure.seen, sure.states, BAR_DRAWS) - alone)) < 1e-12


def test_draws_have_mean_0_and_variance_1():
    for draws in (normal_draws(Seeds(0), 500, 3), stratified_draws(257)):
        assert np.abs(draws.mean(0)).max() < 1e-14
        assert np.abs((draws**2).mean(0) - 1.0).max() < 1e-14


@pytest.mark.parametrize(
    ("weight", "mean", "variance", "words"),
    [
        ([0.5, 0.4], np.zeros((2, 1)), np.ones((2, 1)), "sum to 1"),
        ([0.5, 0.5], np.zeros((2, 1)), np.zeros((2, 1)), "above 0"),
        ([0.5, 0.5], np.full((2, 1), np.nan), np.ones((2, 1)), "finite"),
        ([1.0], np.zeros((2, 1)), np.ones((2, 1)), "one weight a component"),
        ([0.5, 0.5], np.zeros((2, 1)), np.ones((2, 2)), "one shape"),
    ],
)
def test_broken_mixtures_are_refused(weight, mean, variance, words):
    with pytest.raises(DataError, match=words):
        Mixture(np.asarray(weight), mean, variance)


def test_draws_of_other_dimensions_are_refused():
    with pytest.raises(DataError, match="as many columns"):
        parameter_information(*heads(0), BAR_DRAWS)
