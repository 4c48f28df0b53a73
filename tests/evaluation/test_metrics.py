from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation import metrics
from agent_gym.evaluation.metrics import Metrics, measure
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.round_trips import round_trips
from agent_gym.exchange.series import FILL, PAGE, SeriesResult
from agent_gym.markets import Bars, Instrument
from tests.samples import START_NS, flat_bars, random_bars

PERIODS = {"1m": MINUTE_NS, "1h": HOUR_NS, "1d": DAY_NS}
PRICES = hnp.arrays(
    np.float64, st.integers(2, 60), elements=st.floats(1.0, 1e6, allow_nan=False, width=32)
)


def _series(equity: np.ndarray, period_ns: int = HOUR_NS, start_ns: int = START_NS) -> Bars:
    n = len(equity)
    ts = start_ns + period_ns * np.arange(n)
    return Bars(Instrument(), period_ns, ts, *(np.full(n, 100.0),) * 4, np.full(n, 1e9))


def _measured(equity: np.ndarray, period_ns: int = HOUR_NS, **totals: float) -> Metrics:
    """Measure a curve that was drawn by hand, without any fill."""
    names = ("fees", "slippage", "funding", "insurance", "realised", "fills", "max_drawdown")
    run = SeriesResult(
        np.asarray(equity, dtype=np.float64),
        np.zeros(1, dtype=PAGE),
        np.empty(0, dtype=FILL),
        dict.fromkeys(names, 0.0) | {"equity": float(equity[-1])} | totals,
    )
    return measure(_series(equity, period_ns), run, round_trips([], [], [], [], []))


def _bought(bars: Bars, targets: np.ndarray, costs: Costs | None = None) -> Metrics:
    run = run_series(bars, targets, costs or Costs(), AccountRules())
    fills = run.fills
    trips = round_trips(
        fills["bar"], bars.ts[fills["bar"]], fills["qty"], fills["price"], fills["fee"]
    )
    return measure(bars, run, trips)


@pytest.mark.parametrize("name", PERIODS)
def test_the_yearly_growth_comes_from_the_bar_period(name):
    n = 1_001
    equity = 100.0 * np.exp(1e-5 * np.arange(n))
    found = _measured(equity, PERIODS[name])
    bars_a_year = {"1m": 525_600, "1h": 8_760, "1d": 365}[name]
    assert found.growth_bps_per_bar == pytest.approx(0.1)
    assert found.growth_pct_per_year == pytest.approx(1e-3 * bars_a_year)
    assert found.years == pytest.approx(1_000 / bars_a_year)


@pytest.mark.parametrize("name", PERIODS)
def test_sharpe_is_that_of_daily_returns_whatever_the_bars(name):
    days, per_day = 40, DAY_NS // PERIODS[name]
    daily = Seeds(3).child("days").rng().normal(0.002, 0.02, days)
    growth = np.repeat(daily / per_day, per_day)  # spread evenly over the bars of each day
    marks = 100.0 * np.exp(np.cumsum(growth))
    equity = np.concatenate([[100.0], marks]) if per_day == 1 else marks
    found = _measured(equity, PERIODS[name])
    ends = np.concatenate([[100.0], marks[per_day - 1 :: per_day]])
    if per_day > 1:
        ends[0] = equity[0]  # the first bar is only looked at, so the day begins with its equity
    returns = np.diff(ends) / ends[:-1]
    expected = returns.mean() / returns.std(ddof=1) * math.sqrt(365)
    assert found.sharpe == pytest.approx(expected, rel=1e-9)
    assert found.volatility == pytest.approx(returns.std(ddof=1) * math.sqrt(365), rel=1e-9)


def test_minute_bars_are_not_annualised_as_if_each_were_independent():
    # The trap: sqrt(252 * 24 * 60) on a few hundred minutes gives Sharpe ratios of -295.
    equity = 100.0 * np.exp(np.cumsum(Seeds(1).child("m").rng().normal(-1e-4, 1e-4, 900)))
    assert _measured(equity, MINUTE_NS).sharpe is None  # not one whole day


def test_only_whole_days_count():
    equity = 100.0 + np.arange(72.0)
    ts = START_NS + 5 * HOUR_NS + HOUR_NS * np.arange(72)  # 05:00 on day 0 to 05:00 on day 3
    returns, per_year = metrics.risk_returns(ts, HOUR_NS, equity)
    assert per_year == 365.0
    midnights = equity[[18, 42, 66]]  # closes at 24:00
    assert returns == pytest.approx(np.diff(midnights) / midnights[:-1])


def test_bars_of_a_week_are_annualised_by_the_week():
    equity = 100.0 * np.exp(np.cumsum(Seeds(5).child("w").rng().normal(0, 0.03, 60)))
    returns, per_year = metrics.risk_returns(START_NS + np.arange(60), 7 * DAY_NS, equity)
    assert returns.size == 59
    assert per_year == pytest.approx(365 / 7)


def test_a_gap_does_not_shift_the_days():
    hours = np.array([h for h in range(24 * 6) if not 30 <= h < 80])
    ts, equity = START_NS + HOUR_NS * hours, 100.0 + hours
    returns, _ = metrics.risk_returns(ts, HOUR_NS, equity)
    assert returns.size == 6
    assert returns[2] == 0.0  # a day without bars changes nothing


def test_sortino_takes_the_downside_about_zero_over_all_returns():
    returns = np.array([0.02, -0.01, 0.03, -0.02])
    below = math.sqrt((0.01**2 + 0.02**2) / 4)
    assert metrics.sortino(returns, 365.0) == pytest.approx(0.005 / below * math.sqrt(365))
    assert metrics.sortino(np.array([0.01, 0.02]), 365.0) is None


def test_drawdown_and_its_length():
    assert metrics.drawdown(np.array([100.0, 120.0, 90.0, 110.0, 130.0, 125.0])) == (0.25, 3)
    assert metrics.drawdown(np.array([100.0, 80.0, 90.0])) == (pytest.approx(0.2), 2)
    assert metrics.drawdown(np.array([1.0, 2.0, 3.0])) == (0.0, 0)


def test_calmar_is_annualised():
    assert metrics.calmar(math.log(1.1), 0.5, 0.2) == pytest.approx((1.1**2 - 1) / 0.2)
    assert metrics.calmar(0.1, 1.0, 0.0) is None
    assert metrics.calmar(None, 1.0, 0.5) is None
    assert metrics.calmar(10.0, 1e-3, 0.5) is None  # compounds beyond any float


def test_what_is_not_defined_is_none_and_never_zero():
    found = _measured(np.full(100, 100.0))
    assert found.total_return == 0.0
    undefined = ("sharpe", "sortino", "calmar", "cost_share", "hit_rate", "profit_factor")
    assert {name: found.as_dict()[name] for name in undefined} == dict.fromkeys(undefined)


def test_a_lost_account_has_no_growth_but_a_return():
    found = _measured(np.concatenate([np.full(30, 100.0), np.zeros(40)]))
    assert found.total_return == -1.0
    assert found.max_drawdown == 1.0
    assert found.growth_pct_per_year is None
    assert found.sharpe is None


def test_steady_growth_has_no_sharpe():
    assert metrics.sharpe(np.full(50, 0.01), 365.0) is None


def test_hit_rate_counts_closed_round_trips_not_trades():
    prices = np.array([100.0, 100, 100, 110, 110, 110, 100, 100, 100, 100])
    bars = Bars(
        Instrument(), HOUR_NS, START_NS + HOUR_NS * np.arange(10), *(prices,) * 4, np.full(10, 1e9)
    )
    targets = np.array([1.0, 1, 0, 0, 1, 0, 0, 0, 1, 1])
    found = _bought(bars, targets, Costs.free())
    assert found.trades == 5  # in, out, in, out, in
    assert found.round_trips == 2
    assert found.hit_rate == 0.5
    assert found.profit_factor == pytest.approx(1.0, rel=0.2)


def test_costs_are_split_and_shared():
    bars = flat_bars(20)
    targets = (np.arange(20) % 2).astype(np.float64)
    found = _bought(bars, targets, Costs(impact=0.0, participation=None))
    assert found.fees > 0.0
    assert found.slippage == pytest.approx(found.fees * 1.5 / 10.0, rel=1e-3)
    assert found.final_equity == pytest.approx(10_000 - found.fees - found.slippage)
    assert found.cost_share is None  # nothing was earned before costs


def test_cost_share_of_a_profit():
    found = _measured(np.array([100.0, 108.0]), fees=1.5, slippage=0.5)
    assert found.cost_share == pytest.approx(2.0 / 10.0)
    with_funding = _measured(np.array([100.0, 108.0]), fees=1.5, slippage=0.5, funding=2.0)
    assert with_funding.cost_share == pytest.approx(4.0 / 12.0)


def test_turnover_and_exposure_of_one_purchase():
    bars = flat_bars(11)
    found = _bought(bars, np.full(11, 0.5), Costs.free())
    assert found.turnover_per_bar == pytest.approx(0.5 / 10)
    assert found.exposure == pytest.approx(0.5 * 10 / 11)
    assert found.time_in_market == pytest.approx(10 / 11)


def test_funding_shows_in_its_own_account():
    bars = random_bars(200, kind="perpetual", funding=1e-3)
    found = _bought(bars, np.ones(200), Costs.free())
    assert found.funding > 0.0
    assert found.fees == 0.0


@given(PRICES)
def test_every_figure_is_a_number_or_none(equity):
    for value in _measured(equity).as_dict().values():
        assert value is None or math.isfinite(value)


@given(PRICES)
def test_drawdown_is_the_largest_fall_between_any_two_closes(equity):
    depth, length = metrics.drawdown(equity)
    pairs = [1.0 - equity[j] / equity[i] for i in range(len(equity)) for j in range(i, len(equity))]
    assert depth == pytest.approx(max(pairs), abs=1e-15)
    assert 0 <= length < len(equity)


@given(PRICES, st.floats(0.01, 100.0))
def test_figures_do_not_depend_on_the_currency(equity, scale):
    one, other = _measured(equity), _measured(equity * scale)
    assert one.total_return == pytest.approx(other.total_return, abs=1e-9)
    assert one.max_drawdown == pytest.approx(other.max_drawdown, abs=1e-9)
    assert (one.sharpe is None) == (other.sharpe is None)
