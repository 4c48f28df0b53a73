"""Survival: a textbook's figures, a hand-made example, scipy, laws, and planted mistakes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, ecdf, logrank

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.statistics import kaplan_meier, log_rank

# Weeks of remission of leukaemia (Freireich et al. 1963), the example of most textbooks.
TREATED = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
PLACEBO = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"
SIDE = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=2, max_size=6)


def read(text):
    words = text.split()
    return [float(word.rstrip("+")) for word in words], ["+" not in word for word in words]


def censored(times, reached):
    return CensoredData.right_censored(times, ~np.asarray(reached, dtype=bool))


def test_the_curve_of_the_textbook():
    found = kaplan_meier(*read(TREATED))
    assert found.times.tolist() == [6, 7, 10, 13, 16, 22, 23]
    assert found.at_risk.tolist() == [21, 17, 15, 12, 11, 7, 6]
    assert found.share.round(3).tolist() == [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert (found.n, found.censored) == (21, 12)
    assert found.at(5.9) == 1.0
    assert found.at(6.0) == found.at(6.9) == found.share[0]
    assert found.median().estimate == 23.0
    assert kaplan_meier(*read(PLACEBO)).median().as_dict() == {
        "estimate": 8.0,
        "low": 4.0,
        "high": 11.0,
        "level": 0.95,
    }


def test_the_error_of_greenwood_by_hand():
    found = kaplan_meier([1.0, 2.0, 3.0, 4.0], [True, False, True, False], level=0.9)
    # After 1: 3/4 left, variance of log S = 1/(4*3). After 3: 3/8 left, plus 1/(2*1).
    for at, share, variance in ((0, 0.75, 1 / 12), (1, 0.375, 1 / 12 + 1 / 2)):
        reach = 1.6448536269514722 * math.sqrt(variance) / math.log(share)
        assert found.share[at] == pytest.approx(share)
        assert found.low[at] == pytest.approx(share ** math.exp(-reach))
        assert found.high[at] == pytest.approx(share ** math.exp(reach))


def test_what_never_happens_is_not_reached_and_not_left_out():
    none = kaplan_meier([5.0, 9.0], [False, False])
    assert none.times.size == 0
    assert none.at(100.0) == 1.0
    assert none.median().estimate is None
    half = kaplan_meier([5.0, 9.0, 9.0, 9.0], [True, False, False, False])
    assert half.median().estimate is None
    # The mistake this is for: without the censored ones the median would be 5.
    assert kaplan_meier([5.0], [True]).median().estimate == 5.0


def test_log_rank_of_the_textbook():
    found = log_rank(*read(TREATED), *read(PLACEBO))
    assert found.statistic == pytest.approx(16.793, abs=1e-3)
    assert (found.observed, found.expected) == (9, pytest.approx(19.251, abs=1e-3))
    assert found.p_value == pytest.approx(4.17e-5, rel=1e-2)
    assert found.permutation_p < 0.001


def test_log_rank_by_hand():
    found = log_rank([3, 5, 7], [True, True, False], [1, 2, 4], [True, True, True])
    # At 1, 2, 3, 4, 5 the first side is 3/6, 3/5, 3/4, 2/3 and 2/2 of those at risk.
    expected = 1 / 2 + 3 / 5 + 3 / 4 + 2 / 3 + 1
    variance = 1 / 4 + 6 / 25 + 3 / 16 + 2 / 9
    assert found.expected == pytest.approx(expected)
    assert found.statistic == pytest.approx((2 - expected) ** 2 / variance)


def test_the_permutation_counts_every_dealing():
    # The first side has the three earliest of six: of 20 dealings two are as extreme.
    found = log_rank([1, 2, 3], [True] * 3, [7, 8, 9], [True] * 3)
    assert found.permutation_p == pytest.approx(2 / 20)
    assert log_rank([4, 4], [True, True], [4, 4], [True, True]).permutation_p == 1.0


def test_dealings_that_are_too_many_are_drawn_from_the_seeds():
    a, b = (np.arange(12.0), np.full(12, True)), (np.arange(12.0) + 4.0, np.full(12, True))
    first, again, other = (log_rank(*a, *b, seeds=Seeds(k)) for k in (1, 1, 2))
    assert first == again
    assert first.permutation_p != other.permutation_p
    assert first.permutation_p == pytest.approx(first.p_value, abs=0.02)


def test_few_equal_sides_are_rarely_called_different():
    rng, wrong = Seeds(3).child("null").rng(), 0
    for _ in range(400):
        times = np.minimum(rng.exponential(5.0, 10), 8.0)
        seen = times < 8.0
        found = log_rank(times[:5], seen[:5], times[5:], seen[5:])
        wrong += found is not None and found.permutation_p <= 0.05
    assert wrong <= 32  # 20 expected; the chance of more is below 0.005


@pytest.mark.filterwarnings("ignore:The confidence interval is undefined")
@given(SIDE)
def test_the_curve_agrees_with_scipy(side):
    times, reached = zip(*side, strict=True)
    found, peer = kaplan_meier(times, reached), ecdf(censored(times, reached)).sf
    assert found.share == pytest.approx(peer.evaluate(found.times))
    inner = found.share > 0.0
    if inner.any():
        ends = peer.confidence_interval(method="log-log")
        assert found.low[inner] == pytest.approx(ends.low.evaluate(found.times)[inner])
        assert found.high[inner] == pytest.approx(ends.high.evaluate(found.times)[inner])


@given(SIDE, SIDE)
def test_log_rank_agrees_with_scipy_and_does_not_mind_the_order(one, two):
    a, b = (tuple(zip(*side, strict=True)) for side in (one, two))
    found, turned = log_rank(*a, *b), log_rank(*b, *a)
    if found is None:
        assert not any(a[1] + b[1])
        return
    assert found.statistic == pytest.approx(turned.statistic)
    assert found.permutation_p == pytest.approx(turned.permutation_p)
    if found.statistic > 1e-9:
        peer = logrank(censored(*a), censored(*b))
        assert found.statistic == pytest.approx(peer.statistic**2)
        assert found.p_value == pytest.approx(peer.pvalue)


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=20))
def test_without_censoring_it_is_the_plain_share(times):
    found = kaplan_meier(times, [True] * len(times))
    for time, share in zip(found.times, found.share, strict=True):
        assert share == pytest.approx(np.mean(np.asarray(times) > time), abs=1e-9)


def test_what_cannot_be_asked():
    with pytest.raises(DataError, match="says whether"):
        kaplan_meier([1.0, 2.0], [True])
    with pytest.raises(DataError, match="at least 0"):
        kaplan_meier([-1.0], [True])
    with pytest.raises(DataError, match="finite"):
        kaplan_meier([math.nan], [True])
    with pytest.raises(DataError, match="at least 1"):
        kaplan_meier([], [])
    with pytest.raises(DataError, match="out of range"):
        kaplan_meier([1.0], [True], level=1.0)
