"""Traps of learning by free energy: what ambiguity and risk are, and of which distribution."""

import inspect
import math

import numpy as np
import pytest
from scipy.special import entr, rel_entr

from agent_gym.agents.umc.efe import (
    BAR_DRAWS,
    Actions,
    DiscreteWorld,
    Market,
    Preference,
    discrete_efe,
    g_lambda,
    gaussian_entropy,
    gaussian_kl,
    outcome_floor,
    outcome_risk,
    row_mixture,
    trading_cost,
)
from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.network import RecurrentNetwork
from agent_gym.core.seeds import Seeds

SIGMA = 0.006
FLOOR = outcome_floor(SIGMA)
WANTED = Preference.of_kelly(0.25, SIGMA)
SMALL = RecurrentConfig(memory=6, embedding=4, width=6, head_width=4, heads=2)


def tried(*targets):
    held = np.array(targets)
    return Actions(held, trading_cost(held, 0.0, 5.0), FLOOR)


def two_states(belief, quiet, wild):
    return Market.of_returns([1.0 - belief, belief], [[0.0, 0.0]], [[quiet**2, wild**2]])


def expected_entropy(belief, quiet, wild):
    """What ambiguity is by definition: the entropy that is left once the state is known."""
    kept = (1.0 - belief) * gaussian_entropy(quiet**2) + belief * gaussian_entropy(wild**2)
    return float(kept + gaussian_entropy(FLOOR**2))


def spread_of_guesses(belief, quiet, wild):
    """The defect: the variance of a few noisy predictions of the mean, called ambiguity."""
    rng = Seeds(0).child("guesses").rng()
    return float(rng.normal(0.0, 0.1, 5).var()) + 0.0 * (belief + quiet + wild)


@pytest.mark.parametrize("belief", [0.0, 0.3, 1.0])
def test_d5_ambiguity_is_the_entropy_left_when_the_state_is_known(belief):
    case = (belief, SIGMA, 3.0 * SIGMA)
    energy = g_lambda(tried(-1.0, 0.0, 1.0), two_states(*case), WANTED, 0.28)
    assert energy.ambiguity.shape == (3,)  # one number an action, not one a batch
    assert np.abs(energy.ambiguity - expected_entropy(*case)).max() < 1e-6
    assert abs(spread_of_guesses(*case) - expected_entropy(*case)) > 1.0


def test_d5_ambiguity_grows_with_the_noise_of_what_is_seen_and_a_spread_of_guesses_does_not():
    quiet, wild = (0.5, SIGMA, SIGMA), (0.5, math.e * SIGMA, math.e * SIGMA)
    energies = [g_lambda(tried(0.0, 1.0), two_states(*case), WANTED, 0.0) for case in (quiet, wild)]
    assert np.allclose(energies[1].ambiguity - energies[0].ambiguity, 1.0, atol=1e-9)
    assert spread_of_guesses(*quiet) == spread_of_guesses(*wild)


def test_d5_risk_and_ambiguity_are_of_one_distribution():
    """Their sum is the pragmatic cost less what is learned of the state, or one of them is off."""
    market = Market.of_returns([0.3, 0.7], [[-0.004, 0.004]], [[SIGMA**2, 4.0 * SIGMA**2]])
    energy = g_lambda(tried(-1.0, 0.0, 0.5, 1.0), market, WANTED, 0.0)
    whole = energy.pragmatic - energy.state_information
    assert np.abs(energy.risk + energy.ambiguity - whole).max() < 1e-12
    other = g_lambda(tried(-1.0, 0.0, 0.5, 1.0), two_states(0.7, 0.01, 0.02), WANTED, 0.0)
    assert np.abs(energy.risk + other.ambiguity - whole).min() > 0.1  # of two, and it shows


def test_d5_the_same_question_has_the_same_answer_and_what_is_seen_has_a_variance():
    market, actions = two_states(0.3, SIGMA, 0.02), tried(-1.0, 0.0, 1.0)
    answers = {g_lambda(actions, market, WANTED, 0.1).ambiguity.tobytes() for _ in range(5)}
    assert len(answers) == 1
    network = RecurrentNetwork(SMALL, 1, Seeds(1))
    kinds = {type(module).__name__ for module in network.modules()}
    assert not [kind for kind in kinds if "Dropout" in kind]
    assert network.emission_out.out_features == 2  # a level and a deviation for one number seen


def chain():
    likelihood = np.array([[0.9, 0.2, 0.0], [0.1, 0.5, 0.0], [0.0, 0.3, 1.0]])
    transition = np.stack([np.eye(3), np.roll(np.eye(3), 1, axis=0)])
    return DiscreteWorld(likelihood, transition, np.array([0.6, 0.3, 0.1]))


def test_d5_d7_the_exact_terms_of_a_discrete_world_are_those_of_their_definitions():
    world, belief = chain(), np.array([0.5, 0.3, 0.2])
    energy = discrete_efe(world, belief, np.array([[0], [1]]))
    for policy in range(2):
        states = world.transition[policy] @ belief
        shown = world.likelihood @ states
        assert energy.risk[policy] == pytest.approx(rel_entr(shown, world.preference).sum())
        assert energy.ambiguity[policy] == pytest.approx(entr(world.likelihood).sum(0) @ states)
        reverse = rel_entr(world.preference, shown).sum()
        assert abs(energy.risk[policy] - reverse) > 0.005  # the same two, asked the wrong way round


def test_d7_risk_is_from_what_is_expected_to_what_is_wanted():
    mean, variance = np.array([0.001, -0.004]), np.array([3e-5, 2e-4])
    found = outcome_risk(row_mixture([1.0], mean[:, None], variance[:, None]), WANTED, BAR_DRAWS)
    right = gaussian_kl(mean, variance, WANTED.mean, WANTED.deviation**2)
    reverse = gaussian_kl(WANTED.mean, WANTED.deviation**2, mean, variance)
    assert np.abs(found / right - 1.0).max() < 1e-9
    assert np.abs(found - reverse).min() > 1.0


def test_d7_an_outcome_that_cannot_come_makes_risk_no_infinity():
    """The reverse divergence would be infinite, so the direction shows without any tolerance."""
    never_third = np.array([[0.5, 0.5], [0.5, 0.5], [0.0, 0.0]])
    world = DiscreteWorld(never_third, np.eye(2)[None], np.array([0.25, 0.25, 0.5]))
    energy = discrete_efe(world, [0.4, 0.6], np.array([[0]]))
    assert energy.risk[0] == pytest.approx(math.log(2.0))
    assert math.isinf(rel_entr(world.preference, np.array([0.5, 0.5, 0.0])).sum())


def test_d7_what_is_preferred_is_an_outcome_and_never_an_action():
    asked = inspect.signature(g_lambda).parameters["preference"].annotation
    assert "Preference" in str(asked)
    market = Market.of_heads([0.0], [SIGMA**2])
    energy = g_lambda(tried(-1.0, 0.0, 1.0), market, WANTED, 0.0)
    assert energy.risk[0] == energy.risk[2]  # mirrored actions with mirrored outcomes are as risky
    assert energy.risk[1] < energy.risk[0]
