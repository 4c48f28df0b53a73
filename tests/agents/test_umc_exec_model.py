import math

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import t

from agent_gym.agents.umc.efe import information_gain_linear
from agent_gym.agents.umc.exec_model import (
    BASIS_POINT,
    SlippageBelief,
    SlippagePrior,
    order_inputs,
    price_orders,
)
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds

PRIOR = SlippagePrior()
TRUTH = np.array([0.3, 25.0, 0.02])
NOISE = 1.5


def fills(seed, count, truth=TRUTH, noise=NOISE):
    rng = Seeds(seed).child("fills").rng()
    rows = np.column_stack(
        [
            np.ones(count),
            np.sqrt(rng.uniform(0.0, 0.2, count)),
            rng.uniform(20.0, 90.0, count),
        ]
    )
    return rows, rows @ truth + noise * rng.standard_normal(count)


def test_one_at_a_time_is_as_good_as_all_at_once():
    rows, paid = fills(0, 300)
    whole, single = PRIOR.belief().updated(rows, paid), PRIOR.belief()
    for row, cost in zip(rows, paid, strict=True):
        single = single.updated(row, cost)
    for name, part in whole.weights().items():
        assert np.allclose(single.weights()[name], part, rtol=1e-11, atol=0), name
    assert np.allclose(single.mean(), whole.mean(), rtol=1e-9)
    assert single.noise_variance() == pytest.approx(whole.noise_variance(), rel=1e-9)
    assert single.shape == whole.shape == PRIOR.belief().shape + 150


def test_nothing_seen_changes_nothing_and_nothing_is_changed_in_place():
    belief = PRIOR.belief()
    before = {name: part.copy() for name, part in belief.weights().items()}
    rows, paid = fills(0, 5)
    belief.updated(rows, paid)
    same = belief.updated(np.empty((0, 3)), np.empty(0))
    for name, part in before.items():
        assert np.array_equal(belief.weights()[name], part)
        assert np.array_equal(same.weights()[name], part)


def test_the_posterior_is_the_textbook_one():
    rows, paid = fills(1, 40)
    prior, post = PRIOR.belief(), PRIOR.belief().updated(rows, paid)
    spread = np.linalg.inv(prior.precision)
    whole = spread - spread @ rows.T @ np.linalg.solve(
        np.eye(40) + rows @ spread @ rows.T, rows @ spread
    )
    mean = whole @ (prior.precision @ prior.mean() + rows.T @ paid)
    gap = paid - rows @ prior.mean()
    scale = prior.scale() + 0.5 * gap @ np.linalg.solve(np.eye(40) + rows @ spread @ rows.T, gap)
    assert np.allclose(post.mean(), mean, rtol=1e-8)
    assert post.noise_variance() == pytest.approx(scale / (post.shape - 1.0), rel=1e-8)
    assert np.allclose(post.covariance(), post.noise_variance() * whole, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_planted_coefficients_are_recovered(seed):
    post = PRIOR.belief().updated(*fills(seed, 4000))
    errors = (post.mean() - TRUTH) / np.sqrt(np.diag(post.covariance()))
    assert np.abs(errors).max() < 4.0
    assert np.allclose(post.mean(), TRUTH, rtol=0.1, atol=0.25)
    assert math.sqrt(post.noise_variance()) == pytest.approx(NOISE, rel=0.05)


def test_a_wrong_model_is_not_recovered():
    """The negative control: the slippages belong to other orders."""
    rows, paid = fills(0, 4000)
    post = PRIOR.belief().updated(rows, Seeds(1).rng().permutation(paid))
    assert abs(post.mean()[1] - TRUTH[1]) > 10.0


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("seen", [0, 10, 200])
def test_intervals_hold_what_they_promise_when_truth_comes_from_the_prior(level, seen):
    """Over many worlds drawn from the prior itself the coverage is exact."""
    rng, belief, worlds = Seeds(3).rng(), PRIOR.belief(), 600
    held = 0
    for world in range(worlds):
        noise = math.sqrt(belief.scale() / rng.gamma(belief.shape))
        doubt = noise / np.sqrt(np.diag(belief.precision))
        truth = belief.mean() + doubt * rng.standard_normal(3)
        rows, paid = fills(world, seen + 1, truth, noise)
        post = belief.updated(rows[:-1], paid[:-1])
        low, high = post.interval_bp(rows[-1], level)
        held += bool(low <= paid[-1] <= high)
    error = math.sqrt(level * (1 - level) / worlds)
    assert abs(held / worlds - level) < 4 * error


def test_an_interval_is_that_of_students_t():
    post = PRIOR.belief().updated(*fills(0, 3))
    row = order_inputs(0.1, 60.0)
    low, high = post.interval_bp(row, 0.9)
    width = math.sqrt(post.scale() / post.shape * (1 + row @ np.linalg.solve(post.precision, row)))
    right = t(2 * post.shape, loc=row @ post.mean(), scale=width).interval(0.9)
    assert (low, high) == pytest.approx(right, rel=1e-9)
    deviation = t(2 * post.shape, scale=width).std()
    assert float(post.predictive_deviation_bp(row)) == pytest.approx(deviation, rel=1e-9)
    with pytest.raises(DataError, match="between 0 and 1"):
        post.interval_bp(row, 1.0)


@pytest.mark.parametrize("seen", [0, 1, 50])
def test_information_is_half_the_log_of_one_plus_doubt_over_noise(seen):
    post = PRIOR.belief().updated(*fills(2, seen))
    rows = order_inputs([0.0, 0.01, 0.3], 60.0)
    gain = post.information_gain(rows)
    right = information_gain_linear(rows, post.covariance(), post.noise_variance())
    assert np.allclose(gain, right, rtol=1e-9)
    if seen == 0:
        assert (np.diff(gain) > 0).all()  # a larger order says more about impact


def test_information_is_what_a_fill_really_teaches_about_the_coefficients():
    """The entropy of the coefficients in units of the noise falls by it at every fill."""
    belief = PRIOR.belief()
    row = order_inputs(0.1, 60.0)
    told = float(belief.information_gain(row))
    after = belief.updated(row, 3.0)
    fall = 0.5 * (np.linalg.slogdet(after.precision)[1] - np.linalg.slogdet(belief.precision)[1])
    assert told == pytest.approx(fall, rel=1e-9)
    assert float(after.information_gain(row)) < told


def test_noise_information_against_draws():
    """All that a fill teaches: entropy of what is expected less that of the noise, by sampling."""
    belief, rng, draws = PRIOR.belief().updated(*fills(0, 4)), Seeds(6).rng(), 200_000
    row = order_inputs(0.1, 60.0)
    width = math.sqrt(
        belief.scale() / belief.shape * (1 + row @ np.linalg.solve(belief.precision, row))
    )
    expected = t(2 * belief.shape, scale=width)
    entropy = -float(expected.logpdf(expected.rvs(draws, random_state=rng)).mean())
    log_variance = math.log(belief.scale()) - digamma(belief.shape)
    known = 0.5 * (math.log(2 * math.pi * math.e) + log_variance)
    told = float(belief.information_gain(row)) + belief.noise_information()
    assert told == pytest.approx(entropy - known, abs=0.01)
    assert belief.noise_information() > 0
    assert PRIOR.belief().noise_information() > belief.noise_information()


def test_no_order_costs_and_teaches_nothing():
    belief = PRIOR.belief().updated(*fills(0, 20))
    prices = price_orders(belief, np.array([0.0, 0.5, -0.5, 1.0]), 0.1, 60.0)
    assert prices.cost[0] == prices.information[0] == 0.0
    assert (prices.cost[1:] > 0).all()
    assert (prices.information[1:] > 0).all()
    assert prices.cost[1] == prices.cost[2]  # buying and selling alike
    assert prices.cost[3] > 2 * prices.cost[1]  # impact: twice the order costs more than twice
    row = order_inputs(0.05, 60.0)
    assert prices.cost[1] == pytest.approx(0.5 * BASIS_POINT * float(row @ belief.mean()))


OTHER = {
    "fixed_bp": 1.0,
    "fixed_deviation_bp": 3.0,
    "impact_bp": 50.0,
    "impact_deviation_bp": 5.0,
    "sigma_share": 0.1,
    "sigma_deviation": 0.2,
    "noise_bp": 5.0,
    "noise_fills": 40.0,
}


@pytest.mark.parametrize("field", OTHER)
def test_d45_every_field_of_the_prior_acts(field):
    def told(prior):
        prices = price_orders(prior.belief(), np.array([0.5, 1.0]), 0.1, 60.0)
        return [prices.cost.tolist(), prices.information.tolist()]

    assert set(OTHER) == set(SlippagePrior.model_fields)
    assert told(PRIOR.model_copy(update={field: OTHER[field]})) != told(PRIOR)


def test_the_prior_is_what_its_fields_say():
    belief = PRIOR.belief()
    assert np.allclose(belief.mean(), [0.0, 10.0, 0.0])
    assert np.allclose(np.sqrt(np.diag(belief.covariance())), [1.0, 20.0, 0.05])
    assert math.sqrt(belief.noise_variance()) == pytest.approx(2.0)


def test_weights_round_trip_and_broken_ones_are_refused():
    belief = PRIOR.belief().updated(*fills(0, 20))
    again = SlippageBelief.restored(belief.weights())
    assert np.array_equal(again.mean(), belief.mean())
    assert again.noise_variance() == belief.noise_variance()
    for name, broken in (
        ("pull", np.zeros(2)),
        ("pull", np.full(3, np.nan)),
        ("precision", -np.eye(3)),
        ("counts", np.array([0.5, 10.0])),
        ("counts", np.array([9.0, 0.0])),
    ):
        with pytest.raises(DataError, match="saved belief"):
            SlippageBelief.restored({**belief.weights(), name: broken})


def test_broken_fills_and_orders_are_refused():
    belief = PRIOR.belief()
    with pytest.raises(DataError, match="one row of inputs"):
        belief.updated(np.ones((2, 3)), np.ones(3))
    with pytest.raises(DataError, match="finite"):
        belief.updated([1.0, np.nan, 0.0], 1.0)
    with pytest.raises(DataError, match="at least 0 of the volume"):
        order_inputs([-0.1], 60.0)
    for sigma in (np.nan, -1.0, np.inf):
        with pytest.raises(DataError, match="at least 0"):
            order_inputs([0.1], sigma)
