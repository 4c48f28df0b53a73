import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.agents.umc.efe import (
    Actions,
    DiscreteWorld,
    Market,
    Preference,
    discrete_efe,
    dobrushin,
    g_lambda,
    kl_contraction,
    mean_free_energy,
    outcome_floor,
    relative,
    trading_cost,
)
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds

SIGMA = 0.006
WANTED = Preference.of_kelly(0.25, SIGMA)
LAMBDAS = (0.0, 0.1, 0.28, 0.46)

LIKELIHOOD = np.array([[0.9, 0.2], [0.1, 0.8]])
STAY_OR_GO = np.array([[[0.8, 0.3], [0.2, 0.7]], [[0.1, 0.6], [0.9, 0.4]]])
WORLD = DiscreteWorld(LIKELIHOOD, STAY_OR_GO, np.array([0.7, 0.3]))
PLANS = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1]])


def plain_efe(world, belief, plan):
    """Expected free energy with loops and logs, as a second opinion."""
    risk = ambiguity = pragmatic = gained = 0.0
    states = np.array(belief)
    for action in plan:
        states = np.array(
            [sum(world.transition[action, j, i] * states[i] for i in range(2)) for j in range(2)]
        )
        shown = [sum(world.likelihood[o, s] * states[s] for s in range(2)) for o in range(2)]
        for o in range(2):
            risk += shown[o] * (math.log(shown[o]) - math.log(world.preference[o]))
            pragmatic -= shown[o] * math.log(world.preference[o])
        for s in range(2):
            for o in range(2):
                chance = world.likelihood[o, s]
                ambiguity -= states[s] * chance * math.log(chance)
                posterior = chance * states[s] / shown[o]
                gained += chance * states[s] * math.log(posterior / states[s])
    return risk, ambiguity, pragmatic, gained


def test_a_small_world_by_hand():
    """One step with action 0 from an even belief: states .55/.45, shown .585/.415."""
    energy = discrete_efe(WORLD, [0.5, 0.5], np.array([[0]]))
    shown = np.array([0.585, 0.415])
    risk = shown @ np.log(shown / np.array([0.7, 0.3]))
    h = [-(p * math.log(p) + (1 - p) * math.log(1 - p)) for p in (0.9, 0.8)]
    assert energy.risk[0] == pytest.approx(risk, abs=1e-8)
    assert energy.ambiguity[0] == pytest.approx(0.55 * h[0] + 0.45 * h[1], abs=1e-8)
    assert energy.total[0] == pytest.approx(risk + 0.55 * h[0] + 0.45 * h[1], abs=1e-8)


@pytest.mark.parametrize("belief", [(0.5, 0.5), (0.9, 0.1), (0.01, 0.99)])
def test_a_small_world_against_loops(belief):
    energy = discrete_efe(WORLD, belief, PLANS)
    for at, plan in enumerate(PLANS):
        risk, ambiguity, pragmatic, gained = plain_efe(WORLD, belief, plan)
        assert abs(energy.risk[at] - risk) < 1e-8
        assert abs(energy.ambiguity[at] - ambiguity) < 1e-8
        assert abs(energy.pragmatic[at] - pragmatic) < 1e-8
        assert abs(energy.state_information[at] - gained) < 1e-8
        assert abs(energy.total[at] - (pragmatic - gained)) < 1e-8
    assert energy.total.std() > 1e-3  # D3: policies differ


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), states=st.integers(1, 5), shown=st.integers(2, 5))
def test_the_identity_holds_in_every_small_world(seed, states, shown):
    rng = Seeds(seed).rng()
    world = DiscreteWorld(
        rng.dirichlet(np.ones(shown), size=states).T,
        rng.dirichlet(np.ones(states), size=(3, states)).transpose(0, 2, 1),
        rng.dirichlet(np.full(shown, 5.0)),
    )
    energy = discrete_efe(world, rng.dirichlet(np.ones(states)), rng.integers(3, size=(6, 4)))
    gap = energy.risk + energy.ambiguity - (energy.pragmatic - energy.state_information)
    assert np.abs(gap).max() < 1e-9
    assert (energy.state_information > -1e-12).all()


def test_an_agent_that_may_look_looks_before_it_bets():
    """Only looking tells the states apart; nothing is preferred, so information decides."""
    likelihood = np.array([[0.95, 0.05, 0.5, 0.5], [0.05, 0.95, 0.5, 0.5]])
    looks, blinds = np.zeros((4, 4)), np.zeros((4, 4))
    for side in (0, 1):
        looks[side, [side, side + 2]] = 1.0
        blinds[side + 2, [side, side + 2]] = 1.0
    world = DiscreteWorld(likelihood, np.stack([blinds, looks]), np.array([0.5, 0.5]))
    energy = discrete_efe(world, [0.0, 0.0, 0.5, 0.5], np.array([[0], [1]]))
    assert energy.choice() == 1
    assert energy.state_information[0] == pytest.approx(0.0, abs=1e-12)
    assert energy.pragmatic[0] == pytest.approx(energy.pragmatic[1])


def tried(targets, before=0.0, cost_bp=5.0):
    target = np.asarray(targets, np.float64)
    return Actions(target, trading_cost(target, before, cost_bp), outcome_floor(SIGMA))


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    heads=st.integers(1, 5),
    before=st.floats(-1.0, 1.0),
    cost_bp=st.floats(0.0, 20.0),
)
def test_f3_on_a_replay_lambda_changes_no_bit(seed, heads, before, cost_bp):
    rng = Seeds(seed).rng()
    mean = SIGMA * rng.standard_normal((heads, 2))
    market = Market.of_returns([0.3, 0.7], mean, SIGMA**2 * rng.uniform(0.5, 2.0, (heads, 2)))
    actions = tried([-1.0, -0.5, 0.0, 0.5, 1.0], before, cost_bp)
    energies = [g_lambda(actions, market, WANTED, lam) for lam in LAMBDAS]
    plans = [mean_free_energy([energy] * 3) for energy in energies]
    for group in (energies, plans):
        assert np.ptp(group[0].information) == 0.0
        assert len({energy.choice() for energy in group}) == 1
        assert len({energy.chances(8.0).tobytes() for energy in group}) == 1
        compared = [relative(energy.base, energy.information, energy.lam) for energy in group]
        assert len({gaps.tobytes() for gaps in compared}) == 1


def test_where_an_order_teaches_lambda_does_change_the_choice():
    """The control beside it: the same market, and orders that say something about costs."""
    market, actions = Market.of_heads([0.0, 0.0], [SIGMA**2] * 2), tried([0.0, 0.5, 1.0], 0.0, 1.0)
    taught = np.array([0.0, 0.3, 0.5])
    choices = [g_lambda(actions, market, WANTED, lam, taught).choice() for lam in LAMBDAS]
    assert choices[0] == 0
    assert choices[-1] > 0
    assert choices == sorted(choices)


def test_a_market_that_orders_move_has_information_of_each_action():
    """Heads that disagree about impact: only an order can tell them apart."""
    target = np.array([0.0, 0.5, 1.0])
    mean = np.stack([-0.001 * target, -0.009 * target], axis=1)
    market = Market.of_heads(mean, np.full((3, 2), SIGMA**2))
    energy = g_lambda(tried(target), market, WANTED, 0.28)
    assert energy.information[0] == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(energy.information) > 0.005).all()
    assert (energy.information <= math.log(2)).all()


def test_chances_follow_free_energy_and_precision():
    energy = g_lambda(tried([-1.0, 0.0, 1.0]), Market.of_heads([0.001], [SIGMA**2]), WANTED, 0.0)
    sharp, soft = energy.chances(80.0), energy.chances(0.0)
    assert sharp.argmax() == energy.choice()
    assert np.allclose(soft, 1 / 3)
    ratio = math.log(sharp[0] / sharp[1])
    assert ratio == pytest.approx(-80.0 * (energy.total[0] - energy.total[1]), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), states=st.integers(2, 5))
def test_d20_contraction_is_about_distributions_and_bounded_by_the_chain(seed, states):
    rng = Seeds(seed).rng()
    chain = rng.dirichlet(np.ones(states), size=states).T
    one, other = rng.dirichlet(np.ones(states), size=2)
    left = kl_contraction(chain, one, other)
    assert -1e-12 <= left <= dobrushin(chain) + 1e-9 <= 1 + 2e-9


def test_d20_a_chain_that_forgets_nothing_does_not_contract():
    """A number that calls everything contracting says nothing."""
    swap = [[0.0, 1.0], [1.0, 0.0]]
    assert kl_contraction(swap, [0.9, 0.1], [0.3, 0.7]) == pytest.approx(1.0)
    assert dobrushin(swap) == 1.0
    forgets = np.full((2, 2), 0.5)
    assert kl_contraction(forgets, [0.9, 0.1], [0.3, 0.7]) == pytest.approx(0.0, abs=1e-15)
    assert isinstance(kl_contraction(forgets, [0.9, 0.1], [0.3, 0.7]), float)
    with pytest.raises(DataError, match="differ"):
        kl_contraction(swap, [0.5, 0.5], [0.5, 0.5])


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((LIKELIHOOD, STAY_OR_GO, np.array([1.0, 0.0])), "chance of 0"),
        ((LIKELIHOOD.T, STAY_OR_GO, np.array([0.5, 0.5])), "sum to 1"),
        ((LIKELIHOOD, STAY_OR_GO.transpose(0, 2, 1), np.array([0.5, 0.5])), "sum to 1"),
        ((LIKELIHOOD, STAY_OR_GO, np.array([0.5, 0.25, 0.25])), "fit together"),
    ],
)
def test_broken_worlds_are_refused(parts, words):
    with pytest.raises(DataError, match=words):
        DiscreteWorld(*parts)
    with pytest.raises(DataError, match="sum to 1"):
        discrete_efe(WORLD, [0.5, 0.6], PLANS)


def test_a_state_that_cannot_be_says_nothing_whatever_it_would_show():
    world = DiscreteWorld(np.eye(2), np.eye(2)[None], np.array([0.5, 0.5]))
    found = discrete_efe(world, [1.0, 0.0], np.array([[0]]))
    assert found.state_information.tolist() == [0.0]
    assert np.isfinite(found.total).all()
