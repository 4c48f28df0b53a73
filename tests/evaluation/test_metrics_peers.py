"""The figures beside those of empyrical-reloaded and quantstats, wherever definitions coincide.

Every field of ``Metrics`` is either in the table of equals or in that of reasons. Peers count 252
days a year unless told; they are given 365. Drawdown, return and growth are of every bar, so peers
get the returns of bars; ratios and volatility are of days, so they get those of days.
"""

import math
from dataclasses import fields
from pathlib import Path

import empyrical
import numpy as np
import pandas as pd
import pytest
import quantstats.stats as quantstats

from agent_gym.core.clock import DAY_NS, HOUR_NS
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.metrics import Metrics, measure, risk_returns, simple_returns
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.round_trips import round_trips
from agent_gym.markets import Bars, Instrument
from agent_gym.markets.periods import bars_per_year
from agent_gym.markets.readers import ReadRequest, read_bars
from agent_gym.markets.repair import RepairPolicy
from tests.samples import START_NS

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
# Peers' numbers from returns of days, returns of bars, and bars a year.
EQUAL = {
    "volatility": lambda d, b, y: (
        empyrical.annual_volatility(d, annualization=365),
        quantstats.volatility(d, periods=365),
    ),
    "sharpe": lambda d, b, y: (
        empyrical.sharpe_ratio(d, annualization=365),
        quantstats.sharpe(d, periods=365),
    ),
    "sortino": lambda d, b, y: (
        empyrical.sortino_ratio(d, annualization=365),
        quantstats.sortino(d, periods=365),
    ),
    "max_drawdown": lambda d, b, y: (-empyrical.max_drawdown(b), -quantstats.max_drawdown(b)),
    "total_return": lambda d, b, y: (empyrical.cum_returns_final(b), quantstats.comp(b)),
    "growth_pct_per_year": lambda d, b, y: (
        1e2 * math.log1p(empyrical.annual_return(b, annualization=y)),
        1e2 * math.log1p(quantstats.cagr(b, periods=y)),
    ),
    "growth_bps_per_bar": lambda d, b, y: (
        1e4 * math.log1p(empyrical.cum_returns_final(b)) / len(b),
    ),
    "calmar": lambda d, b, y: (
        empyrical.calmar_ratio(b, annualization=y),
        quantstats.calmar(b, periods=y),
    ),
}
# Equal but for a known difference in definition, which the tolerance covers.
NEAR = {
    # quantstats takes pandas' unbiased skew and kurtosis, which differ by order 1 / n.
    "psr": (lambda d, b, y: quantstats.probabilistic_sharpe_ratio(d), 2e-3),
}
OTHER = {
    "bars": "a count of input",
    "years": "a count of input",
    "final_equity": "money; peers know returns only",
    "max_drawdown_days": "quantstats counts calendar days of the drawdown that its table lists, "
    "without the peak; compared below",
    "turnover_per_bar": "needs fills",
    "exposure": "quantstats counts days with a return, rounded up to a percent, not position size",
    "time_in_market": "as exposure: closes with a position here, days with a return there",
    "fees": "needs fills",
    "slippage": "needs fills",
    "funding": "needs fills",
    "cost_share": "needs fills",
    "trades": "needs fills",
    "liquidations": "needs fills",
    "round_trips": "needs fills",
    "hit_rate": "quantstats' win rate is of days, here of closed round trips",
    "profit_factor": "quantstats' is of days, here of closed round trips",
    "sharpe_lo": "quantstats' smart_sharpe takes the size of the first correlation alone, so it "
    "punishes reversal as well; checked against Lo's closed form and statsmodels instead",
    "var_days": "peers have no causal VaR",
    "var_exceedances": "peers have no causal VaR",
    "kupiec_p": "not in peers; checked in the exchange room",
    "christoffersen_p": "not in peers; checked in the exchange room",
    "share_of_attainable": "not in peers",
}


def traded(bars, targets):
    run = run_series(bars, targets, Costs(), AccountRules())
    fills = run.fills
    trips = round_trips(
        fills["bar"], bars.ts[fills["bar"]], fills["qty"], fills["price"], fills["fee"]
    )
    return run, measure(bars, run, trips)


def synthetic(period_ns, n):
    moves = Seeds(61).child("peers").rng().standard_t(5, n) * 0.004
    close = 100.0 * np.exp(np.cumsum(moves))
    opened = np.concatenate([[100.0], close[:-1]])
    high, low = np.maximum(opened, close), np.minimum(opened, close)
    ts = START_NS + period_ns * np.arange(n)
    return Bars(Instrument(), period_ns, ts, opened, high, low, close, np.full(n, 1e9))


def real():
    path = DATA / "BTCUSDT_spot_1h_2018-2024.parquet"
    if not path.exists():
        pytest.skip(f"no data at {path}")
    return read_bars(path, request=ReadRequest(repair=RepairPolicy(gaps="fill")))


MARKETS = {
    "days": lambda: synthetic(DAY_NS, 900),
    "hours": lambda: synthetic(HOUR_NS, 24 * 200),
    "bitcoin": real,
}


@pytest.fixture(scope="module", params=MARKETS)
def case(request):
    bars = MARKETS[request.param]()
    # Long over a slow average, else flat: trades, drawdowns and idle days.
    sums = np.cumsum(np.insert(bars.close, 0, 0.0))
    slow = np.minimum(np.arange(1, len(bars) + 1), 100)
    average = (sums[1:] - sums[1:][np.arange(len(bars)) - slow + 1] + bars.close) / slow
    run, found = traded(bars, (bars.close > average).astype(np.float64))
    assert found.trades > 10
    daily, _ = risk_returns(bars.ts, bars.period_ns, run.equity)
    by_bar = simple_returns(run.equity)
    days = pd.Series(daily, pd.date_range("2020-01-01", periods=daily.size, freq="D"))
    step = pd.Timedelta(bars.period_ns, "ns")
    each = pd.Series(by_bar, pd.date_range("2020-01-01", periods=by_bar.size, freq=step))
    return found, days, each, bars_per_year(bars.period_ns), run


def test_no_figure_is_left_out():
    named = [*EQUAL, *NEAR, *OTHER]
    assert sorted(named) == sorted(field.name for field in fields(Metrics))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EQUAL)
def test_figures_equal_those_of_peers(case, name):
    found, days, each, per_year, _ = case
    for peer in EQUAL[name](days, each, per_year):
        assert getattr(found, name) == pytest.approx(float(peer), rel=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NEAR)
def test_figures_are_near_those_of_peers(case, name):
    found, days, each, per_year, _ = case
    of, tolerance = NEAR[name]
    assert getattr(found, name) == pytest.approx(float(of(days, each, per_year)), abs=tolerance)


@pytest.mark.filterwarnings("ignore")
def test_the_length_of_the_deepest_drawdown_is_that_of_quantstats():
    bars = synthetic(DAY_NS, 900)
    run, found = traded(bars, np.ones(900))
    each = pd.Series(simple_returns(run.equity), pd.date_range("2020-01-01", periods=899, freq="D"))
    listed = quantstats.drawdown_details(quantstats.to_drawdown_series(each))
    deepest = listed.loc[listed["max drawdown"].idxmin()]
    assert -deepest["max drawdown"] == pytest.approx(100.0 * found.max_drawdown)
    # Theirs runs from the first to the last day below the peak, ours from peak to recovery.
    assert abs(deepest["days"] - found.max_drawdown_days) <= 1
