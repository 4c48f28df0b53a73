"""Splits: nothing tested lies close to what was learned, every row is tested as often as said."""

from math import comb

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_gym.core.errors import ConfigError
from agent_gym.evaluation.protocol.splits import purged_combinations, walk_forward

small = st.integers(0, 12)


@st.composite
def walks(draw):
    test = draw(st.integers(1, 40))
    segments = {
        "train": draw(st.integers(1, 60)),
        "validate": draw(st.integers(0, 20)),
        "test": test,
        "roll": draw(st.none() | st.integers(test, test + 15)),
        "purge": draw(small),
        "embargo": draw(small),
        "expanding": draw(st.booleans()),
    }
    gap = segments["purge"] + segments["embargo"]
    looked = segments["validate"]
    first = segments["train"] + gap + (looked + gap if looked else 0)
    return draw(st.integers(first + 1, first + 300)), first, segments


@given(walks())
def test_no_tested_row_is_near_a_row_that_was_learned_from(walk):
    n, _, segments = walk
    gap = segments["purge"] + segments["embargo"]
    for fold in walk_forward(n, **segments):
        assert 0 <= fold.train.start < fold.train.stop
        before_test = fold.train
        if segments["validate"]:
            assert fold.validate.length == segments["validate"]
            assert fold.validate.start - fold.train.stop == gap
            before_test = fold.validate
        else:
            assert fold.validate is None
        assert fold.test.start - before_test.stop == gap
        assert fold.test.stop <= n
        if segments["expanding"]:
            assert fold.train.start == 0
        else:
            assert fold.train.length == segments["train"]


@given(walks())
def test_every_row_after_the_first_training_is_tested_once(walk):
    n, first, segments = walk
    times = np.zeros(n, dtype=int)
    for fold in walk_forward(n, **segments):
        times[fold.test.rows] += 1
    assert not times[:first].any()
    assert times.max() == 1
    if segments["roll"] in (None, segments["test"]):
        assert (times[first:] == 1).all()


@given(
    st.integers(20, 120), st.integers(2, 7), st.integers(1, 4), st.integers(0, 2), st.integers(0, 2)
)
def test_combinations_are_purged_on_both_sides(n, groups, tested, purge, embargo):
    tested = min(tested, groups - 1)
    gap = purge + embargo
    assume(n // groups > 2 * gap)
    times = np.zeros(n, dtype=int)
    count = 0
    for each in purged_combinations(n, groups, tested, purge, embargo):
        assert np.abs(each.train[:, None] - each.test[None, :]).min() > gap
        left_out = np.setdiff1d(np.arange(n), np.union1d(each.train, each.test))
        # Nothing is thrown away that need not be.
        assert np.abs(left_out[:, None] - each.test[None, :]).min(axis=1).max(initial=0) <= gap
        times[each.test] += 1
        count += 1
    assert count == comb(groups, tested)
    assert (times == comb(groups - 1, tested - 1)).all()


def test_gaps_that_leave_nothing_to_learn_from_are_refused():
    with pytest.raises(ConfigError, match="nothing to learn from"):
        list(purged_combinations(30, groups=3, tested=2, purge=10))


def test_the_months_of_the_design():
    month, gap = 720, 174
    folds = walk_forward(8_760, train=6 * month, validate=month, test=month, purge=6, embargo=168)
    assert len(folds) == 5
    assert folds[0].test.start == 7 * month + 2 * gap


@pytest.mark.parametrize(
    "segments",
    [
        {"train": 0, "test": 5},
        {"train": 5, "test": 0},
        {"train": 5, "test": 5, "roll": 4},
        {"train": 5, "test": 5, "purge": -1},
        {"train": 90, "test": 5, "embargo": 10},
        {"train": 5, "test": 5, "tset": 5},
    ],
)
def test_what_cannot_be_walked_is_refused(segments):
    with pytest.raises(ConfigError):
        walk_forward(100, **segments)


@pytest.mark.parametrize(
    "bad", [(10, 1, 1, 0, 0), (10, 4, 4, 0, 0), (3, 4, 1, 0, 0), (9, 3, 1, -1, 0)]
)
def test_what_cannot_be_combined_is_refused(bad):
    with pytest.raises(ConfigError):
        list(purged_combinations(*bad))
