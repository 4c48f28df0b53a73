import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from agent_gym.core.errors import DataError
from agent_gym.training.grpo.advantages import GroupCounts, group_advantages, tick_advantages

SCALINGS = ("std", "none", "batch")
NUMBERS = st.floats(-100, 100).map(lambda x: round(x, 3))


@st.composite
def grouped(draw):
    n_groups, members = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    returns = draw(arrays(np.float64, n_groups * members, elements=NUMBERS))
    return returns, np.repeat(np.arange(n_groups), members)


def test_by_hand():
    returns, groups = np.array([1.0, 2.0, 6.0, 10.0, 14.0]), np.array([0, 0, 0, 1, 1])
    none = group_advantages(returns, groups, "none")
    assert none.values.tolist() == [-2.0, -1.0, 3.0, -2.0, 2.0]
    std = group_advantages(returns, groups, "std", eps=1e-4)
    first = np.std([1, 2, 6], ddof=1) + 1e-4  # the sample standard deviation, not the population's
    second = np.std([10, 14], ddof=1) + 1e-4
    wanted = [-2 / first, -1 / first, 3 / first, -2 / second, 2 / second]
    assert np.allclose(std.values, wanted, rtol=1e-14)
    batch = group_advantages(returns, groups, "batch", eps=0.0)
    assert np.allclose(batch.values, none.values / returns.std(ddof=1), rtol=1e-14)


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("noise", [0.0, 1e-12, 9e-10])
def test_equal_groups_are_exactly_zero_and_counted(scaling, noise):
    returns = np.array([0.1 + 0.2, 0.3, 0.3 + noise, 5.0, 6.0])
    found = group_advantages(returns, np.array([0, 0, 0, 1, 1]), scaling, eps=0.0)
    assert found.values[:3].tolist() == [0.0, 0.0, 0.0]
    assert (found.values[3:] != 0).all()
    assert found.trained.tolist() == [False] * 3 + [True] * 2
    assert found.counts == GroupCounts(kept=1, dropped=1)
    assert found.counts.zero_share == 0.5


def test_a_difference_above_the_limit_counts():
    found = group_advantages(np.array([0.0, 1e-8]), np.array([0, 0]), "std", eps=0.0)
    assert found.counts.kept == 1
    assert np.allclose(np.abs(found.values), 0.7071067811865475)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_singletons_are_refused_and_never_train_on_their_raw_reward(scaling):
    found = group_advantages(np.array([100.0, 1.0, 2.0]), np.array(["a", "b", "b"]), scaling)
    assert found.values[0] == 0.0
    assert not found.trained[0]
    assert found.counts == GroupCounts(kept=1, refused=1)
    without = group_advantages(np.array([1.0, 2.0]), np.array(["b", "b"]), scaling)
    assert found.values[1:].tolist() == without.values.tolist()  # nor do they change the others


@given(grouped(), st.integers(0, 4), st.floats(-1000, 1000))
def test_a_constant_added_to_a_group_changes_nothing(case, group, constant):
    returns, groups = case
    moved = returns + constant * (groups == group)
    for scaling in ("std", "none"):  # the spread of a batch does change
        a = group_advantages(returns, groups, scaling)
        b = group_advantages(moved, groups, scaling)
        assert np.allclose(a.values, b.values, atol=1e-6)


@given(grouped(), st.floats(0.01, 100))
def test_the_scale_of_rewards_does_not_matter_in_std_mode(case, factor):
    returns, groups = case
    a = group_advantages(returns, groups, "std", eps=0.0)
    b = group_advantages(returns * factor, groups, "std", eps=0.0)
    assert np.allclose(a.values, b.values, atol=1e-7)
    none = group_advantages(returns * factor, groups, "none").values
    assert np.allclose(none, factor * group_advantages(returns, groups, "none").values, atol=1e-7)


@given(grouped(), st.randoms(use_true_random=False), st.sampled_from(SCALINGS))
def test_the_order_of_groups_and_members_does_not_matter(case, dice, scaling):
    returns, groups = case
    order = list(range(len(returns)))
    dice.shuffle(order)
    names = [f"snapshot-{97 * g % 13}" for g in groups]  # other labels, in another order
    a = group_advantages(returns, groups, scaling)
    b = group_advantages(returns[order], np.array(names)[order], scaling)
    assert np.allclose(a.values[order], b.values, atol=1e-9)
    assert a.counts == b.counts


@given(grouped(), st.sampled_from(SCALINGS))
def test_each_group_sums_to_zero(case, scaling):
    returns, groups = case
    values = group_advantages(returns, groups, scaling).values
    assert np.allclose(np.bincount(groups, weights=values), 0.0, atol=1e-7)


def test_reward_to_go_by_hand():
    rewards = np.array([[1.0, 2.0, 3.0], [1.0, 0.0, 1.0]])
    mask = np.ones((2, 3), dtype=bool)
    found = tick_advantages(rewards, mask, np.array([0, 0]), "none")
    assert found.values.tolist() == [[2.0, 2.0, 1.0], [-2.0, -2.0, -1.0]]
    half = tick_advantages(rewards, mask, np.array([0, 0]), "none", discount=0.5)
    assert half.values[0].tolist() == [0.75, 1.5, 1.0]


def test_reward_to_go_ignores_the_past_and_ticks_that_nobody_else_reached():
    rewards = np.array([[5.0, 1.0, 9.0], [0.0, 2.0, 77.0]])
    mask = np.array([[True, True, True], [True, True, False]])
    found = tick_advantages(rewards, mask, np.array([0, 0]), "none")
    assert found.values[:, 2].tolist() == [0.0, 0.0]
    assert found.values[:, 1].tolist() == [4.0, -4.0]  # (1 + 9) against 2; 77 is padding
    late = rewards.copy()
    late[:, 0] += np.array([100.0, -100.0])
    moved = tick_advantages(late, mask, np.array([0, 0]), "none")
    assert moved.values[:, 1:].tolist() == found.values[:, 1:].tolist()


@pytest.mark.parametrize("scaling", SCALINGS)
def test_reward_to_go_drops_and_refuses_groups_too(scaling):
    rewards = np.array([[1.0, 1.0]] * 2 + [[1.0, 1.0], [1.0, 2.0]] + [[7.0, 8.0]])
    groups = np.array([0, 0, 1, 1, 2])
    found = tick_advantages(rewards, np.ones((5, 2), dtype=bool), groups, scaling)
    assert found.counts == GroupCounts(kept=1, dropped=1, refused=1)
    assert found.trained.tolist() == [False, False, True, True, False]
    assert (found.values[[0, 1, 4]] == 0.0).all()


def test_what_is_not_a_number_is_refused():
    with pytest.raises(DataError, match="not a number"):
        group_advantages(np.array([1.0, np.nan]), np.array([0, 0]))
    with pytest.raises(DataError, match="needs its group"):
        group_advantages(np.array([1.0, 2.0]), np.array([0]))
