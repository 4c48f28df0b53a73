import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from agent_gym.agents.umc.empowerment import (
    blahut_arimoto,
    empowerment_bound,
    gaussian_capacity,
    gaussian_empowerment_bound,
    gaussian_information,
)
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds

POLICY = np.array([0.2, 0.5, 0.3])
ROWS = 8000


def drawn(seed, rows=ROWS, policy=POLICY):
    return Seeds(seed).child("actions").rng().choice(policy.size, size=rows, p=policy)


def noise(seed, *shape):
    return Seeds(seed).child("noise").rng().standard_normal(shape)


def mixture_information(middles, policy):
    """The information of an action that moves a Gaussian of deviation 1, by an integral."""

    def density(x):
        return float(policy @ norm.pdf(x, middles))

    low, high = middles.min() - 9, middles.max() + 9
    whole, _ = quad(lambda x: -density(x) * math.log(density(x)), low, high, limit=300)
    return whole - 0.5 * math.log(2 * math.pi * math.e)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reach", [0.5, 1.0, 3.0])
def test_the_bound_is_below_the_truth_and_close_to_it(seed, reach):
    actions, middles = drawn(seed), reach * np.array([-1.0, 0.0, 1.0])
    bound = empowerment_bound(actions, middles[actions] + noise(seed, ROWS), POLICY)
    truth = mixture_information(middles, POLICY)
    assert bound.nats <= truth + 3 * bound.standard_error
    assert bound.nats >= truth - 3 * bound.standard_error - 0.01
    assert bound.nats > 5 * bound.standard_error
    assert bound.rows == ROWS


@pytest.mark.parametrize("seed", range(3))
def test_a_discrete_channel_whose_information_is_known(seed):
    """Three outcomes, told as indicators."""
    channel = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    actions = drawn(seed)
    chance = Seeds(seed).child("channel").rng().random(ROWS)
    outcomes = (chance[:, None] > channel[actions].cumsum(axis=1)).sum(axis=1)
    shown = POLICY @ channel
    truth = float((POLICY[:, None] * channel * np.log(channel / shown)).sum())
    bound = empowerment_bound(actions, np.eye(3)[outcomes][:, 1:], POLICY)
    assert bound.nats <= truth + 3 * bound.standard_error
    assert bound.nats >= truth - 3 * bound.standard_error - 0.01
    as_number = empowerment_bound(actions, (outcomes - 1.0) ** 2, POLICY)
    assert as_number.nats < 0.9 * truth  # half of it thrown away is half of it gone


@pytest.mark.parametrize("seed", range(3))
def test_a_gaussian_channel_whose_information_is_known(seed):
    gain, spread = np.array([[1.0, 0.5], [0.0, 2.0]]), np.array([[1.0, 0.3], [0.3, 0.5]])
    rest = np.array([[1.0, -0.2], [-0.2, 2.0]])
    mean = np.array([0.5, -1.0])
    rng = Seeds(seed).child("gaussian").rng()
    actions = rng.multivariate_normal(mean, spread, size=ROWS)
    outcomes = actions @ gain.T + rng.multivariate_normal([3.0, 0.0], rest, size=ROWS)
    truth = gaussian_information(gain, spread, rest)
    bound = gaussian_empowerment_bound(actions, outcomes, mean, spread)
    assert abs(bound.nats - truth) < 3 * bound.standard_error + 0.005
    blurred = gaussian_empowerment_bound(actions, np.abs(outcomes), mean, spread)
    assert blurred.nats < truth  # a decoder that misses something says less, never more


def exogenous(seed, rows=ROWS):
    """A replay: persistent volatility and drift, and nothing that an action could move."""
    shocks, returns, drift, size = noise(seed, rows, 2), np.empty(rows), 0.0, 1.0
    for i in range(rows):
        drift = 0.95 * drift + 0.3 * shocks[i, 0]
        size = 0.9 * size + 0.1 * (0.2 + abs(shocks[i, 0]))
        returns[i] = drift + size * shocks[i, 1]
    return returns


@pytest.mark.parametrize("seed", range(6))
def test_f3_on_a_replay_there_is_no_empowerment(seed):
    returns = exogenous(seed)
    bound = empowerment_bound(drawn(seed), returns, POLICY)
    assert abs(bound.nats) < 3 * bound.standard_error + 1e-3
    actions = Seeds(seed).child("sizes").rng().standard_normal(ROWS)
    bound = gaussian_empowerment_bound(actions, returns, 0.0, 1.0)
    assert abs(bound.nats) < 3 * bound.standard_error + 1e-3


def test_a_market_that_is_moved_shows_it():
    """The positive control beside it: the same replay with a little impact."""
    actions = drawn(0)
    bound = empowerment_bound(actions, exogenous(0) + 0.8 * actions, POLICY)
    assert bound.nats > 5 * bound.standard_error


def test_what_was_known_before_sharpens_the_bound_and_adds_nothing_of_its_own():
    returns, actions = exogenous(1), drawn(1)
    known = np.concatenate([[0.0], returns[:-1]])
    moved = returns + 0.8 * actions
    alone = empowerment_bound(actions, moved, POLICY)
    given = empowerment_bound(actions, np.column_stack([moved, known]), POLICY)
    assert given.nats > alone.nats
    nothing = empowerment_bound(actions, np.column_stack([returns, known]), POLICY)
    assert abs(nothing.nats) < 3 * nothing.standard_error + 1e-3


def test_actions_of_another_policy_are_refused():
    with pytest.raises(DataError, match="not drawn from that policy"):
        empowerment_bound(drawn(0), noise(0, ROWS), POLICY[::-1].copy())
    with pytest.raises(DataError, match="not drawn from that policy"):
        empowerment_bound(np.ones(ROWS, np.int64), noise(0, ROWS), POLICY)
    rare = np.array([1e-5, 1.0 - 1e-5])
    actions = np.ones(1000, np.int64)
    actions[7] = 0  # one in a thousand where one in a hundred thousand was said: it happens
    empowerment_bound(actions, noise(0, 1000), rare)


@pytest.mark.parametrize(
    "actions",
    [
        lambda rng: 2.0 * rng.standard_normal(ROWS),
        lambda rng: 0.3 + rng.standard_normal(ROWS),
        lambda rng: math.sqrt(3) * rng.uniform(-1, 1, ROWS),  # the moments fit, the shape does not
    ],
)
def test_gaussian_actions_of_another_law_are_refused(actions):
    with pytest.raises(DataError, match="not drawn from that policy"):
        gaussian_empowerment_bound(actions(Seeds(0).rng()), noise(0, ROWS), 0.0, 1.0)


def test_correlated_actions_said_to_be_independent_are_refused():
    taken = Seeds(0).rng().multivariate_normal([0, 0], [[1.0, 0.5], [0.5, 1.0]], size=ROWS)
    with pytest.raises(DataError, match="not drawn from that policy"):
        gaussian_empowerment_bound(taken, noise(0, ROWS), [0.0, 0.0], np.eye(2))
    with pytest.raises(DataError, match="one row and column"):
        gaussian_empowerment_bound(taken, noise(0, ROWS), 0.0, 1.0)


def test_whoever_follows_a_market_does_not_move_it():
    """Chances that fit, on a replay: a follower of the drift seems to cause the next return."""
    returns, half = exogenous(2), np.array([0.5, 0.5])
    follower = np.concatenate([[0], (returns[:-1] > np.median(returns)).astype(np.int64)])
    assert abs(follower.mean() - 0.5) < 0.01
    with pytest.raises(DataError, match="follow what was seen or done before"):
        empowerment_bound(follower, returns, half)
    units = (returns - returns.mean()) / returns.std()
    ranks = norm.ppf((units.argsort().argsort() + 0.5) / ROWS)
    with pytest.raises(DataError, match="follow what was seen or done before"):
        gaussian_empowerment_bound(np.roll(ranks, 1), returns, 0.0, 1.0)


def test_actions_that_are_held_are_not_drawn():
    held = np.repeat(Seeds(3).rng().integers(2, size=ROWS // 20), 20)
    with pytest.raises(DataError):
        empowerment_bound(held, noise(3, ROWS), np.array([0.5, 0.5]))


def test_an_outcome_that_is_the_action_is_refused():
    taken = noise(0, 400)
    with pytest.raises(DataError, match="infinite"):
        gaussian_empowerment_bound(taken, 2.0 * taken, 0.0, 1.0)


@pytest.mark.parametrize(
    ("actions", "outcomes", "policy"),
    [
        (np.zeros(10, np.int64), np.zeros(10), [1.0]),
        (np.zeros(100, np.int64), np.zeros(99), [1.0]),
        (np.zeros(100, np.int64), np.full(100, np.nan), [1.0]),
        (np.zeros(100, np.int64), np.zeros(100), [1.0, 0.0]),
        (np.zeros(100, np.int64), np.zeros(100), [0.6, 0.6]),
        (np.full(100, 2), np.zeros(100), [0.5, 0.5]),
        (np.full(100, -1), np.zeros(100), [0.5, 0.5]),
    ],
)
def test_broken_records_are_refused(actions, outcomes, policy):
    with pytest.raises(DataError):
        empowerment_bound(actions, outcomes, policy)


def test_too_few_rows_for_so_many_outcomes_are_refused():
    with pytest.raises(DataError, match="too few rows"):
        gaussian_empowerment_bound(noise(1, 40), noise(2, 40, 35), 0.0, 1.0)


def test_capacity_of_channels_that_are_known():
    flip = blahut_arimoto([[0.9, 0.1], [0.1, 0.9]])
    entropy = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    assert flip.nats == pytest.approx(math.log(2) - entropy, abs=1e-9)
    erased = blahut_arimoto([[0.7, 0.0, 0.3], [0.0, 0.7, 0.3]])
    assert erased.nats == pytest.approx(0.7 * math.log(2), abs=1e-9)
    z = blahut_arimoto([[1.0, 0.0], [0.5, 0.5]])
    assert z.nats == pytest.approx(math.log(1.25), abs=1e-8)
    assert blahut_arimoto(np.full((4, 3), 1 / 3)).nats == 0.0  # nothing that one does matters
    assert blahut_arimoto(np.eye(5)).nats == pytest.approx(math.log(5))


def test_an_unfinished_capacity_still_lies_between_its_bounds():
    channel = np.array([[1.0, 0.0], [0.5, 0.5]])
    rough = blahut_arimoto(channel, most_rounds=3)
    assert rough.nats < math.log(1.25) < rough.upper
    shown = rough.policy @ channel
    parts = np.where(channel > 0, channel * np.log(np.maximum(channel, 1e-300) / shown), 0.0)
    assert rough.nats == pytest.approx(float(rough.policy @ parts.sum(axis=1)), rel=1e-12)
    with pytest.raises(DataError, match="sums to 1"):
        blahut_arimoto([[0.5, 0.4]])


def test_water_is_poured_into_the_best_direction_first():
    gain, rest = np.diag([2.0, 1.0]), np.eye(2)
    assert gaussian_capacity(gain, rest, 0.5) == pytest.approx(0.5 * math.log(3))  # the best alone
    both = 0.5 * (math.log(4 * 1.625) + math.log(1.625))  # the level is (2 + 1 + 1/4) / 2
    assert gaussian_capacity(gain, rest, 2.0) == pytest.approx(both)
    assert gaussian_capacity(np.zeros((2, 2)), rest, 1.0) == 0.0
    shared = [gaussian_information(gain, np.diag([p, 2 - p]), rest) for p in np.linspace(0, 2, 41)]
    assert max(shared) <= both + 1e-12
