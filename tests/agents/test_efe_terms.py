import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from agent_gym.agents.umc.efe import (
    BAR_DRAWS,
    Actions,
    Market,
    Preference,
    g_lambda,
    gaussian_entropy,
    gaussian_kl,
    mean_free_energy,
    outcome,
    outcome_ambiguity,
    outcome_floor,
    outcome_risk,
    pragmatic_cost,
    row_mixture,
    state_information,
    stratified_draws,
    trading_cost,
)
from agent_gym.core.errors import ConfigError, DataError

SIGMA = 0.006
FLOOR = outcome_floor(SIGMA)
QUARTER = Preference.of_kelly(0.25, SIGMA)
FINE = stratified_draws(200_000)  # within 4e-7 nats of an integral
MEDIUM = stratified_draws(1000)


def actions(targets, before=0.0, cost_bp=0.0):
    target = np.asarray(targets, np.float64)
    return Actions(target, trading_cost(target, before, cost_bp), FLOOR)


def one_state(mu, sigma=SIGMA):
    return Market.of_heads([mu], [sigma**2])


def drift(mu, belief=0.5):
    """The hidden drift of M1: up or down."""
    return Market.of_returns([1 - belief, belief], [[-mu, mu]], [[SIGMA**2, SIGMA**2]])


def test_a_preference_is_a_mean_variance_utility():
    wanted = Preference(0.25, 0.04)
    assert math.isclose(wanted.risk_aversion, 4.0)
    assert math.isclose(wanted.nats_per_return, 0.25 / 0.0016)
    mu, var = np.array([0.0, 1e-3, -2e-3]), np.array([1e-5, 4e-5, 1e-6])
    by_hand = -norm.logpdf(mu, 0.25, 0.04) + var / (2 * 0.0016)
    assert np.abs(wanted.cost(mu, var) - by_hand).max() < 1e-12
    assert math.isclose(QUARTER.nats(5.0), 0.0005 / SIGMA)  # the 5 bp of the note are .083 nats


@pytest.mark.parametrize("broken", [(0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (1.0, math.inf)])
def test_a_preference_without_a_scale_is_refused(broken):
    with pytest.raises(ConfigError, match="above 0"):
        Preference(*broken)


def test_the_cost_of_a_mixture_is_exact_by_its_moments():
    mixed = row_mixture([0.2, 0.5, 0.3], [-0.01, 0.0, 0.02], [1e-4, 4e-5, 9e-6])

    def density(y):
        parts = norm.pdf(y, mixed.mean[:, 0], np.sqrt(mixed.variance[:, 0]))
        return float(mixed.weight @ parts)

    points = [-0.01, 0.0, 0.02]
    integral, _ = quad(
        lambda y: -density(y) * norm.logpdf(y, QUARTER.mean, QUARTER.deviation),
        -0.1, 0.1, points=points, epsabs=1e-11, limit=200,
    )  # fmt: skip
    assert abs(float(pragmatic_cost(mixed, QUARTER)) - integral) < 1e-8


def test_risk_of_a_gaussian_is_its_kl_to_the_preference_and_not_the_reverse():
    mean, var = np.array([0.001, -0.004]), np.array([3e-5, 2e-4])
    ours = outcome_risk(row_mixture([1.0], mean[:, None], var[:, None]), QUARTER, BAR_DRAWS)
    right = gaussian_kl(mean, var, QUARTER.mean, QUARTER.deviation**2)
    reverse = gaussian_kl(QUARTER.mean, QUARTER.deviation**2, mean, var)
    assert np.abs(ours - right).max() < 1e-12 * np.abs(right).max()
    assert np.abs(ours - reverse).min() > 1.0


def test_identity_of_closed_forms_for_a_gaussian_state():
    """The hidden state is a Gaussian drift, so every term has a closed form."""
    f, doubt = np.linspace(-1.0, 1.0, 21), 0.002**2
    mu, noise = 0.0005, f**2 * SIGMA**2 + FLOOR**2
    shift = f * mu - trading_cost(f, 0.2, 5.0)
    whole = noise + f**2 * doubt
    risk = gaussian_kl(shift, whole, QUARTER.mean, QUARTER.deviation**2)
    gained = 0.5 * np.log1p(f**2 * doubt / noise)
    assert (
        np.abs(risk + gaussian_entropy(noise) - QUARTER.cost(shift, whole) + gained).max() < 1e-12
    )


def test_identity_for_discrete_states_against_integrals():
    market, tried = drift(0.004, belief=0.3), actions([-1.0, 0.0, 0.7], 0.2, 5.0)
    y = outcome(tried, market)
    risk, left = outcome_risk(y, QUARTER, FINE), outcome_ambiguity(market, y, FINE)
    for a in range(3):
        means, deviations = y.mean[a, :, 0], np.sqrt(y.variance[a, :, 0])

        def density(x, means=means, deviations=deviations):
            return norm.pdf(x, means, deviations)

        def gain(x, density=density):
            parts = density(x)
            whole = float(y.weight @ parts)
            return sum(
                w * p * math.log(p / whole) for w, p in zip(y.weight, parts, strict=True) if p > 0
            )

        edge = 12 * deviations.max() + np.abs(means).max()
        integral, _ = quad(gain, -edge, edge, points=list(means), epsabs=1e-12, limit=400)
        cost = QUARTER.cost(*(part[a, 0] for part in y.moments()))
        assert abs(risk[a] + left[a] - (cost - integral)) < 1e-6
        assert abs(state_information(market, y, FINE)[a] - integral) < 1e-6


@pytest.mark.parametrize("mu", [-0.00013, 0.00003, 0.00009])
@pytest.mark.parametrize("kelly", [0.25, 0.5])
def test_the_best_position_without_cost_is_the_share_of_kelly(mu, kelly):
    grid = np.linspace(-3.0, 3.0, 6001)
    wanted = Preference.of_kelly(kelly, SIGMA)
    energy = g_lambda(actions(grid), one_state(mu), wanted, 0.0)
    gamma = 1.0 / kelly
    assert abs(grid[energy.choice()] - mu / (gamma * (SIGMA**2 + mu**2))) <= 0.0005 + 1e-9
    assert abs(grid[energy.choice()] - mu / (gamma * SIGMA**2)) <= 0.002  # Kelly, to its own order


def test_risk_alone_takes_the_largest_position_and_ambiguity_takes_it_back():
    grid, market = np.linspace(0.0, 1.0, 1001), one_state(0.0000897)
    tried = actions(grid)
    y = outcome(tried, market)
    risk = outcome_risk(y, QUARTER, BAR_DRAWS)
    both = risk + outcome_ambiguity(market, y, BAR_DRAWS)
    assert grid[np.argmin(risk)] == 1.0
    assert abs(grid[np.argmin(both)] - 0.623) <= 0.0011
    joint = g_lambda(tried, market, QUARTER, 0.0)
    assert abs(grid[np.argmin(joint.risk)] - 0.623) <= 0.0011  # the joint outcome has no such trap


def test_without_the_floor_a_flat_position_has_no_free_energy():
    with pytest.raises(DataError, match="noise of an outcome"):
        Actions(np.zeros(1), np.zeros(1), 0.0)
    assert math.isclose(FLOOR, 0.1 * SIGMA)


def test_y_alone_pays_for_being_in_the_market_and_the_joint_outcome_does_not():
    """The artefact: nothing is known, nothing costs, and yet y alone wants a position."""
    market, tried = drift(0.0006), actions(np.linspace(-1.0, 1.0, 201))
    y = outcome(tried, market)
    alone = outcome_risk(y, QUARTER, MEDIUM) + outcome_ambiguity(market, y, MEDIUM)
    flat = 100
    gained = state_information(market, y, MEDIUM)
    assert abs(tried.target[np.argmin(alone)]) > 0.1  # the trap is real
    assert abs(gained[flat]) < 1e-12
    assert 0.004 < gained[-1] < 0.006  # the .005 nats of the note
    joint = g_lambda(tried, market, QUARTER, 0.46)
    assert joint.choice() == flat
    assert (joint.total[flat] <= joint.total).all()
    constant = joint.total - joint.pragmatic
    assert np.ptp(constant) < 1e-13
    assert joint.state_information[0] > 0.004  # it is there, and the same for all


@pytest.mark.parametrize("heads", [1, 3])
def test_without_drift_and_cost_flat_is_best(heads):
    market = Market.of_heads(np.zeros(heads), np.full(heads, SIGMA**2))
    energy = g_lambda(actions(np.linspace(-2, 2, 401)), market, QUARTER, 0.28)
    assert energy.choice() == 200


@pytest.mark.parametrize(("mu_bp", "flat"), [(0.5, True), (0.8, True), (4.0, False)])
def test_flat_when_the_edge_of_the_horizon_is_below_the_cost(mu_bp, flat):
    """Six bars of one target; the trade is paid in the first."""
    bars, cost_bp, targets = 6, 5.0, [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert (mu_bp * bars < cost_bp) == flat
    market, wanted = one_state(mu_bp * 1e-4), Preference.of_kelly(1.0, SIGMA)
    target = np.array(targets)
    enters, holds = actions(targets, 0.0, cost_bp), Actions(target, np.zeros(5), FLOOR)
    steps = [g_lambda(enters, market, wanted, 0.28)]
    steps += [g_lambda(holds, market, wanted, 0.28) for _ in range(bars - 1)]
    assert (targets[mean_free_energy(steps).choice()] == 0.0) == flat


def test_d3_free_energy_differs_between_actions_and_names_its_terms():
    energy = g_lambda(actions([-1.0, 0.0, 1.0], 0.0, 5.0), drift(0.0006, 0.8), QUARTER, 0.28)
    assert energy.total.std() > 1e-3
    assert len(set(energy.total.tolist())) == 3
    named = energy.of(2)
    assert set(named) == {
        "risk", "ambiguity", "information", "pragmatic", "state_information", "total", "lam",
    }  # fmt: skip
    whole = named["risk"] + named["ambiguity"] - 0.28 * named["information"]
    assert math.isclose(named["total"], whole, rel_tol=1e-14)


def test_an_unsure_cost_counts_as_risk():
    target, paid = np.array([0.0, 1.0]), np.array([0.0, 0.0])
    sure = Actions(target, paid, FLOOR)
    unsure = Actions(target, paid, FLOOR, np.array([0.0, 1e-6]))
    before, after = (g_lambda(a, one_state(0.0), QUARTER, 0.0).pragmatic for a in (sure, unsure))
    assert after[0] == before[0]
    assert math.isclose(after[1] - before[1], 1e-6 / (2 * QUARTER.deviation**2), rel_tol=1e-9)


def test_bad_shapes_are_refused():
    with pytest.raises(DataError, match="one row an action"):
        outcome(actions([0.0, 1.0]), Market.of_heads(np.zeros((3, 2)), np.ones((3, 2))))
    with pytest.raises(DataError, match="one target and one cost"):
        Actions(np.zeros(2), np.zeros(3), FLOOR)
    bars = [g_lambda(actions([0.0]), one_state(0.0), QUARTER, lam) for lam in (0.1, 0.2)]
    with pytest.raises(DataError, match="one lambda"):
        mean_free_energy(bars)
