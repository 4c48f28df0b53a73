"""Performance profiles: brute force, the band's coverage, laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import performance_profile

SCORES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(1, 3), st.integers(1, 4)),
    elements=st.integers(-5, 5).map(float),
)
MARKS = np.arange(-6.0, 7.0)


def test_it_is_above_and_not_at_the_mark():
    found = performance_profile([1.0, 2.0, 2.0, 5.0], [0.0, 1.0, 2.0, 5.0], Seeds(1))
    assert found.share.tolist() == [1.0, 0.75, 0.25, 0.0]


@given(SCORES)
def test_it_is_the_plain_share_and_falls(scores):
    found = performance_profile(scores, MARKS, Seeds(1), reps=20)
    for mark, share in zip(MARKS, found.share, strict=True):
        assert share == pytest.approx(np.mean(scores > mark))
    assert (np.diff(found.share) <= 1e-12).all()
    assert (np.diff(found.low) <= 1e-12).all()
    assert (np.diff(found.high) <= 1e-12).all()
    assert (found.share[0], found.low[0], found.share[-1], found.high[-1]) == (1, 1, 0, 0)


@given(SCORES, st.randoms(use_true_random=False))
def test_the_order_of_episodes_does_not_matter(scores, dice):
    order = list(range(scores.shape[2]))
    dice.shuffle(order)
    one, two = (
        performance_profile(s, MARKS, Seeds(1), reps=9) for s in (scores, scores[:, :, order])
    )
    assert np.array_equal(one.low, two.low)


def test_the_band_is_that_of_the_runs():
    # Of n runs with share p above a mark, a resample has a binomial share: its quantiles are known.
    scores = np.r_[np.zeros(12), np.ones(8)]
    found = performance_profile(scores, [0.5], Seeds(2), reps=20_000)
    assert (found.low[0], found.high[0]) == tuple(binom.ppf([0.025, 0.975], 20, 0.4) / 20)


def test_episodes_of_one_run_are_no_independent_evidence():
    # Two runs, one always good and one always bad: a hundred episodes say no more than two do.
    scores = np.stack([np.zeros((1, 100)), np.ones((1, 100))])
    found = performance_profile(scores, [0.5], Seeds(1))
    assert (found.low[0], found.high[0]) == (0.0, 1.0)
    pooled = performance_profile(scores.ravel(), [0.5], Seeds(1))  # the mistake
    assert pooled.low[0] > 0.4


def test_runs_are_drawn_within_each_task():
    # Task 1 is always won and task 2 never: however runs are drawn, the share is a half.
    scores = np.column_stack([np.ones(6), np.zeros(6)])
    found = performance_profile(scores, [0.5], Seeds(1))
    assert (found.low[0], found.share[0], found.high[0]) == (0.5, 0.5, 0.5)


def test_one_run_has_no_band_and_seeds_decide():
    alone = performance_profile([[3.0]], [1.0], Seeds(1))
    assert (alone.low, alone.high, alone.share.tolist()) == (None, None, [1.0])
    assert alone.as_dict()["low"] is None
    scores = np.arange(7.0)
    one, two, other = (performance_profile(scores, scores, Seeds(k), reps=50) for k in (1, 1, 2))
    assert one.as_dict() == two.as_dict() != other.as_dict()


def test_chunks_change_nothing(monkeypatch):
    scores = Seeds(1).child("scores").rng().normal(size=(5, 2, 3))
    whole = performance_profile(scores, [0.0, 1.0], Seeds(1), reps=64).as_dict()
    monkeypatch.setattr("agent_gym.evaluation.statistics.profiles.CHUNK", 40)
    assert performance_profile(scores, [0.0, 1.0], Seeds(1), reps=64).as_dict() == whole


@pytest.mark.parametrize("scores", [[[[[1.0]]]], [], np.empty((2, 1, 0)), [np.nan], [[[np.inf]]]])
def test_what_cannot_be_asked(scores):
    with pytest.raises(DataError):
        performance_profile(scores, [0.0], Seeds(1))
