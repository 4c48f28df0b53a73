"""The smallest trade: what is just large enough trades, what is too small is dropped and named."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from venue_samples import SYMBOL, limit, market, stop

from agent_gym.core import Seeds
from agent_gym.envs import ContinuousTargets, MarketConfig, MarketVectorEnv
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.portfolio import run_portfolio
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of, random_bars

DROPPED = (OrderStatus.CANCELLED, DropReason.TOO_SMALL)


def free(**changes):
    return Costs.free().model_copy(update=changes)


def with_minimum(bars, least, lot=0.0):
    grid = bars.instrument.model_copy(update={"min_notional": least, "lot": lot})
    return replace(bars, instrument=grid)


def opening_at(*prices, least=10.0, volume=1e6):
    price = np.array(prices, dtype=float)
    bars = bars_of(price, price + 1.0, 0.9 * price, price, volume=volume, kind="perpetual")
    return with_minimum(bars, least)


def outcome(venue, number):
    placed = venue.order(number)
    return placed.status, placed.reason


@pytest.mark.parametrize(
    "order",
    [
        limit(0.1, 100.0),
        limit(-0.1, 100.0),
        market(0.1),
        stop(0.1, 100.0),
        Order(SYMBOL, OrderKind.TARGET, 0.1),
    ],
)
def test_an_order_of_exactly_the_smallest_trade_fills(order):
    venue = Venue([opening_at(*[100.0] * 4)], free())
    number = venue.submit(order)
    assert [abs(trade.qty) for trade in venue.advance()] == [0.1]
    assert outcome(venue, number) == (OrderStatus.FILLED, None)


def test_a_target_of_exactly_the_smallest_trade_fills_in_a_series():
    bars = opening_at(*[100.0] * 4)
    assert run_series(bars, np.full(4, 0.001), free()).fills["qty"].tolist() == [0.1]


def test_a_limit_that_was_taken_also_fills_where_the_market_opened_below_it():
    venue = Venue([opening_at(100.0, 95.0, 95.0)], free())
    number = venue.submit(limit(0.1, 100.0))
    assert [trade.price for trade in venue.advance()] == [95.0]
    assert outcome(venue, number) == (OrderStatus.FILLED, None)


@pytest.mark.parametrize("order", [market(0.05), market(-0.05), market(0.05, immediate=True)])
def test_a_market_order_below_the_smallest_trade_is_dropped_at_once(order):
    venue = Venue([opening_at(100.0, 100.0, 100.0, 300.0, 300.0)], free())
    number = venue.submit(order)
    assert venue.advance() == []
    assert outcome(venue, number) == DROPPED
    assert venue.open_orders() == []
    assert [venue.advance() for _ in range(3)] == [[], [], []]


def test_a_stop_that_gapped_below_the_smallest_trade_is_dropped():
    venue = Venue([opening_at(100.0, 80.0, 300.0, 300.0)], free())
    number = venue.submit(stop(-0.1, 100.0))
    assert venue.advance() == []
    assert outcome(venue, number) == DROPPED
    assert [venue.advance() for _ in range(2)] == [[], []]


def test_a_reducing_market_order_below_the_smallest_trade_is_dropped_unless_it_closes():
    venue = Venue([opening_at(100.0, 100.0, 10.0, 300.0, 300.0)], free())
    venue.submit(market(0.2))
    venue.advance()
    half = venue.submit(market(-0.1, reduce_only=True))
    assert venue.advance() == []
    assert outcome(venue, half) == DROPPED
    number = venue.submit(market(-0.2, reduce_only=True))
    assert [trade.qty for trade in venue.advance()] == [-0.2]
    assert outcome(venue, number) == (OrderStatus.FILLED, None)


def test_a_small_reducing_limit_waits():
    venue = Venue([opening_at(*[100.0] * 4)], free())
    venue.submit(market(0.2))
    venue.advance()
    number = venue.submit(limit(-0.05, 100.5, reduce_only=True))
    assert venue.advance() == []
    assert venue.order(number).status is OrderStatus.OPEN


def test_what_a_thin_bar_leaves_over_rests():
    bars = opening_at(*[100.0] * 6, volume=1.0)
    for order in (market(0.25), Order(SYMBOL, OrderKind.TARGET, 0.25)):
        venue = Venue([bars], free(participation=0.1))
        number = venue.submit(order)
        assert [trade.qty for trade in venue.advance()] == [0.1]
        assert venue.order(number).status is OrderStatus.OPEN
        assert [trade.qty for trade in venue.advance()] == [0.1]
        venue.advance()
        placed = venue.order(number)
        assert (placed.status, placed.reason) == (OrderStatus.PARTIAL, DropReason.TOO_SMALL)
        assert placed.filled == pytest.approx(0.2)


def test_a_bar_without_volume_drops_nothing_that_is_large_enough():
    bars = opening_at(*[100.0] * 4)
    volume = bars.volume.copy()
    volume[1] = 0.0
    bars = replace(bars, volume=volume)
    venue = Venue([bars], free(participation=0.1))
    numbers = [venue.submit(order) for order in (market(1.0), limit(1.0, 101.0))]
    assert venue.advance() == []
    assert [len(venue.advance()) for _ in range(2)] == [2, 0]
    assert [outcome(venue, n)[0] for n in numbers] == [OrderStatus.FILLED] * 2
    assert run_series(bars, np.full(4, 0.1), free(participation=0.1)).position[-1] == 10.0


def test_a_target_below_the_smallest_trade_never_fires_later():
    bars = opening_at(100.0, 100.0, 100.0, 100.0, 130.0, 130.0, 130.0)
    wish = np.full(7, 0.0009)
    assert len(run_series(bars, wish, free()).fills) == 0
    assert len(run_portfolio([bars], wish[:, None], free()).trades) == 0
    env = MarketVectorEnv(2, bars, config=config_of(free(), AccountRules()))
    env.reset(seed=0)
    for _ in range(6):
        env.step(np.full((2, 1), 0.0009))
    assert env.lanes.state["pos"].tolist() == [0.0, 0.0]
    venue = Venue([bars], free())
    number = venue.submit(Order(SYMBOL, OrderKind.TARGET, 0.09))
    assert [venue.advance() for _ in range(6)] == [[]] * 6
    assert outcome(venue, number) == DROPPED


def test_a_new_decision_after_a_dropped_target_trades():
    bars = opening_at(100.0, 100.0, 100.0, 100.0, 130.0, 130.0)
    wish = np.array([0.0009, 0.0009, 0.002, 0.002, 0.0021, 0.0])
    result = run_series(bars, wish, free())
    assert result.fills["bar"].tolist() == [3]


def config_of(costs, rules):
    return MarketConfig(
        actions=ContinuousTargets(),
        episode_bars=None,
        random_start=False,
        warmup_bars=0,
        features=(),
        costs=costs,
        account=rules,
    )


@settings(max_examples=40, deadline=None)
@example(seed=138, least=0.0, lot=0.0, latency=0, participation=None, kind="perpetual")
@given(
    seed=st.integers(0, 1000),
    least=st.sampled_from([0.0, 150.0, 700.0]),
    lot=st.sampled_from([0.0, 0.5]),
    latency=st.integers(0, 2),
    participation=st.sampled_from([None, 1e-5, 3e-6]),
    kind=st.sampled_from(["spot", "perpetual"]),
)
def test_all_doors_agree_on_the_smallest_trade(seed, least, lot, latency, participation, kind):
    bars = with_minimum(random_bars(60, seed, kind=kind, sigma=0.04), least, lot)
    costs = Costs(latency_bars=latency, participation=participation)
    rules = AccountRules(max_leverage=2.0)
    rng = Seeds(seed).child("targets").rng()
    walk = np.cumsum(rng.normal(0.0, 0.05, 60)) * (rng.random(60) < 0.9)
    fractions = np.clip(walk, -1.0, 1.0)  # as the environment does; seed 138 walks further
    whole = run_series(bars, fractions, costs, rules)
    several = run_portfolio([bars], fractions[:, None], costs, rules)
    assert several.equity.tobytes() == whole.equity.tobytes()
    env = MarketVectorEnv(2, bars, config=config_of(costs, rules))
    env.reset(seed=0)
    for t in range(59):
        env.step(np.full((2, 1), fractions[t]))
        assert env.lanes.state["eq"].tolist() == [whole.equity[t + 1]] * 2
    for fill in whole.fills[~whole.fills["forced"].astype(bool)]:
        t = int(fill["bar"])
        closes = abs(whole.position[t]) < abs(whole.position[t - 1])
        assert closes or abs(fill["qty"]) * bars.open[t] >= least
