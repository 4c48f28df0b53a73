"""Advantages, targets and the scale of values, against slow and plain references."""

import numpy as np
import pytest

from agent_gym.core import Seeds
from agent_gym.training.marl.returns import effective_share, normalized, traced
from agent_gym.training.marl.value_norm import ValueNorm

GAMMA, TRACE = 0.97, 0.9


def window(seed=0, t=12, e=3, n=2):
    rng = Seeds(seed).rng()
    return (
        rng.standard_normal((t, e)),
        rng.standard_normal((t + 1, e, n)),
        rng.random((t, e)) < 0.2,
        np.exp(0.5 * rng.standard_normal((t, e, n))),
    )


def slow_gae(rewards, values, ended):
    """Return advantages as the sum over all later surprises of the episode."""
    found = np.zeros_like(values[:-1])
    for t, e, n in np.ndindex(found.shape):
        factor = 1.0
        for k in range(t, len(rewards)):
            after = 0.0 if ended[k, e] else GAMMA * values[k + 1, e, n]
            found[t, e, n] += factor * (rewards[k, e] + after - values[k, e, n])
            if ended[k, e]:
                break
            factor *= GAMMA * TRACE
    return found


def slow_vtrace(rewards, values, ended, ratios):
    """Return targets as V-trace writes them: V + sum of gamma^k (prod c) rho (surprise)."""
    found = values[:-1].copy()
    cut = np.minimum(1.0, ratios)
    for t, e, n in np.ndindex(found.shape):
        factor = 1.0
        for k in range(t, len(rewards)):
            after = 0.0 if ended[k, e] else GAMMA * values[k + 1, e, n]
            surprise = rewards[k, e] + after - values[k, e, n]
            found[t, e, n] += factor * cut[k, e, n] * surprise
            if ended[k, e]:
                break
            factor *= GAMMA * TRACE * cut[k, e, n]
    return found


def test_equal_policies_give_gae():
    rewards, values, ended, ratios = window()
    found = traced(rewards, values, ended, np.ones_like(ratios), GAMMA, TRACE)
    np.testing.assert_allclose(found.advantages, slow_gae(rewards, values, ended), atol=1e-12)
    np.testing.assert_allclose(found.targets, values[:-1] + found.advantages, atol=1e-12)


def test_other_policies_give_the_targets_of_v_trace():
    rewards, values, ended, ratios = window(1)
    found = traced(rewards, values, ended, ratios, GAMMA, TRACE)
    slow = slow_vtrace(rewards, values, ended, ratios)
    np.testing.assert_allclose(found.targets, slow, atol=1e-12)
    plain = traced(rewards, values, ended, np.ones_like(ratios), GAMMA, TRACE)
    assert np.abs(found.targets - plain.targets).max() > 0.1


def test_an_advantage_is_that_of_the_action_and_of_what_came_after():
    rewards, values, ended, ratios = window(2)
    found = traced(rewards, values, ended, ratios, GAMMA, TRACE)
    onward = GAMMA * ~ended[..., None]
    later = np.concatenate([(found.targets - values[:-1])[1:], np.zeros((1, 3, 2))])
    expected = rewards[..., None] + onward * (values[1:] + TRACE * later) - values[:-1]
    np.testing.assert_allclose(found.advantages, expected, atol=1e-12)


def test_nothing_comes_back_over_the_end_of_an_episode():
    rewards, values, ended, ratios = window(3)
    ended[:] = False
    ended[5] = True
    before = traced(rewards, values, ended, ratios, GAMMA, TRACE)
    rewards[6:], values[6:] = 100.0, -100.0
    after = traced(rewards, values, ended, ratios, GAMMA, TRACE)
    np.testing.assert_array_equal(before.advantages[:6], after.advantages[:6])
    ended[5] = False
    open_end = traced(rewards, values, ended, ratios, GAMMA, TRACE)
    assert np.abs(open_end.advantages[:6] - after.advantages[:6]).max() > 1.0


def test_shapes_that_would_be_spread_are_refused():
    rewards, values, ended, ratios = window()
    with pytest.raises(ValueError, match="do not fit"):
        traced(rewards, values[..., :1], ended, ratios, GAMMA, TRACE)
    with pytest.raises(ValueError, match="do not fit"):
        traced(rewards, values[:-1], ended, ratios, GAMMA, TRACE)


def test_mean_and_deviation_are_those_of_the_rows_in_use():
    rng = Seeds(1).rng()
    values, used = rng.standard_normal((4, 5)), rng.random((4, 5)) < 0.5
    found = normalized(values, used)
    assert abs(found[used].mean()) < 1e-12
    assert abs(found[used].std() - 1.0) < 1e-6
    assert (found[~used] == 0.0).all()
    wild = np.where(used, values, 1e6)
    np.testing.assert_array_equal(normalized(wild, used), found)
    assert (normalized(values, np.zeros_like(used)) == 0.0).all()


def test_the_effective_share_of_samples():
    used = np.array([True, True, True, True, False])
    assert effective_share(np.array([1.0, 1.0, 1.0, 1.0, 9.0]), used) == 1.0
    assert effective_share(np.array([4.0, 0.0, 0.0, 0.0, 9.0]), used) == 0.25


def test_the_scale_of_values_by_hand():
    norm = ValueNorm(0.99)
    assert norm.mean_and_spread == (0.0, 1.0)
    norm.update(np.array([2.0, 4.0]))
    assert norm.mean_and_spread == pytest.approx((3.0, 1.0))  # no pull of where it began
    norm.update(np.array([10.0, 20.0]))
    weight = 0.01 + 0.99 * 0.01
    mean = (0.99 * 0.01 * 3.0 + 0.01 * 15.0) / weight
    square = (0.99 * 0.01 * 10.0 + 0.01 * 250.0) / weight
    spread = np.sqrt(square - mean**2)
    assert norm.mean_and_spread == pytest.approx((mean, spread))
    there = norm.normalize(np.array([5.0]))
    assert there == pytest.approx([(5.0 - mean) / spread])
    assert norm.denormalize(there) == pytest.approx([5.0])
    other = ValueNorm(0.99)
    other.restore(norm.array())
    assert other.mean_and_spread == norm.mean_and_spread


def test_values_that_do_not_move_have_a_smallest_spread():
    norm = ValueNorm(0.9)
    norm.update(np.full(5, 7.0))
    assert norm.mean_and_spread == pytest.approx((7.0, 0.1))
