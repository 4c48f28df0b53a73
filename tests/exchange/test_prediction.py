from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import integrate

from agent_gym.core.errors import VenueError
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray
from agent_gym.exchange.prediction import (
    Cpmm,
    CpmmConfig,
    Lmsr,
    LmsrConfig,
    MarketMaker,
    PredictionConfig,
    PredictionMarket,
    Side,
    curves,
    make_maker,
)

MAKERS: list[Any] = [LmsrConfig(b=100.0), CpmmConfig(pool=100.0)]
both = pytest.mark.parametrize("maker", MAKERS, ids=["lmsr", "cpmm"])


def market(maker: Any, cash: float = 1e6, **changes: Any) -> PredictionMarket:
    made = PredictionMarket(PredictionConfig(maker=maker, **changes))
    made.open_account("ann", cash)
    made.open_account("bob", cash)
    return made


@both
@pytest.mark.parametrize("gap", [-700.0, -30.0, 0.0, 5.0, 400.0])
@pytest.mark.parametrize("shares", [0.001, 10.0, 150.0, -150.0])
def test_cost_is_the_integral_of_the_price(maker: Any, gap: float, shares: float) -> None:
    curve = make_maker(maker)
    area, _ = integrate.quad(curve.price, gap, gap + shares, epsabs=1e-12, epsrel=1e-12)
    assert curve.cost(gap, shares) == pytest.approx(area, rel=1e-9, abs=1e-10)


def test_lmsr_is_the_published_cost_function() -> None:
    curve = Lmsr(LmsrConfig(b=50.0))

    def total(yes: float, no: float) -> float:
        return 50.0 * math.log(math.exp(yes / 50.0) + math.exp(no / 50.0))

    assert curve.cost(20.0, 30.0) == pytest.approx(total(50.0, 0.0) - total(20.0, 0.0))
    assert curve.cost(-20.0, 30.0) == pytest.approx(total(30.0, 20.0) - total(0.0, 20.0))
    assert curve.price(35.0) == pytest.approx(1 / (1 + math.exp(-0.7)))


def test_cpmm_keeps_the_product_of_its_pools() -> None:
    made = market(CpmmConfig(pool=100.0))
    yes_pool = no_pool = 100.0
    steps: list[tuple[Side, float]] = [("yes", 30.0), ("no", 80.0), ("yes", 200.0)]
    for side, shares in steps:
        paid = made.buy("ann", side, shares).cost
        # The maker mints a pair for each unit of money and hands out the shares.
        yes_pool += paid - (shares if side == "yes" else 0.0)
        no_pool += paid - (shares if side == "no" else 0.0)
        assert yes_pool * no_pool == pytest.approx(100.0**2)
        assert made.price == pytest.approx(no_pool / (yes_pool + no_pool))


@both
def test_a_trade_moves_the_price_its_way_and_is_paid_on_the_way(maker: Any) -> None:
    made = market(maker)
    last = made.price
    assert last == 0.5
    for _ in range(20):
        trade = made.buy("ann", "yes", 10.0)
        assert trade.price_before == last < trade.price_after
        assert trade.price_before < trade.average_price < trade.price_after
        last = trade.price_after
    down = made.buy("bob", "no", 10.0)
    assert down.price_after < last
    assert 1 - last < down.average_price < 1 - down.price_after


@both
@settings(deadline=None)
@given(data=st.data())
def test_a_round_trip_loses_exactly_the_fees(maker: Any, data: st.DataObject) -> None:
    fee_bps = data.draw(st.sampled_from([0.0, 1.0, 37.5, 200.0]))
    made = market(maker, cash=5e5, fee_bps=fee_bps)
    made.buy("bob", data.draw(st.sampled_from(["yes", "no"])), data.draw(st.floats(0.01, 5e3)))
    side: Any = data.draw(st.sampled_from(["yes", "no"]))
    shares = data.draw(st.floats(1e-6, 1e5))
    price = made.price
    bought, sold = made.buy("ann", side, shares), made.sell("ann", side, shares)
    assert abs(5e5 - made.holding("ann").cash - bought.fee - sold.fee) <= 1e-9
    assert bought.cost == -sold.cost
    assert bought.fee == pytest.approx(bought.cost * fee_bps / 1e4, abs=1e-9)
    assert made.price == price


@both
def test_many_small_steps_cost_what_one_large_step_costs(maker: Any) -> None:
    one, many = market(maker), market(maker)
    whole = one.buy("ann", "yes", 300.0).cost
    parts = sum(many.buy("ann", "yes", 0.3).cost for _ in range(1000))
    assert parts == pytest.approx(whole, abs=1e-9)
    # No detour helps either: pairs of YES and NO always cost 1.
    assert one.buy("bob", "no", 300.0).cost + whole == pytest.approx(300.0, abs=1e-9)


actions = st.lists(
    st.tuples(
        st.sampled_from(["buy", "sell", "spend", "sell all"]),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["yes", "no"]),
        st.floats(1e-9, 3e4),
    ),
    max_size=30,
)


def play(made: PredictionMarket, steps: list[tuple[str, str, Any, float]]) -> int:
    refused = 0
    for kind, name, side, size in steps:
        try:
            if kind == "buy":
                made.buy(name, side, size)
            elif kind == "spend":
                made.spend(name, side, size)
            else:
                made.sell(name, side, None if kind == "sell all" else size)
        except VenueError:
            refused += 1
        assert made.imbalance() == 0.0
        assert made.maker_cash >= 0.0
    return refused


@both
@settings(deadline=None)
@given(
    steps=actions,
    outcome=st.sampled_from(["yes", "no"]),
    fee_bps=st.sampled_from([0.0, 30.0]),
    start=st.sampled_from([0.5, 0.03, 0.9]),
)
def test_money_is_conserved_and_the_loss_bounded(
    maker: Any, steps: Any, outcome: Any, fee_bps: float, start: float
) -> None:
    made = market(maker, cash=10_000.0, fee_bps=fee_bps, initial_price=start)
    play(made, steps)
    before = {name: made.holding(name) for name in ("ann", "bob")}
    paid = made.resolve(outcome)
    assert made.imbalance() == 0.0
    assert made.maker_cash >= 0.0
    assert made.maker_profit >= -made.max_loss
    for name, held in before.items():
        assert paid[name] == getattr(held, outcome)
        after = made.holding(name)
        assert after.cash == pytest.approx(held.cash + paid[name], abs=1e-9)
        assert made.equity(name) == after.cash
    total = sum(made.holding(name).cash for name in before) + made.maker_profit + made.fees
    assert total == pytest.approx(20_000.0, abs=1e-9)


def test_a_planted_leak_shows_up() -> None:
    made = market(MAKERS[0])
    made.buy("ann", "yes", 10.0)
    made._accounts["ann"].cash += 1
    assert made.imbalance() == pytest.approx(1e-9)


@pytest.mark.parametrize("scale", [0.5, 100.0, 1e6])
def test_the_worst_loss_is_b_ln_2_and_the_pool(scale: float) -> None:
    for maker, bound in (
        (LmsrConfig(b=scale), scale * math.log(2)),
        (CpmmConfig(pool=scale), scale),
    ):
        made = market(maker, cash=1e14)
        assert made.max_loss == pytest.approx(bound, abs=1e-9)
        made.buy("ann", "yes", 1e4 * scale)
        made.resolve("yes")
        assert -bound - 1e-9 <= made.maker_profit <= -0.99 * bound


@both
def test_payoff_depends_on_the_price_paid(maker: Any) -> None:
    made = market(maker, initial_price=0.9)
    cheap, dear = made.buy("ann", "no", 1.0), made.buy("bob", "yes", 1.0)
    assert cheap.cost < 0.11
    assert dear.cost > 0.89
    made.resolve("yes")
    assert made.equity("bob") - 1e6 == pytest.approx(1.0 - dear.cost, abs=1e-8)
    assert made.equity("ann") - 1e6 == pytest.approx(-cheap.cost, abs=1e-8)


@pytest.mark.parametrize("curve", [Lmsr(LmsrConfig(b=3.0)), Cpmm(CpmmConfig(pool=3.0))])
@pytest.mark.parametrize("size", [1e-300, 1e3, 1e5, 1e9, 1e150, 1e300])
def test_extremes_stay_finite(curve: MarketMaker, size: float) -> None:
    for gap in (-size, 0.0, size):
        assert 0.0 <= curve.price(gap) <= 1.0
        assert 0.0 <= curve.slack(gap) <= 3.0
        for shares in (size, -size, 1.0):
            cost = curve.cost(gap, shares)
            assert math.isfinite(cost)
            assert abs(cost) <= abs(shares) * (1 + 1e-15)
            assert cost * shares >= 0.0


@both
@settings(deadline=None)
@given(price=st.floats(1e-6, 1 - 1e-6))
def test_gap_and_price_are_inverse(maker: Any, price: float) -> None:
    curve = make_maker(maker)
    assert curve.price(curve.gap(price)) == pytest.approx(price, rel=1e-9)
    made = market(maker, initial_price=price)
    assert made.price == pytest.approx(price, rel=1e-6)


@both
@pytest.mark.parametrize("belief", [0.001, 0.3, 0.99])
def test_shares_to_reach_a_belief(maker: Any, belief: float) -> None:
    made = market(maker, initial_price=0.6)
    shares = made.shares_to(belief)
    made.buy("ann", "yes" if shares > 0 else "no", abs(shares))
    assert made.price == pytest.approx(belief, rel=1e-6)
    with pytest.raises(VenueError):
        made.shares_to(1.0)


@both
@pytest.mark.parametrize("fee_bps", [0.0, 100.0])
def test_spend_uses_the_money_up_and_no_more(maker: Any, fee_bps: float) -> None:
    made = market(maker, fee_bps=fee_bps)
    steps: list[tuple[Side, float]] = [("yes", 50.0), ("no", 1e-6), ("no", 500_000.0)]
    for side, cash in steps:
        trade = made.spend("ann", side, cash)
        spent = trade.cost + trade.fee
        assert cash - 1e-8 <= spent <= cash
        more = made.quote(side, trade.shares)
        assert sum(more) >= spent
    with pytest.raises(VenueError):
        made.spend("ann", "yes", 0.0)


@both
def test_a_quote_trades_nothing(maker: Any) -> None:
    made = market(maker, fee_bps=10.0)
    quoted = made.quote("yes", 12.0)
    assert made.price == 0.5
    trade = made.buy("ann", "yes", 12.0)
    assert (trade.cost, trade.fee) == quoted
    assert made.quote("yes", -12.0)[0] == -trade.cost


@both
def test_what_is_not_allowed_raises_and_changes_nothing(maker: Any) -> None:
    made = market(maker, cash=100.0)
    made.buy("ann", "yes", 10.0)
    state = (made.holding("ann"), made.holding("bob"), made.price, made.maker_cash)
    neither: Any = "maybe"
    wrong: list[Any] = [
        lambda: made.sell("ann", "yes", 10.000001),
        lambda: made.sell("ann", "no", 1.0),
        lambda: made.sell("bob", "yes"),
        lambda: made.buy("ann", "yes", 1e6),
        lambda: made.buy("ann", "yes", 1e300),
        lambda: made.buy("ann", neither, 1.0),
        lambda: made.buy("eve", "yes", 1.0),
        lambda: made.open_account("ann", 1.0),
        lambda: made.open_account("eve", -1.0),
        lambda: made.open_account("eve", math.inf),
        lambda: made.resolve(neither),
        *(
            lambda size=size: made.buy("ann", "yes", size)
            for size in (math.nan, math.inf, 0.0, -1.0)
        ),
        *(lambda size=size: made.sell("ann", "yes", size) for size in (math.nan, -math.inf, -1.0)),
        lambda: made.quote("yes", math.nan),
        lambda: made.spend("ann", "yes", math.nan),
    ]
    for action in wrong:
        with pytest.raises(VenueError):
            action()
        assert state == (made.holding("ann"), made.holding("bob"), made.price, made.maker_cash)


@both
def test_a_resolved_market_is_closed(maker: Any) -> None:
    made = market(maker)
    made.buy("ann", "no", 10.0)
    assert made.resolve("no") == {"ann": 10.0, "bob": 0.0}
    assert (made.price, made.outcome) == (0.0, "no")
    closed: list[Any] = [
        lambda: made.resolve("no"),
        lambda: made.resolve("yes"),
        lambda: made.buy("ann", "yes", 1.0),
        lambda: made.sell("ann", "no", 1.0),
        lambda: made.spend("ann", "no", 1.0),
        lambda: made.quote("no", 1.0),
    ]
    for action in closed:
        with pytest.raises(VenueError, match="resolved"):
            action()


def test_each_field_acts_and_wrong_ones_are_refused() -> None:
    def cost(**changes: Any) -> float:
        trade = market(changes.pop("maker", MAKERS[0]), **changes).buy("ann", "yes", 50.0)
        return trade.cost + trade.fee

    usual = cost()
    for changes in (
        {"maker": LmsrConfig(b=50.0)},
        {"maker": CpmmConfig(pool=100.0)},
        {"fee_bps": 5.0},
        {"initial_price": 0.6},
    ):
        assert cost(**changes) != usual
    assert cost(maker=CpmmConfig(pool=50.0)) != cost(maker=CpmmConfig(pool=100.0))
    for wrong in (
        {"maker": {"kind": "lmsr", "b": 0.0}},
        {"maker": {"kind": "lmsr", "pool": 1.0}},
        {"maker": {"kind": "dutch"}},
        {"fee_bps": -1.0},
        {"initial_price": 1.0},
    ):
        with pytest.raises(ValidationError):
            PredictionConfig.model_validate(wrong)


@door("float64[::1](float64[::1], float64, float64)", parts=(curves,))
def batch(gaps: FloatArray, shares: float, scale: float) -> FloatArray:
    costs = np.empty(gaps.size)
    for i in range(gaps.size):
        costs[i] = curves.lmsr_cost(gaps[i], shares, scale)
    return costs


def test_the_parts_can_be_batched_with_the_same_bits() -> None:
    gaps = np.linspace(-500.0, 500.0, 101)
    curve = Lmsr(LmsrConfig(b=70.0))
    assert batch(gaps, 3.0, 70.0).tolist() == [curve.cost(float(gap), 3.0) for gap in gaps]
