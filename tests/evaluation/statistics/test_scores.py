"""Scores of runs on tasks: against rliable's own numbers, brute force, laws.

rliable needs an older arch than this package does, so its numbers are kept in ``rliable.json``. To
make them anew: a scratch environment with ``pip install rliable "pandas<3"`` (rliable 1.2.0, arch
7.2.0), and for each case, x and y being ``numpy.random.default_rng(seed)`` draws rounded to 0.1 so
that there are ties; (runs of x, runs of y, tasks, seed) are (5, 5, 1, 1), (10, 7, 6, 2) and
(3, 12, 8, 3):

    x = np.round(rng.standard_t(3, (runs, tasks)) + rng.normal(0, 1, tasks), 1)
    y = np.round(rng.standard_t(3, (other, tasks)) + rng.normal(-0.3, 1, tasks), 1)
    metrics.aggregate_iqm(x), metrics.probability_of_improvement(x, y)
    library.get_interval_estimates({"x": x}, lambda s: np.array([metrics.aggregate_iqm(s)]),
                                   reps=20_000, random_state=np.random.RandomState(0))
    library.get_interval_estimates({"x": (x, y)}, metrics.probability_of_improvement,
                                   reps=4_000, random_state=np.random.RandomState(0))
"""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom, mannwhitneyu, trim_mean

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import (
    iqm,
    iqm_interval,
    probability_of_improvement,
    probability_of_improvement_interval,
)

CASES = json.loads((Path(__file__).parent / "rliable.json").read_text(encoding="utf-8"))
SCORES = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 6), st.integers(1, 4)),
    elements=st.integers(-20, 20).map(float),
)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_estimates_are_those_of_rliable(case):
    assert iqm(case["x"]) == pytest.approx(case["iqm"], rel=1e-12)
    found = probability_of_improvement(case["x"], case["y"])
    assert found == pytest.approx(case["improvement"], rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_intervals_are_those_of_rliable(case):
    found = iqm_interval(case["x"], Seeds(1), reps=20_000)
    low, high = case["iqm_interval"]
    assert found.estimate == pytest.approx(case["iqm"])
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.04 * (high - low))
    found = probability_of_improvement_interval(case["x"], case["y"], Seeds(1), reps=20_000)
    low, high = case["improvement_interval"]
    assert found.estimate == pytest.approx(case["improvement"])
    # Of few runs on one task a quantile jumps by a whole win; see the exact law below.
    step = 1.0 / (len(case["x"]) * len(case["y"]) * len(case["x"][0]))
    slack = max(0.05 * (high - low), step + 1e-9)
    assert (found.low, found.high) == pytest.approx((low, high), abs=slack)


def test_the_interval_of_few_runs_is_that_of_the_exact_law():
    # Only one pair is not won but tied, so a resample loses half a win for each time it comes up.
    x, y = CASES[0]["x"], CASES[0]["y"]
    times = binom(5, 0.2).pmf(np.arange(6))
    values = 1.0 - 0.5 * np.outer(np.arange(6), np.arange(6)).ravel() / 25
    order = np.argsort(values)
    law = np.cumsum(np.outer(times, times).ravel()[order])
    exact = [values[order][np.searchsorted(law, tail)] for tail in (0.025, 0.975)]
    found = probability_of_improvement_interval(x, y, Seeds(1), reps=40_000)
    assert (found.low, found.high) == pytest.approx(exact)


@given(SCORES)
def test_iqm_is_a_trimmed_mean(scores):
    assert iqm(scores) == pytest.approx(trim_mean(scores, 0.25, axis=None))


def test_iqm_does_not_mind_one_wild_run():
    assert iqm([1.0, 2.0, 3.0, 4.0, 1e9]) == pytest.approx(3.0)


@given(SCORES, st.integers(0, 1_000))
def test_improvement_is_the_u_statistic(x, seed):
    y = np.round(Seeds(seed).child("y").rng().normal(0, 10, (4, x.shape[1])))
    expected = np.mean(
        [mannwhitneyu(x[:, k], y[:, k]).statistic / (len(x) * 4) for k in range(x.shape[1])]
    )
    found = probability_of_improvement(x, y)
    assert found == pytest.approx(expected)
    assert found + probability_of_improvement(y, x) == pytest.approx(1.0)
    assert probability_of_improvement(x, x) == 0.5
    assert probability_of_improvement(x + 0.5, y) >= found
    assert probability_of_improvement(3.0 * x + 1.0, 3.0 * y + 1.0) == found


def test_resamples_are_those_of_the_definition():
    rng = Seeds(2).child("brute").rng()
    x, y = rng.normal(0.3, 1.0, (6, 3)), rng.normal(size=(4, 3))
    drawn = []
    for _ in range(4_000):
        ours = np.take_along_axis(x, rng.integers(6, size=(6, 3)), axis=0)
        theirs = np.take_along_axis(y, rng.integers(4, size=(4, 3)), axis=0)
        drawn.append(probability_of_improvement(ours, theirs))
    low, high = np.quantile(drawn, [0.025, 0.975])
    found = probability_of_improvement_interval(x, y, Seeds(3), reps=8_000)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05 * (high - low))


def test_runs_stay_within_their_task():
    # Tasks on scales far apart: across tasks a resample would mix them and the interval explode.
    tasks = np.array([0.0, 1_000.0, 2_000.0, 3_000.0])
    scores = tasks + Seeds(4).child("tasks").rng().normal(size=(10, 4))
    found = iqm_interval(scores, Seeds(1))
    assert found.high - found.low < 2.0


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_an_interval_of_the_iqm_covers(shift):
    held = 0
    for i in range(200):
        scores = shift + Seeds(5).child("cover", i).rng().normal(size=(10, 5))
        held += iqm_interval(scores, Seeds(i), reps=300).holds(shift)
    assert 0.90 <= held / 200 <= 0.99


def test_the_same_seed_gives_the_same_interval():
    x, y = CASES[1]["x"], CASES[1]["y"]
    assert iqm_interval(x, Seeds(1)) == iqm_interval(x, Seeds(1))
    assert iqm_interval(x, Seeds(1)) != iqm_interval(x, Seeds(2))
    one = probability_of_improvement_interval(x, y, Seeds(1))
    assert one == probability_of_improvement_interval(x, y, Seeds(1))


def test_wrong_questions_are_refused():
    for ask in (
        lambda: iqm([]),
        lambda: iqm([np.nan]),
        lambda: iqm_interval([[1.0, 2.0]], Seeds(1)),
        lambda: iqm_interval([1.0, 2.0], Seeds(1), level=2.0),
        lambda: probability_of_improvement(np.ones((3, 2)), np.ones((3, 3))),
        lambda: probability_of_improvement_interval([1.0], [2.0], Seeds(1), reps=0),
    ):
        with pytest.raises(DataError):
            ask()
