"""Sharpe ratios and their error: the papers' own numbers, closed forms, laws, simulations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.tsa.stattools import acf

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import (
    Moments,
    dsr,
    expected_max_sharpe,
    lo_factor,
    lo_factor_of,
    min_track_record,
    moments,
    psr,
)

RETURNS = hnp.arrays(np.float64, st.integers(3, 80), elements=st.floats(-0.25, 0.25, width=32))
RATIOS = st.floats(-0.5, 0.5)


def record(sharpe, n, skew=0.0, kurtosis=3.0):
    return Moments(n=n, mean=sharpe, sd=1.0, skew=skew, kurtosis=kurtosis)


def normal(*names, size, mean=0.0):
    return mean + Seeds(11).child(*names).rng().normal(size=size)


# Bailey and Lopez de Prado 2012, "The Sharpe Ratio Efficient Frontier": two years of months with a
# monthly ratio of .458; what looks like 98.2% is 91.3% once skew and kurtosis are counted.
def test_psr_of_the_paper():
    assert psr(record(0.458, 24)) == pytest.approx(0.982, abs=5e-4)
    assert psr(record(0.458, 24, -2.448, 10.164)) == pytest.approx(0.913, abs=5e-4)


# The same paper: years until a yearly ratio of 2 is above 1 with 95%, by frequency and by moments.
@pytest.mark.parametrize(
    ("a_year", "skew", "kurtosis", "years"),
    [(252, 0.0, 3.0, 2.73), (52, 0.0, 3.0, 2.83), (12, 0.0, 3.0, 3.24), (12, -0.72, 5.78, 4.99)],
)
def test_track_record_of_the_paper(a_year, skew, kurtosis, years):
    found = record(2.0 / a_year**0.5, 24, skew, kurtosis)
    assert min_track_record(found, 1.0 / a_year**0.5) / a_year == pytest.approx(years, abs=5e-3)


# Bailey and Lopez de Prado 2014, "The Deflated Sharpe Ratio": five years of days, yearly ratio 2.5,
# variance of the trials' yearly ratios 1/2.
def test_dsr_of_the_paper():
    a_day = 0.5 / 250
    assert expected_max_sharpe(100, a_day) == pytest.approx(0.1132, abs=5e-5)
    picked = record(2.5 / 250**0.5, 1_250, -3.0, 10.0)
    assert dsr(picked, 100, a_day) == pytest.approx(0.9004, abs=5e-5)
    assert dsr(picked, 46, a_day) == pytest.approx(0.9505, abs=5e-5)
    assert dsr(record(2.5 / 250**0.5, 1_250), 88, a_day) == pytest.approx(0.9505, abs=5e-5)


def test_a_yearly_ratio_beside_a_count_of_days_is_another_number():
    # The trap of copies in the wild: everything looks certain.
    wrong = dsr(record(2.5, 1_250, -3.0, 10.0), 100, 0.5)
    assert wrong > 0.99
    assert dsr(record(2.5 / 250**0.5, 1_250, -3.0, 10.0), 100, 0.5 / 250) < 0.91


@pytest.mark.parametrize(
    ("trials", "expected"), [(10, 1.57), (20, 1.87), (100, 2.51), (1000, 3.24)]
)
def test_the_best_of_many_is_as_good_as_in_simulation(trials, expected):
    # The expected maximum of normal draws; the formula is an approximation from above.
    drawn = normal("best", trials, size=(2_000, trials)).max(axis=1).mean()
    assert drawn == pytest.approx(expected, abs=0.06)
    assert expected <= expected_max_sharpe(trials, 1.0) <= expected + 0.05


def test_one_trial_selects_nothing():
    assert expected_max_sharpe(1, 4.0) == 0.0
    picked = record(0.1, 500, -1.0, 5.0)
    assert dsr(picked, 1, 4.0) == psr(picked)


def test_moments_are_those_of_scipy():
    returns = stats.t(4).rvs(500, random_state=Seeds(2).child("t").rng())
    found = moments(returns)
    assert found.n == 500
    assert found.sd == pytest.approx(returns.std(ddof=1))
    assert found.skew == pytest.approx(stats.skew(returns))
    assert found.kurtosis == pytest.approx(stats.kurtosis(returns, fisher=False))
    assert found.sharpe == pytest.approx(returns.mean() / returns.std(ddof=1))


def test_what_does_not_vary_has_no_moments():
    assert moments([]) is None
    assert moments([0.1]) is None
    assert moments([0.1] * 50) is None
    assert moments([0.0] * 50) is None
    assert psr(Moments(n=10, mean=1.0, sd=1.0, skew=1.0, kurtosis=1.0)) is None


def test_no_length_shows_what_is_not_there():
    assert min_track_record(record(0.1, 100), 0.1) is None
    assert min_track_record(record(-0.1, 100)) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_are_not_are_refused(bad):
    with pytest.raises(DataError, match="finite"):
        moments([0.1, bad, 0.2])


def test_wrong_questions_are_refused():
    with pytest.raises(DataError, match="trial"):
        expected_max_sharpe(0, 1.0)
    with pytest.raises(DataError, match="variance"):
        expected_max_sharpe(5, -1.0)
    with pytest.raises(DataError, match="confidence"):
        min_track_record(record(0.1, 10), confidence=95.0)


def test_a_record_as_long_as_asked_for_reaches_the_confidence():
    found = record(0.1, 10, -1.0, 6.0)
    n = min_track_record(found, 0.02, 0.9)
    assert psr(record(0.1, n, -1.0, 6.0), 0.02) == pytest.approx(0.9)


@pytest.mark.parametrize("law", ["normal", "skewed"])
def test_psr_is_a_probability_that_holds(law):
    # Without skill the PSR is uniform, so one in twenty is above .95; skewed returns included.
    rng = Seeds(4).child(law).rng()
    size = (4_000, 250)
    drawn = rng.normal(size=size) if law == "normal" else 1.0 - rng.exponential(size=size)
    found = np.array([psr(moments(row)) for row in drawn])
    assert np.mean(found > 0.95) == pytest.approx(0.05, abs=0.012)
    assert np.mean(found < 0.05) == pytest.approx(0.05, abs=0.02)


def test_dsr_holds_for_the_best_of_many_where_psr_does_not():
    trials = 20
    drawn = Seeds(5).child("best").rng().normal(size=(300, 250, trials))
    ratios = drawn.mean(axis=1) / drawn.std(axis=1, ddof=1)
    naive = deflated = 0
    for run, each in zip(drawn, ratios, strict=True):
        best = moments(run[:, int(np.argmax(each))])
        naive += psr(best) > 0.95
        deflated += dsr(best, trials, float(each.var(ddof=1))) > 0.95
    assert naive / 300 > 0.5  # selection makes luck look like skill
    assert deflated / 300 < 0.05


@given(RETURNS, st.floats(1e-3, 1e3))
def test_ratios_do_not_depend_on_the_unit(returns, scale):
    one, other = moments(returns), moments(returns * scale)
    assert (one is None) == (other is None)
    if one is not None and one.sd > 1e-6:
        assert other.sharpe == pytest.approx(one.sharpe, rel=1e-6, abs=1e-9)
        assert other.kurtosis == pytest.approx(one.kurtosis, rel=1e-6)


@given(RATIOS, RATIOS, st.integers(5, 5_000))
def test_psr_falls_with_the_benchmark_and_turns_about(sharpe, benchmark, n):
    found = record(sharpe, n, -0.5, 4.0)
    assert psr(found, benchmark) <= psr(found, benchmark - 0.01)
    assert psr(found, sharpe) == pytest.approx(0.5)


@given(st.floats(0.01, 0.5), st.integers(5, 1_000), st.integers(2, 500))
def test_more_trials_and_less_time_say_less(sharpe, n, trials):
    assert dsr(record(sharpe, n), trials, 0.01) >= dsr(record(sharpe, n), trials + 1, 0.01)
    assert psr(record(sharpe, n)) <= psr(record(sharpe, n + 1))
    assert dsr(record(sharpe, n), trials, 0.01) >= dsr(record(sharpe, n), trials, 0.02)


@given(RETURNS)
def test_psr_of_real_moments_is_a_probability(returns):
    found = moments(returns)
    if found is not None:
        value = psr(found)
        assert value is None or 0.0 <= value <= 1.0


# Lo 2002, "The Statistics of Sharpe Ratios": a monthly ratio to a yearly one, AR(1) returns; 2.88
# in place of 3.46 where months are correlated by a fifth. And the closed form for any AR(1).
@pytest.mark.parametrize(("rho", "factor"), [(0.0, 3.46), (0.2, 2.88), (-0.2, 4.17)])
def test_lo_factor_of_the_paper(rho, factor):
    assert lo_factor_of([rho**k for k in range(1, 12)], 12.0) == pytest.approx(factor, abs=5e-3)


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.1, 0.5, 0.9])
def test_lo_factor_in_closed_form(rho):
    found = lo_factor_of([rho**k for k in range(1, 12)], 12.0)
    closed = 1.0 + 2.0 * rho / (1.0 - rho) * (1.0 - (1.0 - rho**12) / (12.0 * (1.0 - rho)))
    assert found == pytest.approx(math.sqrt(12.0 / closed))


def test_lo_factor_uses_the_correlations_of_statsmodels():
    returns = normal("lo", size=800)
    returns[1:] += 0.3 * returns[:-1]
    known = acf(returns, nlags=6, fft=False)[1:]  # int(4 * 8 ** (2 / 9)) == 6
    assert lo_factor(returns, 365.0) == pytest.approx(lo_factor_of(list(known), 365.0))


def test_the_correction_is_right_for_returns_that_follow_each_other():
    # The truth: the ratio of yearly sums, from very many of them.
    rng, years = Seeds(6).child("years").rng(), 3_000
    noise = rng.normal(size=years * 52 + 1)
    returns = 0.05 + noise[1:] + 0.5 * noise[:-1]
    sums = returns.reshape(years, 52).sum(axis=1)
    truth = sums.mean() / sums.std(ddof=1)
    a_week = moments(returns).sharpe
    assert a_week * lo_factor(returns, 52.0) == pytest.approx(truth, rel=0.04)
    assert a_week * math.sqrt(52.0) > 1.2 * truth


def test_lo_factor_is_none_where_nothing_is_left():
    assert lo_factor_of([-0.6], 365.0) is None  # more is given back than was won
    assert lo_factor([3.0, -1.0, -1.0, -1.0] * 12, 365.0) is None
    assert lo_factor([0.1] * 50, 365.0) is None
    assert lo_factor([0.1], 365.0) is None
    assert lo_factor([0.1, 0.2, 0.4], 0.5) == pytest.approx(math.sqrt(0.5))
