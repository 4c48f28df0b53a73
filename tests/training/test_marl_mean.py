"""The mean of a team over its last steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.training.marl.mean import MeanTeam

STEPS = st.integers(1, 5_000)


def network(value):
    return {"w": np.full((2, 3), value, np.float32), "b": np.full(2, -value, np.float32)}


def test_nothing_is_kept_without_steps():
    mean = MeanTeam(0)
    mean.take_in(network(1.0), 400)
    assert mean.weights() is None
    assert list(mean.state()) == ["mass"]


@given(STEPS, st.lists(STEPS, min_size=1, max_size=6))
def test_the_mean_of_equal_networks_is_that_network(memory, played):
    mean = MeanTeam(memory)
    for steps in played:
        mean.take_in(network(0.75), steps)
    for name, array in network(0.75).items():
        np.testing.assert_allclose(mean.weights()[name], array, rtol=1e-6)
        assert mean.weights()[name].dtype == np.float32


@given(st.lists(st.tuples(st.floats(-3, 3), STEPS), min_size=2, max_size=6))
def test_it_is_the_sum_over_the_past_that_fades_with_steps(past):
    mean = MeanTeam(1_000)
    for value, steps in past:
        mean.take_in(network(value), steps)
    played = np.array([steps for _, steps in past], float)
    age = played[::-1].cumsum()[::-1] - played
    weights = np.exp(-age / 1_000) * (1.0 - np.exp(-played / 1_000))
    values = np.array([np.float32(value) for value, _ in past], float)
    expected = (weights * values).sum() / weights.sum()
    assert mean.weights()["w"][1, 2] == pytest.approx(expected, abs=1e-5)


def test_it_does_not_hold_what_it_was_shown():
    mean, shown = MeanTeam(1_000), network(1.0)
    mean.take_in(shown, 400)
    shown["w"][:] = 9.0
    assert mean.weights()["w"][0, 0] == pytest.approx(1.0)


def test_it_goes_on_to_the_bit():
    one, other = MeanTeam(1_000), MeanTeam(1_000)
    for value in (0.1, 0.7):
        one.take_in(network(value), 300)
    other.restore(one.state())
    for mean in (one, other):
        mean.take_in(network(0.3), 200)
    for name, array in one.weights().items():
        assert array.tobytes() == other.weights()[name].tobytes()
