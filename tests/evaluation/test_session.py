"""A session is judged as a backtest is: the same trades give the same figures, to the last bit."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.core.errors import DataError
from agent_gym.core.registry import Ref
from agent_gym.evaluation.backtest import BacktestConfig, BacktestEngine
from agent_gym.evaluation.session import (
    SessionOrigin,
    judge_session,
    session_results,
    session_sheet,
)
from agent_gym.exchange.orders import OrderKind
from agent_gym.exchange.spot import SpotFloor
from agent_gym.exchange.spot_records import Wish
from agent_gym.markets.instrument import Instrument
from tests.samples import random_bars

# Half of the equity: an order for all of it is priced as asked for, and cut to what can be paid.
CONFIG = BacktestConfig(position_size=0.5)
ORIGIN = SessionOrigin(CONFIG)


def market(seed=0, symbol="BTC/USDT", n=300):
    bars = random_bars(n, seed, kind="spot")
    return replace(bars, instrument=Instrument(symbol=symbol, tick=0.01, lot=0.001))


def floor_of(*markets, accounts=("ann",), history=1):
    return SpotFloor(markets, CONFIG.costs(), CONFIG.capital, accounts, history)


def repeat(floor, fills, symbol="BTC/USDT"):
    """Send the fills of a backtest as market orders, each before the bar that it happened in."""
    due = {}
    for row in fills:
        due.setdefault(int(row["bar"]), []).append(float(row["qty"]))
    while not floor.finished:
        for qty in due.get(floor.venue.t + 1, []):
            wish = Wish(symbol, OrderKind.MARKET, round(qty, 3))
            floor.place("ann", wish, floor.opened_ns)
        floor.advance()


@pytest.mark.parametrize("agent", ["rules/sma-cross", "rules/momentum", "rules/buy-hold"])
def test_the_same_trades_give_the_same_results(agent):
    bars = market()
    wanted = BacktestEngine(CONFIG).run(bars, Ref(use=agent))
    assert len(wanted.fills) > 0
    floor = floor_of(bars)
    repeat(floor, wanted.fills)
    found = session_results(floor, "ann", ORIGIN)
    assert np.abs(found.equity - wanted.equity).max() < 1e-8
    for name, value in wanted.metrics.as_dict().items():
        other = found.metrics.as_dict()[name]
        assert other == (None if value is None else pytest.approx(value, rel=1e-6, abs=1e-9)), name


def test_baselines_stand_beside_a_session():
    bars = market()
    floor = floor_of(bars)
    while not floor.finished:
        floor.advance()
    found = judge_session(floor, "ann", ORIGIN)
    alone = BacktestEngine(CONFIG).run(bars, Ref(use="rules/buy-hold"))
    assert found.runs["rules/buy-hold"].equity_hash == alone.equity_hash
    assert found.main.metrics.trades == 0
    assert found.payload()["baselines"].keys() >= {"rules/flat", "rules/buy-hold"}
    assert session_sheet(found).title == "Sandbox session of ann"


def test_history_is_not_part_of_the_results():
    bars = market()
    floor = floor_of(bars, history=100)
    floor.place("ann", Wish("BTC/USDT", OrderKind.MARKET, 10.0), floor.opened_ns)
    for _ in range(20):
        floor.advance()
    found = session_results(floor, "ann", ORIGIN)
    assert len(found.equity) == len(found.bars) == 21
    assert found.bars.ts[0] == bars.ts[99]
    assert found.fills["bar"].tolist() == [1]
    worth = found.cash[-1] + found.position[-1] * bars.close[119]
    assert found.equity[-1] == pytest.approx(worth)


def test_two_symbols_are_judged_on_their_basket():
    one, two = market(), market(4, "ETH/USDT")
    floor = floor_of(one, two, accounts=("ann", "ben"))
    for symbol in ("BTC/USDT", "ETH/USDT"):
        floor.place("ann", Wish(symbol, OrderKind.MARKET, 20.0), floor.opened_ns)
    floor.place("ben", Wish("ETH/USDT", OrderKind.MARKET, 20.0), floor.opened_ns)
    for _ in range(50):
        floor.advance()
    for symbol in ("BTC/USDT", "ETH/USDT"):
        floor.place("ann", Wish(symbol, OrderKind.MARKET, -20.0), floor.opened_ns)
    floor.advance()
    both = judge_session(floor, "ann", ORIGIN)
    assert both.main.bars.instrument.symbol == "BASKET/USDT"
    assert both.main.metrics.round_trips == 2
    gained = both.main.trips.closed["net_pnl"].sum()
    assert both.main.equity[-1] - both.main.equity[0] == pytest.approx(gained)
    held = both.main.position[10] * both.main.bars.close[10]
    assert held + both.main.cash[10] == pytest.approx(both.main.equity[10])
    assert session_sheet(both).fills is None
    single = session_results(floor, "ben", ORIGIN)
    assert single.bars.instrument.symbol == "ETH/USDT"


def test_a_session_without_a_bar_has_no_results():
    with pytest.raises(DataError):
        session_results(floor_of(market()), "ann", ORIGIN)


@pytest.mark.parametrize(("n", "shown"), [(300, False), (800, True)])
def test_a_short_session_shows_no_ratio_and_says_why(n, shown):
    bars = market(n=n)
    floor = floor_of(bars)
    repeat(floor, BacktestEngine(CONFIG).run(bars, Ref(use="rules/sma-cross")).fills)
    sheet = session_sheet(judge_session(floor, "ann", ORIGIN))
    assert (sheet.figures["ann"]["sharpe"] is not None) is shown
    assert any("whole days" in note for note in sheet.notes) is not shown
    assert sheet.figures["ann"]["total_return"] is not None
