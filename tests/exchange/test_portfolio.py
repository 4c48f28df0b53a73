import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_gym.core import Seeds, VenueError
from agent_gym.exchange import AccountRules, Costs, run_series
from agent_gym.exchange.portfolio import run_portfolio
from agent_gym.markets import Bars, Instrument
from tests.samples import random_bars


def markets(n_m, n, seed, kind="perpetual"):
    made = []
    for m in range(n_m):
        b = random_bars(n, seed + m, kind=kind, sigma=0.03)
        columns = (b.open, b.high, b.low, b.close, b.volume)
        instrument = Instrument(symbol=f"C{m}/USDT", kind=kind)
        made.append(Bars(instrument, b.period_ns, b.ts, *columns))
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


@given(seed=st.integers(0, 10**6), n_m=st.integers(2, 4))
def test_money_is_conserved_and_leverage_holds(seed, n_m):
    bars = markets(n_m, 60, seed)
    rules = AccountRules(max_leverage=2.0)
    targets = Seeds(seed).child("t").rng().uniform(-1, 1, (60, n_m))
    result = run_portfolio(bars, targets, Costs(), rules)
    flow = result.trades["qty"] * result.trades["price"] + result.trades["fee"]
    slack = 1e-9 * (rules.cash + np.abs(flow).sum())
    assert rules.cash - flow.sum() + result.account.insurance == pytest.approx(
        result.cash[-1], abs=slack
    )
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


def test_targets_must_fit():
    with pytest.raises(VenueError, match="do not fit"):
        run_portfolio(markets(2, 20, 0), np.zeros((20, 3)))
    with pytest.raises(VenueError, match="row 1"):
        run_portfolio(markets(2, 20, 0), np.full((20, 2), np.nan))
