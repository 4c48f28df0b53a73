"""Intervals: known coverage, agreement with arch and statsmodels, laws, and the same for a seed."""

import math

import numpy as np
import pytest
from arch.bootstrap import optimal_block_length
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.signal import lfilter
from statsmodels.stats.proportion import proportion_confint

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import (
    Interval,
    block_length,
    bootstrap_interval,
    mean_interval,
    paired_interval,
    seeds_interval,
    wilson,
)
from agent_gym.evaluation.statistics.resampling import fill_path, path_rng

VALUES = hnp.arrays(np.float64, st.integers(2, 60), elements=st.floats(-100.0, 100.0, width=32))
SEED = Seeds(1)


def autoregressive(*names, n, rho, runs=1):
    noise = Seeds(31).child(*names).rng().normal(size=(runs, n + 200))
    return lfilter([1.0], [1.0, -rho], noise, axis=1)[:, 200:]


def paths_of(seeds, n, block, count):
    rng, path = path_rng(seeds), np.empty(n, dtype=np.int64)
    drawn = []
    for _ in range(count):
        fill_path(rng, block, path)
        drawn.append(path.copy())
    return np.array(drawn)


@pytest.mark.parametrize("n", [30, 200, 3_000])
@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.3, 0.9])
def test_block_length_is_that_of_arch(n, rho):
    for values in autoregressive("block", n, n=n, rho=rho, runs=5):
        known = optimal_block_length(values)["stationary"].iloc[0]
        assert block_length(values) == pytest.approx(max(known, 1.0), rel=1e-9)


def test_block_length_at_the_edges():
    assert block_length([1.0, 2.0]) == 1.0
    assert block_length([3.0] * 100) == 1.0
    for n in range(2, 40):
        drawn = autoregressive("edge", n, n=n, rho=0.9)[0]
        assert 1.0 <= block_length(drawn) <= max(n, 1)


@given(VALUES, st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
def test_block_length_depends_on_neither_unit_nor_level(values, scale, shift):
    if np.ptp(values) > 1e-3:
        moved = block_length(scale * values + shift)
        assert moved == pytest.approx(block_length(values), rel=1e-4, abs=1e-6) or _at_a_jump(
            values
        )


def _at_a_jump(values):
    """Return whether a correlation sits on the threshold, where rounding decides."""
    gaps = values - values.mean()
    n = values.size
    limit = 2.0 * math.sqrt(math.log10(n) / n)
    found = []
    for lag in range(1, n - 1):
        scale = math.sqrt((gaps[lag + 1 :] ** 2).sum() * (gaps[: n - lag - 1] ** 2).sum())
        found.append(abs(gaps[lag:] @ gaps[: n - lag]) / scale if scale > 0.0 else 0.0)
    return bool(found) and np.min(np.abs(np.array(found) - limit)) < 1e-6


@pytest.mark.parametrize("block", [1.0, 4.0, 25.0])
def test_paths_are_those_of_a_stationary_bootstrap(block):
    n = 100
    paths = paths_of(Seeds(2), n, block, 2_000)
    assert np.bincount(paths.ravel(), minlength=n) == pytest.approx(2_000, rel=0.35)
    assert paths.min() == 0
    assert paths.max() == n - 1
    stays = np.mean((paths[:, 1:] - paths[:, :-1]) % n == 1)
    # A new block may begin where the old one would have gone on, once in n.
    assert stays == pytest.approx(1.0 - (1.0 / block) * (1.0 - 1.0 / n), abs=0.01)


def test_blocks_wrap_at_the_end():
    assert ((paths_of(Seeds(3), 10, 10.0, 200)[:, 1:] == 0).any(axis=1)).mean() > 0.3


@pytest.mark.parametrize("block", [None, 1.0, 12.5])
def test_both_ways_to_a_mean_take_the_same_paths(block):
    values = autoregressive("ways", n=400, rho=0.6)[0]
    fast = mean_interval(values, SEED, reps=200, block=block)
    slow = bootstrap_interval(np.mean, [values], SEED, reps=200, block=block)
    assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high), abs=1e-12)
    assert fast.estimate == pytest.approx(slow.estimate)


def test_the_same_seed_gives_the_same_bits_and_another_another():
    values = autoregressive("same", n=300, rho=0.5)[0]
    assert mean_interval(values, Seeds(7)) == mean_interval(values, Seeds(7))
    assert mean_interval(values, Seeds(7)) != mean_interval(values, Seeds(8))
    assert seeds_interval(values[:9], Seeds(7)) == seeds_interval(values[:9], Seeds(7))


# Over 3,000 series of 500 values coverage is .945, .913 and .950, and that of arch is the same on
# the same series: where values follow each other the bootstrap itself falls short. The interval of
# a known spread, on the same draws, tells the luck of a draw from a fault.
@pytest.mark.parametrize(("rho", "short"), [(0.0, 0.02), (0.5, 0.06), (-0.5, 0.02)])
def test_intervals_of_dependent_series_cover(rho, short):
    runs, n = 600, 500
    drawn = autoregressive("cover", n=n, rho=rho, runs=runs)
    reach = 1.96 / (1.0 - rho) / math.sqrt(n)
    known = np.mean(np.abs(drawn.mean(axis=1)) <= reach)
    found = [mean_interval(row, SEED.child(i), reps=300) for i, row in enumerate(drawn)]
    held = np.mean([each.holds(0.0) for each in found])
    assert 0.93 <= known <= 0.97
    assert known - short <= held <= known + 0.02
    assert held >= 0.89


def test_forgetting_that_values_depend_does_not_cover():
    drawn = autoregressive("blind", n=500, rho=0.5, runs=300)
    blind = [mean_interval(row, SEED, reps=200, block=1.0).holds(0.0) for row in drawn]
    assert np.mean(blind) < 0.8


def test_an_interval_of_a_sharpe_ratio_covers():
    truth, held = 0.1, 0
    for i, values in enumerate(autoregressive("sharpe", n=200, rho=0.0, runs=200)):
        found = bootstrap_interval(sharpe, [values + truth], SEED.child(i), reps=150)
        held += found.holds(truth)
    assert 0.90 <= held / 200 <= 0.99


def sharpe(values):
    return float(values.mean() / values.std(ddof=1))


def test_series_are_resampled_together():
    a = autoregressive("pair", n=300, rho=0.5)[0]
    b = a + 0.01 * autoregressive("own", n=300, rho=0.0)[0]
    together = bootstrap_interval(lambda x, y: float(np.mean(x - y)), [a, b], SEED, reps=300)
    assert together.high - together.low < 0.01
    assert mean_interval(a, SEED).high - mean_interval(a, SEED).low > 0.2


def test_pairs_are_the_mean_of_the_difference():
    a, b = autoregressive("ab", n=250, rho=0.3, runs=2)
    assert paired_interval(a, b, SEED) == mean_interval(a - b, SEED)
    there, back = paired_interval(a, b, SEED, block=3.0), paired_interval(b, a, SEED, block=3.0)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


@pytest.mark.parametrize("n", [3, 5, 10, 20])
def test_a_few_runs_cover_as_stated(n):
    drawn = Seeds(9).child("runs", n).rng().normal(size=(600, n))
    found = [seeds_interval(row, SEED, reps=1_000).holds(0.0) for row in drawn]
    assert np.mean(found) >= {3: 0.70, 5: 0.88, 10: 0.92, 20: 0.93}[n]
    assert np.mean(found) <= 0.98


def test_plain_percentiles_would_be_too_narrow():
    drawn = Seeds(9).child("runs", 5).rng().normal(size=(600, 5))
    picks = Seeds(10).child("plain").rng().integers(5, size=(1_000, 5))
    ends = np.quantile(drawn[:, picks].mean(axis=2), [0.025, 0.975], axis=1)
    assert np.mean((ends[0] <= 0.0) & (ends[1] >= 0.0)) < 0.87


@settings(max_examples=50)
@given(VALUES, st.floats(-1e3, 1e3), st.floats(0.01, 100.0))
def test_intervals_move_and_stretch_with_the_values(values, shift, scale):
    one = mean_interval(values, SEED, reps=50, block=1.5)
    other = mean_interval(scale * values + shift, SEED, reps=50, block=1.5)
    for name in ("estimate", "low", "high"):
        expected = scale * getattr(one, name) + shift
        assert getattr(other, name) == pytest.approx(expected, rel=1e-9, abs=1e-7 * scale + 1e-9)
    runs = seeds_interval(values, SEED, reps=50)
    assert values.min() - 1e-9 <= runs.low <= runs.high <= values.max() + 1e-9


@settings(max_examples=50)
@given(VALUES, st.floats(0.5, 0.9))
def test_a_higher_level_is_a_wider_interval(values, level):
    narrow = mean_interval(values, SEED, reps=50, level=level)
    wide = mean_interval(values, SEED, reps=50, level=level + 0.05)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


def test_what_does_not_vary_has_an_interval_of_no_width():
    found = mean_interval([2.5] * 30, SEED)
    assert (found.low, found.estimate, found.high) == (2.5, 2.5, 2.5)
    assert seeds_interval([2.5] * 5, SEED).low == 2.5


def test_a_statistic_that_is_not_always_defined_is_refused():
    values = np.zeros(50)
    values[7] = 1.0
    with pytest.raises(DataError, match="not defined"):
        bootstrap_interval(lambda x: x.mean() / x.std() if x.any() else None, [values], SEED)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: mean_interval([1.0], SEED),
        lambda: mean_interval([1.0, math.nan], SEED),
        lambda: mean_interval([[1.0, 2.0]], SEED),
        lambda: mean_interval([1.0, 2.0], SEED, level=95.0),
        lambda: mean_interval([1.0, 2.0], SEED, reps=0),
        lambda: mean_interval([1.0, 2.0], SEED, block=0.5),
        lambda: mean_interval([1.0, 2.0], SEED, block=3.0),
        lambda: paired_interval([1.0, 2.0], [1.0, 2.0, 3.0], SEED),
        lambda: bootstrap_interval(np.mean, [[1.0, 2.0], [1.0, 2.0, 3.0]], SEED),
        lambda: seeds_interval([1.0], SEED),
        lambda: wilson(1, 0),
        lambda: wilson(3, 2),
        lambda: wilson(-1, 2),
        lambda: wilson(1, 2, level=1.0),
    ],
)
def test_what_cannot_be_asked_is_refused(ask):
    with pytest.raises(DataError):
        ask()


@given(st.integers(1, 500), st.floats(0.0, 1.0), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_that_of_statsmodels(n, share, level):
    successes = round(share * n)
    found = wilson(successes, n, level)
    low, high = proportion_confint(successes, n, alpha=1.0 - level, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert 0.0 <= found.low <= found.estimate <= found.high <= 1.0
    assert found.high > found.low


def test_wilson_covers_where_the_plain_interval_does_not():
    drawn = Seeds(12).child("share").rng().binomial(20, 0.05, size=4_000)
    found = [wilson(int(count), 20).holds(0.05) for count in drawn]
    assert np.mean(found) >= 0.9


def test_an_interval_as_plain_values():
    assert Interval(1.0, 0.5, 2.0, 0.9).as_dict() == {
        "estimate": 1.0,
        "low": 0.5,
        "high": 2.0,
        "level": 0.9,
    }
