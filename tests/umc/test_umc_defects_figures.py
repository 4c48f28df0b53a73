"""Traps of figures: yearly ones, hit rates, settings nobody reads, zeros, and no comparison."""

import math

import numpy as np
import pytest

from agent_gym.core.clock import DAY_NS, HOUR_NS, MINUTE_NS
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.baselines import BASELINES, Arm, compare, reference_arms
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.metrics import calmar, risk_returns, sharpe, sortino
from agent_gym.evaluation.protocol.seeded import SeededPlan, evaluate_seeded
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.exchange.round_trips import round_trips
from agent_gym.markets.periods import bars_per_year
from tests.samples import START_NS, random_bars

DAYS = 60
BUY_HOLD = Ref(use="rules/buy-hold")
CROSS = Ref(use="rules/sma-cross", params={"fast": 6, "slow": 24})


# --- yearly figures ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("period_ns", "bars"), [(MINUTE_NS, 525_600), (HOUR_NS, 8_760), (DAY_NS, 365)]
)
def test_d46_a_year_has_the_bars_of_its_period_on_all_its_days(period_ns, bars):
    assert bars_per_year(period_ns) == bars


def equity_by(period_ns):
    """Return open times and equity of one path of wealth, marked every so often."""
    steps = DAYS * 1_440
    logs = np.cumsum(Seeds(5).rng().normal(2e-6, 5e-4, steps))
    every = period_ns // MINUTE_NS
    marks = np.exp(logs)[every - 1 :: every]
    return START_NS + period_ns * np.arange(marks.size), marks


def test_d46_the_ratio_of_one_path_does_not_hang_on_the_bars_it_is_marked_by():
    found = []
    for period_ns in (MINUTE_NS, HOUR_NS):
        ts, equity = equity_by(period_ns)
        returns, per_year = risk_returns(ts, period_ns, equity)
        assert (returns.size, per_year) == (DAYS, 365.0)
        found.append(sharpe(returns[1:], per_year))
    ts, equity = equity_by(DAY_NS)
    returns, per_year = risk_returns(ts, DAY_NS, equity)
    found.append(sharpe(returns, per_year))
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert found[0] == pytest.approx(found[2], rel=1e-9)
    one_for_all = math.sqrt(252 * 24 * 60)  # the defect, on daily returns
    assert abs(found[2] / math.sqrt(365.0) * one_for_all) > 30.0 * abs(found[2])


def test_d46_ratios_have_no_grain_of_sand_below_them():
    steady = np.full(50, 0.01)
    assert sharpe(steady, 365.0) is None  # the defect: mean / (0 + eps) is a billion
    assert sharpe(np.array([0.01]), 365.0) is None


def test_d46_the_downside_is_of_all_returns_and_calmar_is_yearly():
    returns = np.array([0.02, 0.01, -0.01, 0.03, -0.01, 0.02])
    below = math.sqrt(2 * 0.01**2 / 6)
    assert sortino(returns, 365.0) == pytest.approx(returns.mean() / below * math.sqrt(365.0))
    assert returns[returns < 0].std() < 1e-12  # the defect divides by this
    half = calmar(math.log(1.1), 0.5, 0.2)
    assert half == pytest.approx((1.1**2 - 1.0) / 0.2)
    assert half > 2.0 * 0.1 / 0.2


# --- hit rate ------------------------------------------------------------------------------------


def by_all_trades(qty, price):
    """The defect: winning sells over all trades."""
    entry, wins = 0.0, 0
    for size, paid in zip(qty, price, strict=True):
        if size > 0.0:
            entry = paid
        else:
            wins += paid > entry
    return wins / len(qty)


def test_d47_the_hit_rate_is_of_closed_round_trips():
    qty, price = [1.0, -1.0, 1.0, -1.0, 1.0], [10.0, 12.0, 10.0, 9.0, 8.0]
    bars, fees = np.arange(5), np.zeros(5)
    trips = round_trips(bars, bars, qty, price, fees)
    assert trips.closed.size == 2
    assert trips.hit_rate == 0.5
    assert by_all_trades(qty, price) == 0.2
    always = round_trips(bars[:4], bars[:4], qty[:4], [10.0, 12.0, 10.0, 11.0], fees[:4])
    assert always.hit_rate == 1.0
    assert by_all_trades(qty[:4], [10.0, 12.0, 10.0, 11.0]) == 0.5  # who always wins, wins half


def test_d47_a_trip_that_fees_eat_is_no_hit():
    trips = round_trips([0, 1], [0, 1], [1.0, -1.0], [10.0, 10.1], [0.1, 0.1])
    assert trips.hit_rate == 0.0
    assert trips.closed["gross_pnl"][0] > 0.0


# --- settings that are read, figures that are written --------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"kelly_fraction": 0.01},
        {"var_limit": 0.001},
        {"es_limit": 0.001},
        {"max_drawdown": 0.01},
        {"maker_share": 1.0, "maker_bps": 0.0},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_d45_every_limit_of_the_account_acts(changes):
    bars = random_bars(300, 2, kind="spot", sigma=0.02)
    plain, other = (
        BacktestEngine(config).run(bars, CROSS)
        for config in (BacktestConfig(), BacktestConfig(**changes))
    )
    assert plain.metrics.trades > 4
    assert plain.equity_hash != other.equity_hash


def test_d45_a_fee_that_nobody_would_pay_is_refused():
    with pytest.raises(ValueError, match="changes nothing"):
        BacktestConfig(maker_bps=1.0)


def test_d48_what_was_not_measured_is_none_and_never_zero():
    bars = random_bars(100, 1, kind="spot")
    idle = BacktestEngine().run(bars, Ref(use="rules/flat")).metrics.as_dict()
    for name in ("sharpe", "sortino", "calmar", "hit_rate", "profit_factor", "psr", "cost_share"):
        assert idle[name] is None, name
    assert idle["share_of_attainable"] is None  # nobody knows the optimum of these bars
    assert idle["trades"] == 0  # counted, and none


# --- beside others -------------------------------------------------------------------------------


def test_d50_every_backtest_stands_beside_baselines_of_the_same_costs_and_bars():
    bars = random_bars(400, 3, kind="spot")
    found = compare(BacktestEngine(BacktestConfig(taker_bps=25.0)), bars, CROSS, 1)
    assert [label.split()[0] for label in found.baselines] == [ref.use for ref in BASELINES]
    settings = {run.manifest.config["backtest"]["taker_bps"] for run in found.runs.values()}
    spans = {(run.bars.fingerprint, run.equity.size) for run in found.runs.values()}
    assert settings == {25.0}
    assert len(spans) == 1
    assert set(found.payload()["baselines"]) == set(found.baselines)


def test_d50_an_evaluation_has_nulls_baselines_chance_and_a_count_of_trials(tmp_path):
    registry = TrialRegistry(tmp_path / "trials.jsonl")
    asked = Arm(label="asked", refs=(CROSS,))
    arms = (asked, *reference_arms(allow_short=False)[:3])
    null = Ref(use="known/n1", params={"n_bars": 2_400})
    plan = SeededPlan(market=null, seeds=2, embargo=24, draws=20)
    found = evaluate_seeded(arms, plan, Setting(registry))
    (report,) = found.agents
    assert {gate.name for gate in report.gates} == {"A", "B"}
    assert set(report.versus) == {arm.label for arm in arms if arm.baseline}
    assert (report.p_random is None) == (report.p_unknown is not None)
    assert report.net.low < report.net.estimate < report.net.high
    assert len(registry.trials()) == len(arms)
    again = evaluate_seeded((replaced(asked), *arms[1:]), plan, Setting(registry))
    assert again.agents[0].standing.as_dict() != report.standing.as_dict()


def replaced(arm):
    """Return the arm with another setting: another trial."""
    other = Ref(use=CROSS.use, params={"fast": 7, "slow": 30})
    return arm.model_copy(update={"refs": (other,)})
