"""Information: never below 0, none where heads agree, at most which head it is; and its weight."""

import numpy as np
import pytest

from agent_gym.agents.information import (
    information_lower_bound,
    moment_information,
    normal_draws,
    parameter_information,
)
from agent_gym.core import Seeds
from agent_gym.training.marl.amal import AmalConfig, MutualInformationEstimator
from agent_gym.training.marl.amal.bonus import Bonus
from agent_gym.training.marl.amal.sign_test import signs
from agent_gym.training.marl.amal.world_model import Forecast

KINDS = ("mutual_information", "variance", "error")


def told(mean, variance, truth=None):
    """Return a forecast of rows x heads x features."""
    mean = np.asarray(mean, np.float64)
    rows, _, features = mean.shape
    truth = np.zeros((rows, features)) if truth is None else np.asarray(truth)
    return Forecast(mean, np.broadcast_to(variance, mean.shape), truth, np.ones(rows, np.bool_))


def random(seed=0, rows=50, heads=5, features=3, apart=1.0):
    rng = Seeds(seed).rng()
    mean = apart * rng.standard_normal((rows, heads, features))
    return told(mean, np.exp(rng.standard_normal(mean.shape)), rng.standard_normal((rows, 3)))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_never_below_nothing(kind):
    found = MutualInformationEstimator(kind, 0.3)(random())
    assert found.shape == (50,)
    assert (found >= 0.0).all()
    assert found.max() > 0.0


@pytest.mark.parametrize("kind", ["mutual_information", "variance"])
def test_heads_that_agree_say_nothing_however_unsure_they_are(kind):
    for variance in (0.01, 100.0):
        found = MutualInformationEstimator(kind, 0.3)(told(np.full((2, 5, 3), 1.7), variance))
        assert found == pytest.approx([0.0, 0.0], abs=1e-12)


def test_no_step_says_more_than_which_head_it_is():
    found = MutualInformationEstimator("mutual_information", 0.3)(random(apart=1e3))
    assert found == pytest.approx(np.full(50, np.log(5)))


def test_noise_is_no_information():
    """The same disagreement counts less the noisier the heads know the world to be."""
    estimate = MutualInformationEstimator("mutual_information", 0.3)
    mean = random(apart=0.2).mean
    found = [estimate(told(mean, variance)).mean() for variance in (0.01, 0.1, 1.0, 10.0)]
    assert np.all(np.diff(found) < 0.0)
    assert found[-1] < 0.05 * found[0]


def test_below_the_floor_heads_agree():
    mean = random(apart=0.05).mean
    small, large = (
        MutualInformationEstimator("mutual_information", floor)(told(mean, 1e-6)).mean()
        for floor in (0.01, 0.3)
    )
    assert large < 0.1 < small


def test_the_error_of_a_head_falls_for_noise():
    """The control pays for what nobody can know; mutual information does not."""
    truth = Seeds(3).rng().standard_normal((50, 3))
    sure_of_noise = told(np.zeros((50, 5, 3)), 1.0, truth)
    assert MutualInformationEstimator("error", 0.3)(sure_of_noise).mean() > 1.0
    assert MutualInformationEstimator("mutual_information", 0.3)(sure_of_noise).max() < 1e-9


def test_it_is_a_bound_from_above_of_what_draws_tell():
    heads = random(rows=20, features=1)
    bound = moment_information(heads.mean, heads.variance)[..., 0]
    exact = parameter_information(heads.mean, heads.variance, normal_draws(Seeds(1), 4000))
    assert (bound >= exact - 0.02).all()
    assert (bound >= information_lower_bound(heads.mean, heads.variance)).all()
    assert bound.mean() < exact.mean() + 0.5


def fed(means, wins=0.0, **changes):
    bonus = Bonus(AmalConfig(**{"lambda_info": 0.1} | changes))
    for mean in means:
        bonus.take_in(np.array([0.0, 2.0 * mean]), wins)
    return bonus


def test_the_weight_waits_for_a_reference_and_fades_with_information():
    assert fed([0.5]).weight == 0.0
    assert fed([0.001, 1.0]).weight == pytest.approx(0.1)
    assert fed([0.001, 1.0, 0.4]).weight == pytest.approx(0.04)
    assert fed([0.001, 1.0, 0.4, 0.4, 0.4, 9.0]).weight == pytest.approx(0.1)
    assert fed([0.001, 1.0], lambda_info=0.3).weight == pytest.approx(0.3)


def test_the_weight_fades_with_wins():
    assert fed([1.0, 1.0], wins=1.0, win_memory=0.0).weight == 0.0
    slow, slower = (fed([1.0, 1.0], wins=1.0, win_memory=m).weight for m in (0.5, 0.9))
    assert 0.0 < slow < slower < 0.1


def test_the_bonus_is_cut_and_scaled_by_its_spread():
    bonus = fed([1.0], largest_bonus=1.5)
    assert bonus.paid(np.array([0.0, 1.0, 9.0])).tolist() == [0.0, 1.0, 1.5]


def test_what_says_more_is_done_more_often():
    assert signs() == [True] * 4


def test_with_the_wrong_sign_it_is_done_less_often():
    assert signs(share=-0.5) == [False] * 4
