"""The attainable optimum: published figures are found again, and limits that are known exactly."""

from itertools import product

import numpy as np
import pytest

from agent_gym.core import Ref
from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.oracle import attainable
from agent_gym.evaluation.oracle.chain import (
    Chain,
    Grid,
    Table,
    drift_chain,
    level_chain,
    regime_chain,
    still_chain,
    told_drift_chain,
    told_regime_chain,
)
from agent_gym.evaluation.oracle.solution import solve
from agent_gym.markets.known import KNOWN, NULLS

# Drift bp, stay, cost bp: bp a bar, Sharpe, Sharpe if told, enter, hold, turnover. The Sharpes and
# turnovers are of simulations of 400,000 bars, whose standard errors are 0.15 and about a tenth.
M1 = [
    (4, 0.995, 0, 1.36, 2.27, 6.26, 0.50, 0.50, 0.080),
    (4, 0.995, 5, 1.24, 2.05, 6.18, 0.583, 0.420, 0.016),
    (4, 0.995, 10, 1.17, 1.99, 6.10, 0.610, 0.393, 0.012),
    (6, 0.995, 5, 2.66, 4.11, 9.30, 0.588, 0.415, 0.020),
    (6, 0.995, 10, 2.57, 3.97, 9.22, 0.618, 0.385, 0.016),
    (8, 0.995, 5, 4.36, 6.66, 12.4, 0.590, 0.413, 0.023),
    (6, 0.99, 5, 1.91, 3.02, 9.22, 0.588, 0.415, 0.030),
    (6, 0.998, 5, 3.68, 5.54, 9.36, 0.588, 0.415, 0.012),
]
# Reversion, shock %, cost bp: bp a bar, Sharpe, enter %.
M2 = [
    (0.02, 0.2, 0, 1.61, 2.84, None),
    (0.02, 0.2, 5, 1.39, 2.50, 0.43),
    (0.02, 0.2, 10, 1.27, 2.36, 0.58),
    (0.05, 0.3, 0, 3.84, None, None),
    (0.05, 0.3, 5, 3.33, None, None),
    (0.05, 0.3, 10, 3.03, None, None),
    (0.1, 0.3, 0, 5.49, None, None),
    (0.1, 0.3, 5, 4.63, None, None),
    (0.1, 0.3, 10, 4.09, None, None),
]


def check_m1(row):
    drift, stay, cost, gain, sharpe, told, enter, hold, turnover = row
    found = attainable(Ref(use="known/m1", params={"drift_bp": drift, "stay": stay}), cost)
    assert abs(found.attainable_bp_per_bar - gain) < 0.006
    assert abs(found.sharpe - sharpe) < 0.3
    assert abs(found.oracle_sharpe - told) < 0.05
    assert abs(found.bands["enter_belief"] - enter) < 0.004
    assert abs(found.bands["hold_belief"] - hold) < 0.004
    assert abs(found.turnover_per_bar / turnover - 1.0) < 0.12


def check_m2(row):
    reversion, shock, cost, gain, sharpe, enter = row
    ref = Ref(use="known/m2", params={"reversion": reversion, "shock_pct": shock})
    found = attainable(ref, cost)
    assert abs(found.attainable_bp_per_bar - gain) < 0.01
    if sharpe is not None:
        assert abs(found.sharpe - sharpe) < 0.3
    if enter is not None:
        assert abs(found.bands["enter_mispricing_pct"] - enter) < 0.01


@pytest.mark.parametrize("row", [M1[0], M1[3]])
def test_some_rows_of_m1(row):
    check_m1(row)


def test_a_row_of_m2():
    check_m2(M2[1])


def test_every_row_of_the_tables():
    for row in M1:
        check_m1(row)
    for row in M2:
        check_m2(row)


def test_a_wrong_row_is_noticed():
    with pytest.raises(AssertionError):
        check_m1((6, 0.995, 5, 2.70, *M1[3][4:]))
    with pytest.raises(AssertionError):
        check_m2((0.02, 0.2, 5, 1.45, 2.50, 0.43))


def test_without_cost_the_side_is_that_of_the_mean():
    # Then the gain is the mean size of the expected return, a normal one in M2 and M4.
    found = attainable(Ref(use="known/m2"), 0.0)
    deviation = 20.0 / np.sqrt(1 - 0.98**2)  # of the mispricing, bp
    half_normal = np.sqrt(2 / np.pi)
    assert found.attainable_bp_per_bar == pytest.approx(0.02 * deviation * half_normal, rel=1e-4)
    found = attainable(Ref(use="known/m4"), 0.0)
    assert found.attainable_bp_per_bar == pytest.approx(0.05 * 60 * half_normal, rel=1e-4)
    told = solve(told_regime_chain(0.08, 0.006, 0.998), 0.0)
    exact = 0.08 * 0.006 / np.sqrt(1 - 0.08**2) * half_normal
    assert told.gain == pytest.approx(exact, rel=3e-3)


def test_who_is_told_the_drift_pays_for_every_turn():
    for cost in (0.0, 5e-4):
        told = solve(told_drift_chain(6e-4, 0.006, 0.995), cost)
        assert told.gain == pytest.approx(6e-4 - 2 * 0.005 * cost, abs=1e-8)
        assert told.turnover == pytest.approx(0.01, abs=1e-4)


def test_hidden_is_worth_less_than_shown_and_told_most():
    shown, hidden = attainable(Ref(use="known/m2"), 5), attainable(Ref(use="known/m2-hidden"), 5)
    assert 0.1 < hidden.attainable_bp_per_bar < 0.3 * shown.attainable_bp_per_bar
    assert hidden.oracle_sharpe == pytest.approx(shown.sharpe)
    assert shown.oracle_sharpe is None
    # With a fair price that stands still, the price tells the mispricing.
    clear = attainable(Ref(use="known/m2-hidden", params={"sigma_pct": 0.001}), 5)
    assert clear.attainable_bp_per_bar == pytest.approx(shown.attainable_bp_per_bar, rel=0.01)


def test_m3_has_something_to_find_and_costs_eat_it():
    ref = Ref(use="known/m3")
    cheap, dear = attainable(ref, 1), attainable(ref, 5)
    assert cheap.attainable_bp_per_bar == pytest.approx(1.33, abs=0.02)
    assert dear.attainable_bp_per_bar == pytest.approx(0.18, abs=0.01)
    assert cheap.oracle_sharpe > cheap.sharpe > dear.sharpe > 0
    assert cheap.bands["enter_belief_after_a_rise_of_1_sigma"] > 0.5


def test_m4_pays_more_for_a_signal_that_stays():
    gains = [
        attainable(Ref(use="known/m4", params={"memory": memory}), 5).attainable_bp_per_bar
        for memory in (0.5, 0.9, 0.98)
    ]
    assert gains[0] < gains[1] < gains[2] < 0.05 * 60 * np.sqrt(2 / np.pi)
    found = attainable(Ref(use="known/m4"), 5)
    assert found.attainable_bp_per_bar == pytest.approx(1.725, abs=0.01)
    assert found.bands["enter_signal"] == pytest.approx(-found.bands["hold_signal"], abs=0.001)


@pytest.mark.parametrize("name", ["known/m5", *NULLS])
def test_where_nothing_is_to_be_had_nothing_is(name):
    found = attainable(Ref(use=name), 5)
    assert found.attainable_bp_per_bar == 0.0
    assert found.turnover_per_bar == 0.0
    assert found.sharpe is None
    assert found.bands == {}


def test_m5_with_a_drift_is_held_for_good():
    for drift, short, gain in ((3, True, 3), (-3, True, 3), (-3, False, 0)):
        ref = Ref(use="known/m5", params={"drift_bp": drift})
        found = attainable(ref, 5, allow_short=short)
        assert found.attainable_bp_per_bar == pytest.approx(gain, abs=1e-4)
    exact = 3e-4 / np.sqrt(0.5 * (0.003**2 + 0.009**2)) * np.sqrt(8760)
    found = attainable(Ref(use="known/m5", params={"drift_bp": 3}), 5)
    assert found.sharpe == pytest.approx(exact, rel=1e-3)


def test_b1_pays_as_long_as_it_lasts():
    whole = attainable(Ref(use="known/m1"), 5)
    part = attainable(Ref(use="known/b1", params={"break_at": 0.25}), 5)
    assert part.attainable_bp_per_bar == pytest.approx(0.25 * whole.attainable_bp_per_bar)
    assert part.sharpe == pytest.approx(0.5 * whole.sharpe, rel=0.01)
    assert part.bands == whole.bands


def test_without_shorts_half_is_left_in_a_symmetric_market():
    both, long = (attainable(Ref(use="known/m1"), 5, allow_short=short) for short in (True, False))
    assert long.attainable_bp_per_bar == pytest.approx(0.5 * both.attainable_bp_per_bar, rel=1e-3)
    assert long.bands["enter_belief"] == pytest.approx(both.bands["enter_belief"], abs=1e-3)


def test_a_cost_beyond_reason_stops_all_trade():
    found = attainable(Ref(use="known/m4"), 1_000)
    assert found.attainable_bp_per_bar == pytest.approx(0.0, abs=1e-4)
    assert found.bands == {}
    rare = attainable(Ref(use="known/m4"), 120)  # once in a thousand years
    assert 0.0 < rare.attainable_bp_per_bar < 0.001
    assert rare.sharpe is None
    assert rare.turnover_per_bar is None
    for cost in (-1.0, 1e9, float("nan")):
        with pytest.raises(ConfigError, match="cost"):
            attainable(Ref(use="known/m1"), cost)


def test_a_market_without_a_known_law_is_refused():
    with pytest.raises(ConfigError, match="synthetic/btc-1h"):
        attainable(Ref(use="synthetic/btc-1h"), 5)


def test_the_grids_are_fine_enough(monkeypatch):
    coarse = solve(drift_chain(6e-4, 0.006, 0.995), 5e-4).gain
    monkeypatch.setattr("agent_gym.evaluation.oracle.chain.BELIEFS", 1_201)
    assert solve(drift_chain(6e-4, 0.006, 0.995), 5e-4).gain == pytest.approx(coarse, rel=5e-4)
    coarse = solve(level_chain(0.98, 0.002, 0.02, 0.005), 5e-4).gain
    monkeypatch.setattr("agent_gym.evaluation.oracle.chain.LEVELS", 801)
    fine = solve(level_chain(0.98, 0.002, 0.02, 0.005), 5e-4).gain
    assert fine == pytest.approx(coarse, rel=5e-4)


CHAINS = {
    "drift": lambda: drift_chain(6e-4, 0.006, 0.995),
    "level": lambda: level_chain(0.9, 0.4, 3e-4, 0.006),
    "regime": lambda: regime_chain(0.08, 0.006, 0.998),
    "told": lambda: told_regime_chain(0.08, 0.006, 0.998),
    "still": lambda: still_chain(0.0, 1.0),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chances_add_up_and_beliefs_are_fair(name):
    chain = CHAINS[name]()
    for table in (chain.step, chain.lift):
        np.testing.assert_allclose(table.weights.sum(axis=1), 1.0, atol=1e-12)
        assert table.places.min() >= 0
    assert chain.mean.size == chain.first.count * chain.second.count
    if name == "drift":  # the belief after a bar is, on average, the belief before it
        belief = chain.first.values()
        expected = (chain.step.weights * belief[chain.step.places]).sum(axis=1)
        np.testing.assert_allclose(expected, 0.995 * belief + 0.005 * (1 - belief), atol=1e-12)


def brute_force(step, mean, cost):
    """Return the best gain of a small chain by trying every policy; positions are -1, 0, 1."""
    n = mean.size
    best = -np.inf
    for policy in product(range(3), repeat=3 * n):  # chosen position by state and position held
        move = np.zeros((3 * n, 3 * n))
        paid = np.zeros(3 * n)
        for x, p in product(range(n), range(3)):
            q = policy[3 * x + p]
            paid[3 * x + p] = (q - 1) * mean[x] - cost * abs(q - p)
            move[3 * x + p, q::3] += step[x]
        long_run = np.linalg.matrix_power(0.5 * (move + np.eye(3 * n)), 1 << 14)
        best = max(best, (long_run @ paid).max())
    return best


@pytest.mark.parametrize("cost", [0.0, 0.4, 2.0])
def test_a_small_chain_agrees_with_every_policy_tried(cost):
    step, mean = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([1.0, -0.6])
    places = np.tile(np.arange(2, dtype=np.int32), (2, 1))
    chain = Chain(Table(places, step), Table.same(2), mean, mean**2 + 1.0, Grid(0.0, 1.0, 2))
    assert solve(chain, cost).gain == pytest.approx(brute_force(step, mean, cost), abs=1e-6)


def test_all_markets_are_solved_and_say_how_long_it_took():
    for name in KNOWN:
        found = attainable(Ref(use=name), 5)
        assert found.market == name
        assert found.seconds >= 0.0
        assert set(found.as_dict()) >= {"attainable_bp_per_bar", "sharpe", "bands"}
