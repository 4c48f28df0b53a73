"""The paired tests and the smallest loss seen: known answers, limits without noise, laws."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.gate.mde import Hurdle, required_loss, smallest_seen
from agent_gym.evaluation.gate.paired import Bounds, Table, holm, paired
from agent_gym.evaluation.gate.policy import GatePolicy
from agent_gym.evaluation.gate.stages import decide
from agent_gym.evaluation.statistics import holm as known_holm


def bounds(rows=1, sign=1.0, rel=0.0, abs=0.0, floor=0.0):  # noqa: A002
    limits = (np.full(rows, float(value)) for value in (sign, rel, abs, floor))
    return Bounds(*limits, family=np.zeros(rows, dtype=np.int64))


def table(base, cand):
    return Table(np.atleast_2d(np.asarray(base, float)), np.atleast_2d(np.asarray(cand, float)))


RNG = Seeds(3).child("paired")


def test_p_values_and_intervals_are_those_of_scipy():
    rng = RNG.child("t").rng()
    base, cand = rng.normal(10, 3, (5, 24)), rng.normal(9.5, 3, (5, 24))
    sign = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    found = paired(Table(base, cand), replace(bounds(5), sign=sign))
    low, high = found.interval()
    for row in range(5):
        losses = sign[row] * (base[row] - cand[row])
        known = stats.ttest_1samp(losses, 0.0, alternative="greater")
        assert found.p_worse[row] == pytest.approx(known.pvalue, rel=1e-9)
        assert found.p_better[row] == pytest.approx(1.0 - known.pvalue, rel=1e-9)
        around = stats.ttest_1samp(losses, 0.0).confidence_interval()
        assert (low[row], high[row]) == pytest.approx((around.low, around.high), rel=1e-9)


def test_two_valued_rows_are_tested_by_exact_mcnemar():
    base = [1, 1, 1, 1, 1, 1, 1, 0, 1, 1]
    cand = [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    for scale in (1.0, 100.0):
        found = paired(table(np.multiply(base, scale), np.multiply(cand, scale)), bounds())
        known = stats.binomtest(5, 6, alternative="greater").pvalue
        assert found.p_worse[0] == pytest.approx(known)
        assert found.p_better[0] == pytest.approx(
            stats.binomtest(1, 6, alternative="greater").pvalue
        )
        assert found.effect[0] == pytest.approx((5 + 0.5 * 4) / 10)


def test_three_values_are_not_binary():
    found = paired(table([0, 0, 0, 1, 2], [1, 1, 0, 0, 0]), bounds())
    known = stats.ttest_1samp([-1, -1, 0, 1, 2], 0.0, alternative="greater").pvalue
    assert found.p_worse[0] == pytest.approx(known)


@pytest.mark.parametrize("size", [1e-9, 0.01, 5.0, 1e9])
def test_a_loss_without_noise_is_certain_and_never_nan(size):
    base = np.full(8, 3.0 * size)
    found = paired(table([base, base, base], [base - size, base + size, base]), bounds(3))
    assert found.p_worse.tolist() == [0.0, 1.0, 1.0]
    assert found.p_better.tolist() == [1.0, 0.0, 1.0]
    assert found.certain.tolist() == [True, True, False]
    assert found.same.tolist() == [False, False, True]


def test_rounding_is_neither_a_loss_nor_noise():
    base = np.array([0.1 + 0.2, 1.1 * 3, 0.7 + 0.1, 0.3])
    cand = np.array([0.3, 3.3, 0.8, 0.3])
    assert (base != cand).any()
    assert paired(table(base, cand), bounds()).same[0]
    moved = paired(table(base, cand - 0.01), bounds())
    assert moved.certain[0]
    assert moved.p_worse[0] == 0.0


def test_one_pair_and_no_pair_show_nothing():
    nan = np.nan
    found = paired(table([[1.0, nan], [nan, nan]], [[5.0, nan], [nan, nan]]), bounds(2))
    assert found.n.tolist() == [1, 0]
    assert found.p_worse.tolist() == found.p_better.tolist() == [1.0, 1.0]
    assert not found.certain.any()


def test_left_out_pairs_change_nothing():
    rng = RNG.child("left out").rng()
    base, cand = rng.normal(size=20), rng.normal(size=20)
    hole = np.full(4, np.nan)
    whole = paired(table(base, cand), bounds())
    holed = paired(table(np.append(base, hole), np.append(cand, hole)), bounds())
    assert holed.n[0] == 20
    assert holed.p_worse[0] == pytest.approx(whole.p_worse[0], rel=1e-12)
    assert holed.effect[0] == whole.effect[0]


def test_tolerances_of_a_small_baseline_are_absolute():
    base = np.array([[2.0, 2.0], [0.0, 0.0], [0.05, 0.05]])
    found = paired(table(base, base - 1.0), bounds(3, rel=0.1, abs=0.001, floor=0.1))
    assert found.tolerance.tolist() == pytest.approx([0.2, 0.001, 0.001])
    assert found.worse().all()


def test_the_null_of_the_tolerance_shifts_the_test():
    rng = RNG.child("null").rng()
    base = 1.0 + rng.normal(0, 0.1, 30)
    cand = base - 0.05 + rng.normal(0, 0.05, 30)
    found = paired(table(base, cand), bounds(rel=0.02), "tolerance")
    known = stats.ttest_1samp(base - cand, 0.02 * base.mean(), alternative="greater").pvalue
    assert found.p_worse[0] == pytest.approx(known, rel=1e-9)
    # Without noise the same question has a plain answer.
    flat = np.ones(5)
    sure = paired(table([flat, flat], [flat - 0.01, flat - 0.03]), bounds(2, rel=0.02), "tolerance")
    assert sure.p_worse.tolist() == [1.0, 0.0]


def test_holm_is_the_known_one_in_each_family():
    p = np.array([0.01, 0.2, 0.04, 0.03, 0.02, 0.001])
    chosen = np.array([True, False, True, True, True, True])
    family = np.array([1, 1, 1, 1, 0, 0])
    found = holm(p, chosen, family)
    assert found[[0, 2, 3]] == pytest.approx(known_holm([0.01, 0.04, 0.03]))
    assert found[[4, 5]] == pytest.approx(known_holm([0.02, 0.001]))
    assert found[1] == 1.0
    assert (holm(p, np.zeros(6, dtype=bool), family) == 1.0).all()


# Nothing between 0 and 1e-250: there another unit leaves no digits to scale.
SIZES = st.floats(1e-250, 1e6)
FIGURES = st.just(0.0) | SIZES | SIZES.map(lambda size: -size)


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float64, (2, 12), elements=FIGURES),
    st.sampled_from([2.0**-40, 1e-3, 7.0, 1e150]),
)
def test_units_and_sides(values, unit):
    base, cand = values
    found = paired(table(base, cand), bounds(rel=0.02))
    scaled = paired(table(base * unit, cand * unit), bounds(rel=0.02))
    turned = paired(table(cand, base), bounds(rel=0.02))
    assert scaled.p_worse[0] == pytest.approx(found.p_worse[0], rel=1e-5, abs=1e-9)
    assert bool(scaled.same[0]) == bool(found.same[0])
    assert turned.p_better[0] == found.p_worse[0]
    assert turned.p_worse[0] == found.p_better[0]
    assert turned.effect[0] == pytest.approx(1.0 - found.effect[0])
    assert np.isfinite([found.loss[0], found.sd[0], found.p_worse[0]]).all()


def test_huge_numbers_do_not_overflow():
    found = paired(table([1e300, -1e300, 1e300], [-1e300, 1e300, -1e300]), bounds())
    assert np.isfinite(found.p_worse[0])


def test_the_smallest_loss_seen_is_seen_as_often_as_promised():
    rng = RNG.child("mde").rng()
    policy, n, sd, tolerance = GatePolicy(), 64, 0.05, 0.01
    one = np.ones(1)
    hurdle = Hurdle(np.array([n]), one * 0.01, decides=True)
    loss = smallest_seen(one * sd, one * tolerance, [hurdle], policy)[0]
    losses = loss + sd * rng.standard_normal((4_000, n))
    found = paired(table(np.ones_like(losses), 1.0 - losses), bounds(4_000, abs=tolerance))
    seen = float(np.mean((found.p_worse <= 0.01) & found.worse()))
    assert 0.94 <= seen <= 0.96


def test_the_smallest_loss_of_three_hurdles_is_seen_as_often_as_promised():
    rng = RNG.child("three").rng()
    policy, sd, one = GatePolicy(), 0.05, np.ones(1)
    plan = ((24, 0.10, False), (64, 0.001, True), (64, 0.01, True))
    hurdles = [Hurdle(np.array([n]), one * p, decides) for n, p, decides in plan]
    loss = smallest_seen(one * sd, one * 0.02, hurdles, policy)[0]
    seen = np.ones(4_000, dtype=bool)
    for n, p, decides in plan:
        losses = loss + sd * rng.standard_normal((4_000, n))
        found = paired(table(np.ones_like(losses), 1.0 - losses), bounds(4_000, abs=0.02))
        seen &= (found.p_worse <= p) & (found.worse() | (not decides))
    assert 0.94 <= seen.mean() <= 0.96


def test_the_smallest_loss_without_noise_is_the_tolerance_and_grows_with_noise():
    hurdle = Hurdle(np.full(3, 24), np.full(3, 0.01), decides=True)
    seen = smallest_seen(np.array([0.0, 0.1, 0.2]), np.full(3, 0.03), [hurdle], GatePolicy())
    assert seen[0] == 0.03
    assert seen[0] < seen[1] < seen[2]


def test_what_ought_to_be_seen():
    base, tolerance = np.array([10.0, 0.0, 0.0]), np.array([0.4, 0.3, 0.0])
    limits = replace(bounds(3), floor=np.array([0.0, 0.0, 2.0]))
    assert required_loss(base, tolerance, limits, GatePolicy()).tolist() == [0.8, 0.6, 0.1]


def test_rows_do_not_depend_on_their_neighbours():
    rng = RNG.child("neighbours").rng()
    base = 1.0 + rng.normal(0, 0.1, (7, 24))
    cand = base + rng.normal(0, 0.05, (7, 24))
    whole = decide(Table(base, cand), bounds(7), None, GatePolicy())
    for row in range(7):
        alone = paired(table(base[row], cand[row]), bounds())
        assert alone.loss[0] == whole.figures.loss[row]
        assert alone.p_worse[0] == whole.figures.p_worse[row]


def test_noise_asks_for_more_fresh_seeds_up_to_the_limit():
    asked = []

    def fresh(rows, n_seeds, *, again):
        asked.append(n_seeds.tolist())
        return Table(np.full((rows.size, 4), np.nan), np.full((rows.size, 4), np.nan))

    rng = RNG.child("plan").rng()
    for sd in (0.01, 0.12, 1.0):
        base = np.ones((1, 24))
        cand = base - 2 * sd + rng.normal(0, sd, (1, 24))
        ruling = decide(Table(base, cand), bounds(rel=0.0), fresh, GatePolicy())
        assert ruling.failed[0]
        assert not ruling.worse[0]
    assert asked == [[64], [128], [256]]
    # A baseline of zero without an absolute tolerance says nothing of how much matters.
    none = np.zeros((1, 24))
    decide(Table(none, rng.normal(-3, 1, (1, 24))), bounds(), fresh, GatePolicy())
    assert asked[-1] == [64]
