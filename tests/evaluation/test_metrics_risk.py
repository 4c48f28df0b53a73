"""Figures about risk and evidence: Lo's correction, PSR, VaR exceedances, share of attainable."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation import metrics
from agent_gym.evaluation.figures import FIGURES, FORMULAS
from agent_gym.evaluation.metrics import Metrics, measure
from agent_gym.evaluation.statistics import moments, psr
from agent_gym.exchange.risk import christoffersen, kupiec_pof
from agent_gym.exchange.round_trips import round_trips
from agent_gym.exchange.series import FILL, PAGE, SeriesResult
from agent_gym.markets import Bars, Instrument
from tests.samples import START_NS

PERIODS = {"1m": MINUTE_NS, "1h": HOUR_NS, "1d": DAY_NS}
RISK = ("sharpe_lo", "psr", "var_days", "var_exceedances", "kupiec_p", "christoffersen_p")
RETURNS = hnp.arrays(np.float64, st.integers(0, 120), elements=st.floats(-0.5, 0.5, width=32))


def measured(equity, period_ns=DAY_NS, **more):
    """Return the figures of a curve drawn by hand."""
    equity = np.asarray(equity, dtype=np.float64)
    n = len(equity)
    ts = START_NS + period_ns * np.arange(n)
    bars = Bars(Instrument(), period_ns, ts, *(np.full(n, 100.0),) * 4, np.full(n, 1e9))
    names = ("fees", "slippage", "funding", "insurance", "realised", "fills")
    totals = dict.fromkeys(names, 0.0) | {"equity": float(equity[-1])}
    run = SeriesResult(equity, np.zeros(1, dtype=PAGE), np.empty(0, dtype=FILL), totals)
    return measure(bars, run, round_trips([], [], [], [], []), **more)


def curve(daily, period_ns):
    """Return equity at the closes of bars whose days grow as given, evenly within each day."""
    per_day = DAY_NS // period_ns
    marks = 100.0 * np.exp(np.cumsum(np.repeat(daily / per_day, per_day)))
    return np.concatenate([[100.0], marks])


def daily(*names, n=200, mean=0.001):
    return Seeds(51).child(*names).rng().normal(mean, 0.02, n)


@pytest.mark.parametrize("name", PERIODS)
def test_risk_is_that_of_days_whatever_the_bars(name):
    # One bar more than the days hold, so that on every period the marks at midnight are the same.
    growth = daily("days", n=70 if name == "1m" else 200)
    equity = curve(growth, PERIODS[name])
    start = 0 if name == "1d" else -PERIODS[name]
    n = len(equity)
    ts = START_NS + start + PERIODS[name] * np.arange(n)
    returns, per_year = metrics.risk_returns(ts, PERIODS[name], equity)
    assert returns == pytest.approx(np.expm1(growth))
    assert per_year == 365.0
    found = moments(np.expm1(growth))
    assert metrics.probability_of_skill(returns) == pytest.approx(psr(found))
    factor = metrics.sharpe_lo(returns, per_year) / found.sharpe
    assert factor == pytest.approx(math.sqrt(365.0), rel=0.35)
    assert metrics.var_hits(returns).size == growth.size - 60


@pytest.mark.parametrize("name", PERIODS)
def test_figures_of_a_run_at_every_period(name):
    growth = daily("run", n=70 if name == "1m" else 200)
    found = measured(curve(growth, PERIODS[name]), PERIODS[name])
    assert 0.0 < found.psr < 1.0
    assert found.sharpe_lo == pytest.approx(found.sharpe, rel=0.35)
    assert found.var_days == pytest.approx(growth.size - 60, abs=1)
    assert found.share_of_attainable is None


def test_the_ratio_of_bars_is_a_check_on_that_of_days():
    # Hours that do not depend on each other: x sqrt(8760) on hours, x sqrt(365) on days.
    hours = Seeds(52).child("hours").rng().normal(2e-5, 0.005, 8_760 * 4)
    equity = 100.0 * np.exp(np.cumsum(hours))
    found = measured(equity, HOUR_NS)
    by_hours = metrics.sharpe(metrics.simple_returns(equity), 8_760.0)
    assert found.sharpe == pytest.approx(by_hours, abs=0.1)
    assert found.sharpe_lo == pytest.approx(by_hours, abs=0.2)


def test_trends_make_a_ratio_look_better_than_it_is():
    noise = Seeds(53).child("trend").rng().normal(size=2_001)
    growth = 0.001 + 0.01 * (noise[1:] + 0.8 * noise[:-1])
    found = measured(curve(growth, DAY_NS))
    assert 0.0 < found.sharpe_lo < 0.8 * found.sharpe
    back = measured(curve(0.001 + 0.01 * (noise[1:] - 0.4 * noise[:-1]), DAY_NS))
    assert back.sharpe_lo > 1.3 * back.sharpe


def test_what_is_not_defined_is_none_and_never_zero():
    still = measured(np.full(100, 100.0)).as_dict()
    short = measured([100.0, 101.0]).as_dict()
    lost = measured(np.concatenate([np.full(90, 100.0), np.zeros(10)])).as_dict()
    for found in (still, short, lost):
        assert {name: found[name] for name in RISK} == dict.fromkeys(RISK)


def test_var_needs_sixty_days_of_its_own():
    assert metrics.var_hits(daily("few", n=60)) is None
    assert metrics.var_hits(daily("few", n=61)).size == 1


def test_a_var_is_judged_by_what_was_known_before():
    returns = daily("before", n=300)
    crash = returns.copy()
    crash[200] = -0.5
    hits, after = metrics.var_hits(returns), metrics.var_hits(crash)
    assert after[140]
    assert (hits[:140] == after[:140]).all()  # nothing before the crash knows of it


def test_days_without_a_move_are_left_out():
    returns = daily("idle", n=200)
    idle = np.insert(returns, np.repeat([0, 50, 120], 30), 0.0)
    assert (metrics.var_hits(idle) == metrics.var_hits(returns)).all()


def test_a_fair_account_passes_and_a_sudden_one_fails():
    fair = [metrics.var_hits(daily("fair", i, n=1_060)) for i in range(40)]
    assert np.mean([hits.mean() for hits in fair]) == pytest.approx(0.012, abs=0.005)
    assert np.mean([metrics.kupiec_p(hits) < 0.05 for hits in fair]) <= 0.2
    # Calm days and every fortieth a loss, each larger than the ones before: the past never knows.
    sudden = Seeds(54).child("sudden").rng().normal(0.0, 0.002, 1_060)
    sudden[70::40] = -0.01 * 1.15 ** np.arange(sudden[70::40].size)
    assert metrics.kupiec_p(metrics.var_hits(sudden)) < 0.05


def test_p_values_are_those_of_the_risk_room():
    hits = np.zeros(300, dtype=np.bool_)
    hits[[10, 11, 12, 200]] = True
    assert metrics.kupiec_p(hits) == kupiec_pof(hits, 0.01).p_value
    assert metrics.christoffersen_p(hits) == christoffersen(hits).p_value
    assert metrics.christoffersen_p(hits) < 0.01


def test_without_an_exceedance_nothing_can_follow_one():
    calm = np.zeros(100, dtype=np.bool_)
    assert metrics.christoffersen_p(calm) is None
    assert metrics.kupiec_p(calm) == pytest.approx(kupiec_pof(calm, 0.01).p_value)
    calm[-1] = True  # no day came after it
    assert metrics.christoffersen_p(calm) is None


def test_share_of_the_attainable():
    equity = 100.0 * np.exp(1e-4 * np.arange(101))  # 1 bp a bar
    assert measured(equity, attainable_bps_per_bar=2.0).share_of_attainable == pytest.approx(0.5)
    assert measured(equity, attainable_bps_per_bar=0.0).share_of_attainable is None
    assert measured(equity, attainable_bps_per_bar=-1.0).share_of_attainable is None
    assert measured(equity, attainable_bps_per_bar=math.nan).share_of_attainable is None
    assert measured(equity).share_of_attainable is None
    losing = measured(equity[::-1], attainable_bps_per_bar=2.0)
    assert losing.share_of_attainable == pytest.approx(-0.5)
    assert measured([100.0, 0.0], attainable_bps_per_bar=1.0).share_of_attainable is None


@given(RETURNS, st.floats(1.0, 1e3))
def test_every_risk_figure_is_a_number_or_none(returns, scale):
    equity = scale * np.concatenate([[1.0], np.cumprod(1.0 + returns)])
    found = measured(np.concatenate([equity, equity[-1:]]))
    for name in RISK:
        value = getattr(found, name)
        assert value is None or math.isfinite(value)
    for name in ("psr", "kupiec_p", "christoffersen_p"):
        value = getattr(found, name)
        assert value is None or 0.0 <= value <= 1.0
    if found.var_days is not None:
        assert 0 <= found.var_exceedances <= found.var_days


def test_every_figure_is_shown_and_says_how_it_is_computed():
    shown = {figure.name for figure in FIGURES}
    assert shown == {field.name for field in fields(Metrics)} - {"bars", "years"}
    assert [figure.name for figure in FIGURES if not figure.formula] == []
    assert set(FORMULAS) == {figure.name for figure in FIGURES}
