from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import DataError, Seeds, VenueError
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.portfolio import run_portfolio
from tests.samples import flat_bars, random_bars, renamed, without_funding


def markets(n_m, n, seed, kind="perpetual", funding=2e-3):
    """Return bars of several instruments, each with a funding rate of its own."""
    made = []
    for m in range(n_m):
        bars = random_bars(n, seed + m, kind=kind, sigma=0.03, funding=funding * (-1) ** m)
        made.append(renamed(bars, f"C{m}/USDT"))
    return made


@given(
    seed=st.integers(0, 10**6),
    latency=st.integers(0, 3),
    leverage=st.sampled_from([1.0, 4.0]),
    kind=st.sampled_from(["spot", "perpetual"]),
)
def test_one_instrument_gives_the_bits_of_the_series_door(seed, latency, leverage, kind):
    (bars,) = markets(1, 80, seed, kind)
    costs = Costs(latency_bars=latency, participation=1e-4)
    rules = AccountRules(max_leverage=leverage)
    targets = np.repeat(Seeds(seed).child("t").rng().uniform(-leverage, leverage, 40), 2)
    whole = run_series(bars, targets, costs, rules)
    alone = run_portfolio([bars], targets[:, None], costs, rules)
    assert alone.equity.tobytes() == whole.equity.tobytes()
    assert alone.positions[:, 0].tobytes() == whole.position.tobytes()
    assert alone.trades["qty"].tolist() == whole.fills["qty"].tolist()
    assert alone.account.funding == whole.totals["funding"]
    paid = alone.account.funding != 0.0
    assert paid == (kind == "perpetual") or whole.equity.min() < 1e-3 * rules.cash


@given(seed=st.integers(0, 10**6), n_m=st.integers(2, 4))
def test_money_is_conserved_and_leverage_holds(seed, n_m):
    bars = markets(n_m, 60, seed)
    rules = AccountRules(max_leverage=2.0)
    targets = Seeds(seed).child("t").rng().uniform(-1, 1, (60, n_m))
    result = run_portfolio(bars, targets, Costs(), rules)
    flow = result.trades["qty"] * result.trades["price"] + result.trades["fee"]
    slack = 1e-9 * (rules.cash + np.abs(flow).sum())
    rest = rules.cash - flow.sum() - result.account.funding + result.account.insurance
    assert rest == pytest.approx(result.cash[-1], abs=slack)
    assert result.account.funding == pytest.approx(funding_due(bars, result), abs=slack)
    assert result.account.funding != 0.0
    closes = np.column_stack([b.close for b in bars])
    worth = result.cash + (result.positions * closes).sum(axis=1)
    assert np.allclose(worth, result.equity, rtol=0, atol=slack)
    opens = np.column_stack([b.open for b in bars])[1:]
    gross = (np.abs(result.positions[1:]) * opens).sum(axis=1)
    traded = np.isin(np.arange(1, 60), result.trades["bar"][~result.trades["forced"]])
    equity_at_open = result.cash[1:] + (result.positions[1:] * opens).sum(axis=1)
    grew = gross > (np.abs(result.positions[:-1]) * opens).sum(axis=1)
    checked = traded & grew
    assert (gross[checked] <= 2.0 * equity_at_open[checked] * (1 + 1e-9) + slack).all()


def funding_due(bars, result):
    """Return what the positions held before each bar owe at its open, counted by hand."""
    opens = np.column_stack([b.open for b in bars])[1:]
    rates = np.column_stack([b.extra["funding"] for b in bars])[1:]
    return float((result.positions[:-1] * opens * rates).sum())


def test_funding_of_one_instrument_is_paid_out_of_the_cash_of_all():
    flat = [renamed(flat_bars(9, kind="perpetual"), name) for name in ("A/USDT", "B/USDT")]
    rates = np.zeros(9)
    rates[4] = 0.01
    dear = replace(flat[1], extra={"funding": rates})
    run = run_portfolio([flat[0], dear], np.full((9, 2), 0.4), Costs.free())
    assert run.cash[3] == pytest.approx(2_000.0)
    assert run.cash[4] == pytest.approx(2_000.0 - 4_000.0 * 0.01)
    assert run.account.funding == pytest.approx(40.0)
    assert run.equity[-1] == pytest.approx(10_000.0 - 40.0)


def test_one_perpetual_without_funding_stops_the_portfolio():
    first, second = markets(2, 20, 0)
    with pytest.raises(DataError, match="C1/USDT"):
        run_portfolio([first, without_funding(second)], np.zeros((20, 2)))
    free = run_portfolio(
        [first, without_funding(second)], np.zeros((20, 2)), Costs(missing_funding="zero")
    )
    assert free.equity[-1] == 10_000.0


def test_targets_must_fit():
    with pytest.raises(VenueError, match="do not fit"):
        run_portfolio(markets(2, 20, 0), np.zeros((20, 3)))
    with pytest.raises(VenueError, match="row 1"):
        run_portfolio(markets(2, 20, 0), np.full((20, 2), np.nan))
