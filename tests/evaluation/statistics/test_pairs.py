"""Sign flips against brute force, Holm against statsmodels."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from statsmodels.stats.multitest import multipletests

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import holm, sign_flip

# Whole numbers tie often, which is where rounding and strict comparisons go wrong.
WHOLE = hnp.arrays(np.float64, st.integers(1, 10), elements=st.integers(-5, 5).map(float))
P_VALUES = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(0.0, 1.0))
SIDES = st.sampled_from(["two-sided", "greater", "less"])


def slowly(values, side):
    sums = np.array([np.dot(signs, values) for signs in product([1, -1], repeat=len(values))])
    seen = values.sum()
    if side == "greater":
        return np.mean(sums >= seen)
    return np.mean(sums <= seen) if side == "less" else np.mean(np.abs(sums) >= abs(seen))


@given(WHOLE, SIDES)
def test_flips_are_all_patterns(values, side):
    assert sign_flip(values, side) == slowly(values, side)


@given(WHOLE, st.floats(0.001, 1000.0), SIDES)
def test_neither_the_unit_nor_the_order_matters(values, scale, side):
    assert sign_flip(scale * values[::-1], side) == sign_flip(values, side)


@given(WHOLE)
def test_sides_mirror_each_other(values):
    assert sign_flip(values, "greater") == sign_flip(-values, "less")
    assert sign_flip(values) == sign_flip(-values)


@given(hnp.arrays(np.float64, st.integers(1, 10), elements=st.integers(1, 5).map(float)))
def test_a_larger_difference_never_raises_the_p_value(values):
    more = values.copy()
    more[0] = -more[0]
    assert sign_flip(values, "greater") <= sign_flip(more, "greater")
    assert sign_flip(values, "greater") == pytest.approx(2.0**-values.size)


def test_few_pairs_are_never_highly_significant():
    assert sign_flip([1e9] * 4) == 2 / 16
    assert sign_flip([0.0] * 6) == 1.0
    assert sign_flip(np.arange(1.0, 21.0)) == 2.0**-19


def test_exact_and_drawn_agree_where_they_meet():
    values = Seeds(3).child("meet").rng().normal(0.4, 1.0, 20)
    exact, drawn = sign_flip(values, "greater"), sign_flip([*values, 0.0], "greater")
    assert drawn == pytest.approx(exact, abs=0.005)
    assert drawn != exact


def test_drawn_patterns_come_from_the_seed():
    values = Seeds(4).child("drawn").rng().normal(0.2, 1.0, 40)
    assert sign_flip(values) == sign_flip(values)
    one, other = (sign_flip(values, seeds=Seeds(i), reps=5_000) for i in (1, 2))
    assert one != other
    assert one == pytest.approx(other, abs=0.03)
    assert sign_flip(np.ones(64)) == 1 / 100_001  # never 0


def test_size_is_exact_for_symmetric_differences():
    drawn = Seeds(5).child("size").rng().standard_t(2, size=(2_000, 10))
    found = np.array([sign_flip(row) for row in drawn])
    assert np.mean(found <= 0.05) == pytest.approx(0.05, abs=0.015)


def test_wrong_questions_are_refused():
    for bad in ([], [np.nan], [[1.0, 2.0]]):
        with pytest.raises(DataError):
            sign_flip(bad)
    with pytest.raises(DataError, match="alternative"):
        sign_flip([1.0], "larger")
    with pytest.raises(DataError, match="p-value"):
        holm([0.5, 1.5])


@pytest.mark.parametrize("n", [1, 2, 5, 30])
def test_holm_is_that_of_statsmodels(n):
    # Cubed, so that some stay small; rounded, so that there are ties.
    p_values = np.round(Seeds(7).child("p", n).rng().random(n) ** 3, 2)
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


@given(P_VALUES)
def test_holm_only_raises_p_values_and_keeps_their_order(p_values):
    found = holm(p_values)
    assert (found >= p_values).all()
    assert (found <= 1.0).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(found[order]) >= 0.0).all()


def test_holm_of_none_and_of_one():
    assert holm([]).size == 0
    assert holm([0.03]).tolist() == [0.03]


def test_holm_keeps_the_family_error():
    drawn = Seeds(6).child("holm").rng().random((4_000, 12))
    assert np.mean([(holm(row) <= 0.05).any() for row in drawn]) == pytest.approx(0.05, abs=0.012)
