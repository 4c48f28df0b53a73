import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.special import rel_entr, softmax

from agent_gym.agents.gate import AsymmetricGate, GateConfig, divergences, mix_logits
from agent_gym.core.errors import DataError

GATE = AsymmetricGate(GateConfig())
logits = arrays(np.float64, (6, 4), elements=st.floats(-6.0, 6.0))


def mean_kl(alpha, without, taught):
    share = np.full(len(without), alpha)
    return float(divergences(mix_logits(without, taught, share), without).mean())


@settings(max_examples=40)
@given(logits, logits)
def test_divergence_never_falls_on_the_way(without, taught):
    found = [mean_kl(alpha, without, taught) for alpha in np.linspace(0.0, 1.0, 33)]
    assert found[0] == 0.0
    assert np.diff(found).min() >= -1e-12


@settings(max_examples=40)
@given(logits, logits)
def test_the_bound_holds_and_no_larger_share_would_keep_it(without, taught):
    found = GATE.project(without, taught)
    assert 0.0 <= found.alpha <= 1.0
    assert found.divergence <= 0.01
    assert found.divergence == mean_kl(found.alpha, without, taught)
    assert found.full_divergence == mean_kl(1.0, without, taught)
    if found.alpha == 1.0:
        assert found.full_divergence <= 0.01
    else:
        assert mean_kl(min(1.0, found.alpha * (1 + 1e-6) + 1e-12), without, taught) > 0.01 - 1e-12


def test_the_share_is_that_of_a_root_finder():
    without = np.array([[0.3, -0.2, 0.0], [1.0, 0.0, -1.0]])
    taught = np.array([[2.0, -1.0, 0.5], [-1.0, 2.0, 0.0]])

    def excess(alpha):
        mixed = softmax((1 - alpha) * without + alpha * taught, axis=1)
        return rel_entr(mixed, softmax(without, axis=1)).sum(1).mean() - 0.01

    assert GATE.project(without, taught).alpha == pytest.approx(brentq(excess, 0, 1, xtol=1e-14))


def test_a_policy_that_is_near_enough_is_left_alone():
    without = np.array([[0.0, 0.1, 0.2]])
    found = GATE.project(without, without + np.array([[0.05, 0.0, 0.0]]))
    assert found.alpha == 1.0
    assert 0.0 < found.divergence == found.full_divergence < 0.01
    assert GATE.project(without, without + 3.0).alpha == 1.0  # a shift of all logits is no change


@settings(max_examples=40)
@given(logits, logits, logits, logits)
def test_the_bound_holds_in_every_state_met_later(without, taught, later, later_taught):
    found = GATE.project(without, taught)
    mixed = found.apply(later, later_taught)
    assert divergences(mixed, later).max() <= 0.01


def test_a_mean_bound_alone_would_not_hold_in_each_state():
    calm, wild = np.zeros((99, 2)), np.array([[0.0, 3.0]])
    found = GATE.project(np.zeros((100, 2)), np.concatenate([calm, wild]))
    assert found.alpha == 1.0 or found.divergence <= 0.01
    one_share = mix_logits(np.zeros((1, 2)), wild, np.array([found.alpha]))
    assert divergences(one_share, np.zeros((1, 2)))[0] > 0.01
    assert divergences(found.apply(np.zeros((1, 2)), wild), np.zeros((1, 2)))[0] <= 0.01


def test_within_the_bound_states_get_the_share_of_the_projection():
    without, taught = np.zeros((2, 2)), np.array([[0.0, 3.0], [0.0, 0.01]])
    found = GATE.project(without[:1], taught[:1])
    expected = mix_logits(without, taught, np.full(2, found.alpha))
    assert np.array_equal(found.apply(without, taught), expected)


def test_actions_that_are_not_allowed_stay_so():
    without = np.array([[0.0, -np.inf, 1.0]])
    taught = np.array([[3.0, -np.inf, 0.0]])
    found = GATE.project(without, taught)
    assert 0.0 < found.alpha < 1.0
    assert found.divergence == pytest.approx(0.01)
    assert np.isneginf(found.apply(without, taught)[0, 1])
    bare = GATE.project(without[:, [0, 2]], taught[:, [0, 2]])
    assert bare.alpha == pytest.approx(found.alpha)


@pytest.mark.parametrize(
    ("without", "taught"),
    [
        (np.zeros((2, 3)), np.zeros((2, 2))),
        (np.zeros((0, 3)), np.zeros((0, 3))),
        (np.array([[0.0, np.nan]]), np.zeros((1, 2))),
        (np.array([[0.0, -np.inf]]), np.zeros((1, 2))),
        (np.full((1, 2), -np.inf), np.full((1, 2), -np.inf)),
    ],
)
def test_what_is_no_policy_is_refused(without, taught):
    with pytest.raises(DataError):
        GATE.project(without, taught)
