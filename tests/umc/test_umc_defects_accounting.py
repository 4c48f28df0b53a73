"""Traps of the account and its figures: reward, cost, size, fills, yearly figures, hit rate."""

import math
from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.clock import MINUTE_NS
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision
from agent_gym.envs import DiscreteTargets, MarketConfig, MarketWorld
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.umc_walk.break_even import break_even
from agent_gym.exchange import AccountRules, Costs, run_series
from tests.samples import START_NS, bars_of, flat_bars, random_bars

BP = 1e-4


def stairs(*opens, kind="spot"):
    """Return bars that open and close at the given prices."""
    price = np.array(opens, dtype=np.float64)
    return bars_of(price, price, price, price, kind=kind)


# --- reward --------------------------------------------------------------------------------------


def played(reward):
    levels = DiscreteTargets(levels=(0.0, 0.75))
    config = MarketConfig(
        actions=levels, reward=reward, episode_bars=100, random_start=False, warmup_bars=0
    )
    world = MarketWorld(config, random_bars(200, 3, kind="spot"))
    world.reset(Seeds(1))
    rewards, equity, cash = [], [world.lanes.state["eq"][0]], []
    for step in range(100):
        rewards.append(world.advance(int(step % 10 > 1)).reward)
        equity.append(world.lanes.state["eq"][0])
        cash.append(world.lanes.state["cash"][0])
    return np.array(rewards), np.array(equity), np.array(cash)


def test_d39_reward_is_the_change_of_equity():
    rewards, equity, cash = played("log_equity")
    assert np.allclose(rewards, np.diff(np.log(equity)), atol=1e-12)
    assert np.abs(rewards).max() < 0.1
    against_cash = (equity[1:] - cash) / cash  # the defect: being invested is the reward
    assert against_cash.max() > 2.0


def test_d39_the_linear_reward_is_of_the_opening_equity():
    rewards, equity, _ = played("pnl")
    assert np.allclose(rewards, np.diff(equity) / equity[0], atol=1e-12)


# --- cost of a position --------------------------------------------------------------------------


def overwritten(fills):
    """The defect: one entry price, that of the last buy."""
    entry, pnl = 0.0, 0.0
    for fill in fills:
        if fill["qty"] > 0.0:
            entry = fill["price"]
        else:
            pnl += -fill["qty"] * (fill["price"] - entry)
    return pnl


def test_d40_a_position_costs_the_average_of_what_was_paid():
    bars = stairs(100, 100, 200, 150, 150)
    wish = np.array([1.0, 2.0, 0.0, 0.0, 0.0])
    run = run_series(bars, wish, Costs.free(), sizing="units")
    assert run.fills["price"].tolist() == [100.0, 200.0, 150.0]
    assert run.totals["realised"] == pytest.approx(0.0, abs=1e-9)
    assert run.equity[-1] == pytest.approx(10_000.0)
    assert overwritten(run.fills) == pytest.approx(-100.0)


def test_d40_the_fee_of_a_buy_belongs_to_the_trip():
    bars = random_bars(300, 2, kind="spot")
    wish = (np.arange(300) // 7 % 2).astype(float)
    wish[-3:] = 0.0
    found = BacktestEngine().run(bars, _Fixed(wish))
    assert found.trips.open_lots.size == 0
    assert found.trips.closed["net_pnl"].sum() == pytest.approx(found.equity[-1] - 10_000.0)
    assert found.trips.closed["gross_pnl"].sum() > found.equity[-1] - 10_000.0


class _Fixed:
    """Holds what it was told, and looks at nothing."""

    name = "fixed"

    def __init__(self, wish):
        self._wish = wish

    def reset(self, start):
        self._bar, self._actions = 0, start.actions

    def act(self, obs):
        from_now = self._wish[self._bar]
        self._bar += 1
        return Decision(self._actions.encode(float(from_now)))

    def observe(self, step):
        pass


# --- size ----------------------------------------------------------------------------------------


def a_tenth_of_cash(n):
    """The defect: buys and sells of a tenth of the cash; returns the share sold after n buys."""
    cash, held = 1.0, 0.0
    for _ in range(n):
        cash, held = 0.9 * cash, held + 0.1 * cash
    return 0.1 * cash / held


def test_d41_a_full_account_can_be_sold_at_once():
    run = run_series(stairs(*[100.0] * 5), np.array([0.95, 0.95, 0.0, 0.0, 0.0]), Costs.free())
    assert run.position.tolist() == [0.0, 95.0, 95.0, 0.0, 0.0]
    assert a_tenth_of_cash(30) < 0.01


def test_d41_buying_and_selling_are_the_same_size():
    bars = stairs(*[100.0] * 4, kind="perpetual")
    wish = np.array([0.5, -0.5, 0.0, 0.0])
    run = run_series(bars, wish, Costs.free())
    assert run.fills["qty"].tolist() == [50.0, -100.0, 50.0]


def test_d42_a_limit_is_a_share_of_equity_and_binds():
    bars = stairs(*[50_000.0] * 4)
    run = run_series(bars, np.full(4, 5.0), Costs.free(), AccountRules(max_leverage=1.0))
    assert run.position.max() == pytest.approx(0.2)  # not the one whole unit, five times the money
    assert run.cash.min() >= -1e-9
    more = run_series(bars, np.full(4, 5.0), Costs.free(), AccountRules(max_leverage=3.0))
    assert more.position.max() == pytest.approx(0.6)


def test_d42_shorts_are_sold_where_they_may_be():
    wish = np.full(4, -1.0)
    assert run_series(stairs(*[100.0] * 4), wish, Costs.free()).position.min() == 0.0
    short = run_series(stairs(*[100.0] * 4, kind="perpetual"), wish, Costs.free())
    assert short.position[-1] == -100.0


def test_d42_lots_and_the_smallest_trade_are_kept():
    bars = random_bars(200, 4, kind="spot")
    grid = bars.instrument.model_copy(update={"lot": 0.5, "min_notional": 500.0})
    wish = Seeds(1).rng().uniform(0.0, 1.0, 200)
    fills = run_series(replace(bars, instrument=grid), wish).fills
    free = run_series(bars, wish).fills
    assert np.allclose(fills["qty"] % 0.5, 0.0)
    assert (np.abs(fills["qty"] * fills["price"]) > 490.0).all()
    assert (np.abs(free["qty"] * free["price"]) < 490.0).any()  # without a grid there are such
    assert not np.allclose(free["qty"] % 0.5, 0.0)


# --- fills ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", [0, 2])
def test_d43_nothing_is_filled_on_the_bar_that_decides(latency):
    bars = random_bars(100, 5, kind="spot")
    wish = np.zeros(100)
    wish[40:] = 1.0
    run = run_series(bars, wish, Costs.free().model_copy(update={"latency_bars": latency}))
    (fill,) = run.fills
    assert fill["bar"] == 41 + latency
    assert fill["price"] == bars.open[41 + latency]
    assert fill["price"] != bars.close[40]  # what the defect would have paid


def test_d43_a_perfect_guess_of_the_deciding_bar_earns_nothing():
    """Whoever fills at the close it saw earns the move it saw; at the next open it is gone."""
    bars = random_bars(2_000, 6, kind="perpetual")
    seen = np.sign(bars.close - bars.open)
    honest = run_series(bars, seen, Costs.free()).equity[-1] / 10_000.0
    moved = bars.close / bars.open - 1.0
    cheat = float(np.prod(1.0 + seen * moved))
    assert cheat > 100.0
    assert honest < 3.0


def test_d43_spread_slippage_and_impact_are_paid():
    wish = np.array([1.0, 1.0, 0.0, 0.0])
    quiet = flat_bars(4)
    wide = replace(quiet, extra={"spread": np.full(4, 1.0)})
    base = Costs(impact=0.0, participation=None)
    price = {
        name: run_series(bars, wish, costs).fills["price"][0]
        for name, bars, costs in (
            ("plain", quiet, base),
            ("wide", wide, base),
            ("slow", quiet, base.model_copy(update={"slippage_bps": 20.0})),
            ("heavy", random_bars(4, 1, kind="spot", volume=500.0), Costs(participation=None)),
        )
    }
    assert price["plain"] == pytest.approx(100.0 * (1.0 + 1.5 * BP))
    assert price["wide"] == pytest.approx(100.0 + 0.5 + 0.01, abs=1e-3)
    assert price["slow"] == pytest.approx(100.0 * (1.0 + 20.5 * BP))
    heavy = random_bars(4, 1, kind="spot", volume=500.0)
    assert price["heavy"] > heavy.open[1] * (1.0 + 5.0 * BP)


# --- costs against the horizon -------------------------------------------------------------------


def minutes(n=4_000, sigma=7.5 * BP):
    bars = random_bars(n, 7, kind="spot", sigma=sigma)
    return replace(bars, period_ns=MINUTE_NS, ts=START_NS + MINUTE_NS * np.arange(n))


def two_of_three(n):
    """Return targets that trade on two of three bars: in, out, rest."""
    return (np.arange(n) % 3 == 0).astype(float)


def test_d44_trading_two_of_three_minutes_at_eleven_points_is_ruin():
    bars, fee = minutes(), Costs.fees_only(11.0)
    paid = run_series(bars, two_of_three(len(bars)), fee)
    free = run_series(bars, two_of_three(len(bars)), Costs.free())
    assert len(paid.fills) == pytest.approx(2.0 / 3.0 * len(bars), rel=0.01)
    lost = math.log(free.equity[-1] / paid.equity[-1])
    assert lost == pytest.approx(len(paid.fills) * 11.0 * BP, rel=0.01)  # 2.93 nats: the figure
    assert paid.equity[-1] < 0.1 * 10_000.0
    assert free.equity[-1] > 0.8 * 10_000.0


def test_d44_the_sheet_says_so_before_anything_is_learned():
    bars = minutes()
    sheet = {row.bars: row for row in break_even(bars.close, bars.period_ns, 11.0)}
    assert sheet[1].round_trip_bp == 22.0
    assert sheet[1].move_bp == pytest.approx(7.5 * math.sqrt(2.0 / math.pi), rel=0.1)
    assert sheet[1].skill > 3.0  # a correlation above 1: nobody can
    assert sheet[168].skill < 1.0
    assert sheet[1].trades_per_day == 1_440.0


def test_d44_a_round_trip_costs_what_was_said():
    run = run_series(flat_bars(5), np.array([1.0, 0.0, 0.0, 0.0, 0.0]), Costs.fees_only(11.0))
    bought = 10_000.0 / (1.0 + 11.0 * BP)
    assert run.equity[-1] == pytest.approx(10_000.0 - 2.0 * 11.0 * BP * bought, rel=1e-6)
