from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.backtest import BacktestEngine
from agent_gym.evaluation.scenarios.market_run import MarketRun
from agent_gym.evaluation.scenarios.market_school import School
from agent_gym.evaluation.umc_walk.brake import Fall, fall_of
from agent_gym.exchange.risk import DrawdownBreaker
from agent_gym.exchange.risk.view import Cap, RiskView, limited
from tests.evaluation.breaker_samples import (
    FREE,
    LIMIT,
    account,
    bars_of,
)
from tests.evaluation.market_samples import scenario

RECKLESS = Ref(use="rules/buy-hold")
STRESS: dict[str, dict[str, Any]] = {
    "flash_crash": {"depth": 0.35},
    "price_gap": {"gap": 0.15},
    "feed_outage": {"move": 0.25, "down_share": 1.0},
    "funding_spike": {"rate_bps": 300.0, "longs_pay_share": 1.0},
    "thin_book": {},
}


def equity_of(kind: str, agent: Ref, seed: int, minutes: int = 5) -> FloatArray:
    venue = account(capital=1_000_000.0 if kind == "thin_book" else 10_000.0)
    params = STRESS[kind] | {"bar_minutes": minutes, "train_bars": 1_500}
    params["venue"] = venue.model_dump()
    made = scenario(kind, **params)
    seeds = Seeds(seed)
    bars, shocks = made.market(seeds)
    down = made.outages(bars, shocks, seeds.child("faults"))
    school = School(agent, venue, seeds, made.past)
    run = MarketRun(school, None, seeds, down, made.wiring())
    return run.trade(bars)[0].equity


def fell(equity: FloatArray) -> Fall:
    return fall_of(equity, LIMIT)


@pytest.mark.parametrize("kind", STRESS)
def test_d45_the_breaker_holds_its_limit_in_every_shock(kind: str) -> None:
    falls = [fell(equity_of(kind, RECKLESS, seed)) for seed in (1, 2)]
    assert all(fall.held(LIMIT) and fall.deepest <= LIMIT + fall.worst_bar for fall in falls), falls
    trips = any(fall.passing > 0.0 for fall in falls)
    assert trips == (kind != "thin_book")  # there the price does not move


@pytest.mark.parametrize("kind", ["flash_crash", "price_gap", "feed_outage", "funding_spike"])
def test_d45_the_breaker_holds_umc_where_it_is_on_the_wrong_side(kind: str) -> None:
    tried = (fell(equity_of(kind, Ref(use="umc"), seed, minutes=30)) for seed in range(104, 134))
    fall = next(each for each in tried if each.passing > 0.0)
    assert fall.held(LIMIT), fall
    assert fall.deepest <= LIMIT + fall.worst_bar, fall


def test_the_shocks_would_take_far_more_without_a_breaker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DrawdownBreaker, "cap", _let_through)
    fall = fell(equity_of("flash_crash", RECKLESS, 1))
    assert not fall.held(LIMIT)
    assert fall.deepest > 2.0 * LIMIT


def _let_through(self: DrawdownBreaker, target: float, view: RiskView) -> Cap:
    return limited(self.name, target, abs(target), "broken: it never trips")


def traded(moves: list[float], gaps: list[float], leverage: float, **costs: Any) -> FloatArray:
    bars = bars_of([0.0, *moves], [0.0, *gaps])
    config = account(leverage, **(FREE | costs))
    return BacktestEngine(config).run(bars, RECKLESS, 0).equity


steps = st.lists(st.floats(-0.06, 0.03), min_size=3, max_size=60)
leverages = st.sampled_from([1.0, 2.0, 3.0])


@settings(max_examples=60, deadline=None)
@given(moves=steps, leverage=leverages)
def test_where_the_open_is_the_last_close_nothing_beyond_one_bar_is_lost(
    moves: list[float], leverage: float
) -> None:
    fall = fell(traded(moves, [0.0] * len(moves), leverage))
    assert fall.held_strictly(LIMIT), fall


@settings(max_examples=60, deadline=None)
@given(data=st.data(), moves=steps, leverage=leverages)
def test_with_gaps_and_costs_the_way_to_the_next_open_comes_on_top(
    data: st.DataObject, moves: list[float], leverage: float
) -> None:
    n = len(moves)
    gaps = data.draw(st.lists(st.floats(-0.08, 0.02), min_size=n, max_size=n))
    fall = fell(traded(moves, gaps, leverage, taker_bps=5.0, slippage_bps=2.0))
    assert fall.held(LIMIT), fall


def test_one_bar_is_not_the_law_where_the_next_open_is_another_price() -> None:
    """Decided at a close, filled at the next open: no breaker can keep the way between them."""
    moves, gaps = [-0.047, -0.06, 0.0, 0.0], [0.0, 0.0, -0.08, 0.0]
    fall = fell(traded(moves, gaps, 3.0))
    assert fall.held(LIMIT)
    assert not fall.held_strictly(LIMIT), fall
    assert fall.after == 0.0


def test_getting_out_takes_the_gap_and_the_costs_and_nothing_else() -> None:
    moves, gaps = [0.0, -0.06, -0.06, -0.05, -0.05], [0.0, 0.0, 0.0, -0.02, 0.0]
    bars = bars_of(moves, gaps)
    found = BacktestEngine(account(2.0, **FREE | {"taker_bps": 5.0})).run(bars, RECKLESS, 0)
    down = 1.0 - found.equity / np.maximum.accumulate(found.equity)
    at = int(np.flatnonzero(down >= LIMIT)[0])
    gap = float(found.position[at]) * float(bars.open[at + 1] - bars.close[at])
    fees = float(found.fills["fee"][found.fills["bar"] == at + 1].sum())
    assert gap < 0.0 < fees
    assert float(found.equity[at + 1] - found.equity[at]) == pytest.approx(gap - fees)
    assert np.all(found.position[at + 1 :] == 0.0)


@pytest.mark.parametrize("leverage", [1.0, 2.0])
def test_a_breaker_that_never_trips_is_caught(
    leverage: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = [-0.03] * 20
    assert fell(traded(moves, [0.0] * 20, leverage)).held_strictly(LIMIT)
    monkeypatch.setattr(DrawdownBreaker, "cap", _let_through)
    assert not fell(traded(moves, [0.0] * 20, leverage)).held_strictly(LIMIT)


def test_a_breaker_that_is_a_bar_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    true_cap = DrawdownBreaker.cap
    seen: list[RiskView] = []

    def late(self: DrawdownBreaker, target: float, view: RiskView) -> Cap:
        seen.append(view)
        return true_cap(self, target, seen[-2] if len(seen) > 1 else view)

    fast, still = [-0.02, -0.09, -0.09, -0.09, 0.0], [0.0] * 5
    assert fell(traded(fast, still, 2.0)).held_strictly(LIMIT)
    monkeypatch.setattr(DrawdownBreaker, "cap", late)
    assert not fell(traded(fast, still, 2.0)).held_strictly(LIMIT)
