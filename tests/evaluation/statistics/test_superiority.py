"""SPA: size without skill, power with it, agreement with arch, certain cases."""

import math

import numpy as np
import pytest
from arch.bootstrap import SPA

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import spa
from agent_gym.evaluation.statistics.superiority import _errors


def losses(*names, rows=250, arms=10):
    rng = Seeds(41).child(*names).rng()
    return rng.normal(size=rows), rng.normal(size=(rows, arms))


def test_errors_are_those_of_arch():
    base, arms = losses("errors", rows=300, arms=4)
    arms[1:] += 0.6 * arms[:-1]
    for block in (1, 5, 20):
        peer = SPA(base, arms, block_size=block, reps=10, seed=1)
        peer.compute()
        found = _errors(base[:, None] - arms, float(block))
        assert found == pytest.approx(np.sqrt(peer._loss_diff_var / 300))


# arch compares gains as they are and Hansen studentises them; with one spread it is the same.
# Where no arm gains at all the statistic here is 0 and the p-value 1, so cases have a gain.
@pytest.mark.parametrize("gain", [0.12, 0.2, 0.3])
def test_p_values_are_those_of_arch(gain):
    base, arms = losses("arch", gain, rows=400, arms=8)
    arms[:, 0] -= gain
    arms[:, 5:] += 0.5  # clearly worse
    peer = SPA(base, arms, block_size=3, reps=4_000, seed=5)
    peer.compute()
    found = spa(base, arms, Seeds(1), reps=4_000, block=3.0)
    for name in ("lower", "consistent", "upper"):
        assert getattr(found, name) == pytest.approx(peer.pvalues[name], abs=0.03)


def test_size_without_skill():
    p_values = []
    for i in range(300):
        base, arms = losses("null", i)
        p_values.append(spa(base, arms, Seeds(i), reps=300).consistent)
    p_values = np.array(p_values)
    assert np.mean(p_values <= 0.05) <= 0.085
    assert np.mean(p_values <= 0.10) >= 0.04  # a test that never fires would be no test


def test_bad_arms_do_not_hide_a_good_one():
    found = []
    for i in range(40):
        base, arms = losses("power", i, arms=30)
        arms[:, 1:] = 3.0 * arms[:, 1:] + 1.0  # wild and clearly worse
        arms[:, 0] = base - 0.25 + 0.8 * arms[:, 0]
        found.append(spa(base, arms, Seeds(i), reps=300))
    assert np.mean([each.consistent <= 0.05 for each in found]) >= 0.9
    assert {each.best for each in found} == {0}


def test_p_values_are_in_order():
    for i in range(20):
        base, arms = losses("order", i)
        found = spa(base, arms, Seeds(i), reps=200)
        assert found.lower <= found.consistent <= found.upper <= 1.0
        assert found.lower >= 1.0 / 201.0


def test_worse_arms_are_no_evidence():
    base, arms = losses("worse")
    found = spa(base, arms + 1.0, Seeds(1), reps=200)
    assert found.statistic == 0.0
    assert (found.lower, found.consistent, found.upper) == (1.0, 1.0, 1.0)


def test_arms_that_never_differ_are_certain():
    base, arms = losses("certain")
    same = spa(base, np.column_stack([base, arms + 1.0]), Seeds(1), reps=200)
    assert same.consistent == 1.0
    better = spa(base, np.column_stack([arms, base - 0.1]), Seeds(1), reps=200)
    assert better.best == 10
    assert math.isinf(better.statistic)
    assert better.upper == pytest.approx(1 / 201)
    assert spa(base, base, Seeds(1), reps=50).upper == 1.0


def test_a_better_arm_never_raises_the_p_value():
    base, arms = losses("monotone")
    values = []
    for extra in (0.0, 0.1, 0.2, 0.4):
        better = arms.copy()
        better[:, 0] -= extra
        values.append(spa(base, better, Seeds(1), reps=500, block=2.0).upper)
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.05


def test_neither_unit_nor_common_shift_matters():
    base, arms = losses("law")
    one = spa(base, arms, Seeds(1), reps=200, block=2.0)
    other = spa(1e-4 * (base + 5.0), 1e-4 * (arms + 5.0), Seeds(1), reps=200, block=2.0)
    assert one.statistic == pytest.approx(other.statistic)
    assert (one.lower, one.consistent, one.upper) == (other.lower, other.consistent, other.upper)


def test_what_cannot_be_asked_is_refused():
    base, arms = losses("wrong")
    for ask in (
        lambda: spa(base[1:], arms, Seeds(1)),
        lambda: spa(base, arms, Seeds(1), reps=0),
        lambda: spa(base, arms, Seeds(1), block=0.2),
        lambda: spa(base[:2], arms[:2], Seeds(1)),
        lambda: spa(base, np.full_like(arms, np.nan), Seeds(1)),
    ):
        with pytest.raises(DataError):
            ask()
