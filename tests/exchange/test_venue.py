import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from venue_samples import (
    ORDERS,
    SYMBOL,
    limit,
    market,
    one_bar,
    prices_of,
    scaled,
    stop,
    two_markets,
)

from agent_gym.core import ConfigError, Seeds, VenueError
from agent_gym.exchange import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind, OrderStatus
from agent_gym.exchange.venue import Venue
from agent_gym.markets import Bars, Instrument
from tests.samples import START_NS, flat_bars

BPS = 1e-4


def test_a_market_order_takes_the_next_open():
    venue = one_bar(101, 103, 99, 102)
    number = venue.submit(market(2.0))
    (trade,) = venue.advance()
    assert (trade.price, trade.qty, trade.maker) == (101.0, 2.0, False)
    assert trade.fee == pytest.approx(2 * 101 * 10 * BPS)
    assert venue.order(number).status is OrderStatus.FILLED
    assert venue.account().positions == {SYMBOL: 2.0}


@pytest.mark.parametrize(
    ("order", "price"),
    [
        (limit(1, 98.0), None),  # not reached
        (limit(1, 99.0), None),  # touched, not traded through
        (limit(1, 99.5), 99.5),  # traded through
        (limit(1, 105.0), 101.0),  # opened below the limit: never better than the open
        (limit(-1, 103.0), None),
        (limit(-1, 102.5), 102.5),
        (limit(-1, 95.0), 101.0),
        (stop(1, 104.0), None),
        (stop(1, 103.0), 103.0),  # a touch is enough for a stop
        (stop(-1, 99.0), 99.0),
        (stop(1, 102.0), 102.0),
        (stop(1, 100.5), 101.0),  # gapped: fills at the gap
        (stop(-1, 98.0), None),
        (stop(-1, 100.0), 100.0),
        (stop(-1, 101.5), 101.0),
    ],
)
def test_where_orders_fill_in_a_bar(order, price):
    venue = one_bar(101, 103, 99, 102)
    venue.submit(order)
    trades = venue.advance()
    assert [trade.price for trade in trades] == ([] if price is None else [price])


def test_touch_can_be_asked_for():
    venue = one_bar(101, 103, 99, 102)
    venue.costs = Costs.free().model_copy(update={"limit_on_touch": True})
    venue.submit(limit(1, 99.0))
    assert [trade.price for trade in venue.advance()] == [99.0]


def test_a_fresh_marketable_limit_pays_taker_a_resting_one_maker():
    venue = one_bar(101, 103, 99, 102)
    venue.submit(limit(1, 105.0))
    venue.submit(limit(1, 99.5))
    taker, maker = venue.advance()
    assert (taker.maker, maker.maker) == (False, True)
    assert taker.fee == pytest.approx(101 * 10 * BPS)
    assert maker.fee == pytest.approx(99.5 * 2 * BPS)


def test_a_post_only_order_that_would_take_is_cancelled():
    venue = one_bar(101, 103, 99, 102)
    number = venue.submit(limit(1, 105.0, post_only=True))
    assert venue.advance() == []
    assert venue.order(number).status is OrderStatus.CANCELLED


def test_stop_and_target_in_one_bar_take_the_adverse_one():
    venue = one_bar(100, 110, 90, 100)
    venue.submit(Order(SYMBOL, OrderKind.TARGET, 1.0))
    venue.submit(limit(-1, 105.0, reduce_only=True, group=7))
    number = venue.submit(stop(-1, 95.0, reduce_only=True, group=7))
    opened, closed = venue.advance()
    assert (opened.price, closed.price) == (100.0, 95.0)
    assert venue.order(number).status is OrderStatus.FILLED
    assert venue.open_orders() == []


def test_an_entry_and_its_stop_within_one_bar_both_fill():
    venue = one_bar(100, 101, 90, 100)
    venue.submit(limit(1, 97.0))
    venue.submit(stop(-1, 95.0, reduce_only=True))
    assert [trade.price for trade in venue.advance()] == [97.0, 95.0]


def test_a_target_never_closes_what_the_same_bar_opened():
    venue = one_bar(100, 110, 90, 100)
    venue.submit(limit(1, 97.0))
    venue.submit(limit(-1, 105.0, reduce_only=True))
    assert [trade.price for trade in venue.advance()] == [97.0]


def test_liquidity_consumed_once_is_gone():
    bars = flat_bars(5, volume=10.0)
    costs = Costs.free().model_copy(update={"participation": 0.5})
    venue = Venue([bars], costs, AccountRules(cash=1e6), accounts=("a", "b"))
    first = venue.submit(market(4.0), "a")
    second = venue.submit(market(4.0), "b")
    assert [(t.account, t.qty) for t in venue.advance()] == [("a", 4.0), ("b", 1.0)]
    assert venue.order(first).status is OrderStatus.FILLED
    assert venue.order(second).status is OrderStatus.OPEN
    assert [(t.account, t.qty) for t in venue.advance()] == [("b", 3.0)]


def test_an_immediate_order_expires_with_its_bar():
    bars = flat_bars(5, volume=10.0)
    venue = Venue([bars], Costs.free().model_copy(update={"participation": 0.1}))
    number = venue.submit(market(4.0, immediate=True))
    assert [trade.qty for trade in venue.advance()] == [1.0]
    placed = venue.order(number)
    assert (placed.status, placed.filled) == (OrderStatus.EXPIRED, 1.0)


def test_cancel_and_latency():
    bars = flat_bars(8)
    venue = Venue([bars], Costs.free().model_copy(update={"latency_bars": 2}))
    number = venue.submit(market(1.0))
    assert venue.advance() == [] == venue.advance()
    assert len(venue.advance()) == 1
    assert not venue.cancel(number)
    late = venue.submit(market(1.0))
    assert venue.cancel(late)
    assert venue.order(late).status is OrderStatus.OPEN  # the cancel is on its way, too
    assert [venue.advance() for _ in range(3)] == [[], [], []]
    assert venue.order(late).status is OrderStatus.CANCELLED


def test_a_newer_target_replaces_the_older_one():
    bars = flat_bars(8, volume=10.0)
    venue = Venue([bars], Costs.free().model_copy(update={"participation": 0.1}))
    old = venue.submit(Order(SYMBOL, OrderKind.TARGET, 5.0))
    venue.advance()
    venue.submit(Order(SYMBOL, OrderKind.TARGET, 0.0))
    venue.advance()
    assert venue.account().positions[SYMBOL] == 0.0
    assert venue.order(old).status is OrderStatus.CANCELLED


@given(
    orders=ORDERS,
    seed=st.integers(0, 1000),
    leverage=st.sampled_from([1.0, 4.0]),
    scale=st.sampled_from([1e-14, 1.0, 1e10]),
    funding=st.sampled_from([-3e-3, 1e-2]),
)
def test_money_is_conserved_for_any_orders(orders, seed, leverage, scale, funding):
    pair = two_markets(40, seed, sigma=0.05, funding=funding)
    markets = [scaled(bars, scale) for bars in pair]
    rules = AccountRules(max_leverage=leverage)
    venue = Venue(markets, Costs(participation=1e-4), rules, accounts=("a", "b"))
    cash = {"a": rules.cash, "b": rules.cash}
    due = {"a": 0.0, "b": 0.0}
    volume = 0.0
    queue = list(orders)
    while not venue.finished:
        for who, what, kind, qty, level, reduce_only, pair in queue[:2]:
            group = pair and 2 * pair + what  # a group has one instrument
            bars = markets[what]
            price = bars.close[venue.t] * level
            reduce_only &= kind is not OrderKind.TARGET
            order = Order(
                venue.symbols[what],
                kind,
                qty / scale,
                reduce_only=reduce_only,
                group=group,
                **prices_of(kind, price),
            )
            venue.submit(order, venue.accounts[who])
        queue = queue[2:]
        held_before = {name: venue.account(name).positions for name in venue.accounts}
        for trade in venue.advance():
            m = venue.symbols.index(trade.symbol)
            assert trade.ts == markets[m].ts[venue.t]
            cash[trade.account] -= trade.qty * trade.price + trade.fee
            volume += abs(trade.qty * trade.price)
        for name in venue.accounts:
            view = venue.account(name)
            slack = 1e-9 * (rules.cash + volume)
            due[name] += sum(
                held_before[name][b.instrument.symbol]
                * b.open[venue.t]
                * b.extra["funding"][venue.t]
                for b in markets
            )
            assert view.funding == pytest.approx(due[name], abs=slack)
            funded = cash[name] - view.funding + view.insurance
            assert view.cash == pytest.approx(funded, abs=slack)
            held = sum(view.positions[b.instrument.symbol] * b.close[venue.t] for b in markets)
            assert view.equity == pytest.approx(view.cash + held, abs=slack)
            open_pnl = sum(
                view.positions[s] * (b.close[venue.t] - view.average_prices[s])
                for s, b in zip(venue.symbols, markets, strict=True)
            )
            parts = rules.cash + view.realised - view.fees - view.funding + view.insurance
            assert view.equity == pytest.approx(parts + open_pnl, abs=slack)
            assert np.isfinite([view.cash, view.equity]).all()


def test_a_portfolio_out_of_margin_is_closed_as_a_whole():
    n, price = 6, np.array([100.0, 100, 100, 100, 60, 60])
    markets = []
    for name in ("BTC/USDT", "ETH/USDT"):
        ts = START_NS + 3_600_000_000_000 * np.arange(n)
        markets.append(
            Bars(
                Instrument(symbol=name, kind="perpetual"),
                3_600_000_000_000,
                ts,
                price,
                price,
                price,
                price,
                np.full(n, 1e9),
                {"funding": np.zeros(n)},
            )
        )
    venue = Venue(markets, Costs.free(), AccountRules(cash=100.0, max_leverage=4.0))
    for name in venue.symbols:
        venue.submit(Order(name, OrderKind.TARGET, 2.0))
    venue.submit(Order("BTC/USDT", OrderKind.LIMIT, 1.0, 1.0))
    trades = [trade for _ in range(4) for trade in venue.advance()]
    assert [trade.forced for trade in trades] == [False, False, True, True]
    view = venue.account()
    assert view.cash == view.equity == 0.0
    assert view.insurance == pytest.approx(60.0)
    assert venue.open_orders() == []


def test_one_position_cannot_use_the_margin_of_another():
    markets = two_markets()
    venue = Venue(markets, Costs.free(), AccountRules(cash=1000.0))
    for bars in markets:
        units = 900.0 / bars.open[1]
        venue.submit(Order(bars.instrument.symbol, OrderKind.MARKET, units))
    venue.advance()
    view = venue.account()
    worth = [abs(view.positions[b.instrument.symbol]) * b.open[1] for b in markets]
    assert worth[0] == pytest.approx(900.0)
    assert worth[1] == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (market(0.0), "quantity is 0"),
        (market(float("nan")), "not a finite number"),
        (limit(1.0, -5.0), "not a positive number"),
        (limit(1.0, float("inf")), "not a positive number"),
        (Order(SYMBOL, OrderKind.LIMIT, 1.0), "need a price"),
        (Order(SYMBOL, OrderKind.MARKET, 1.0, 5.0), "others have none"),
        (stop(1.0, 5.0, post_only=True), "post-only"),
        (limit(1.0, 5.0, post_only=True, immediate=True), "both"),
    ],
)
def test_orders_that_make_no_sense_are_rejected(order, message):
    with pytest.raises(VenueError, match=message):
        one_bar(100, 101, 99, 100).submit(order)


def test_orders_off_the_grid_are_rejected_with_the_nearest_price():
    bars = flat_bars(5)
    grid = Instrument(tick=0.5, lot=0.1)
    prices = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    venue = Venue([Bars(grid, bars.period_ns, bars.ts, *prices)])
    with pytest.raises(VenueError, match=r"Use 99\.5"):
        venue.submit(limit(0.3, 99.6))
    with pytest.raises(VenueError, match=r"multiple of 0\.1"):
        venue.submit(limit(0.35, 99.5))
    assert venue.submit(limit(0.3, 99.5)) == 1


def test_wrong_names_and_the_end_of_the_series():
    venue = one_bar(100, 101, 99, 100)
    with pytest.raises(ConfigError, match="Did you mean 'BTC/USDT'"):
        venue.submit(Order("BTC/USD", OrderKind.MARKET, 1.0))
    with pytest.raises(ConfigError, match="account"):
        venue.submit(market(1.0), "nobody")
    venue.advance()
    venue.advance()
    with pytest.raises(VenueError, match="at its end"):
        venue.advance()


def test_markets_at_different_times_are_refused():
    first, second = two_markets()
    with pytest.raises(ConfigError, match="same times"):
        Venue([first, second.rows(1, 60)])


@given(seed=st.integers(0, 100))
def test_same_orders_same_trades(seed):
    def run():
        venue = Venue(two_markets(30, seed), Costs(), AccountRules())
        rng = Seeds(seed).child("orders").rng()
        log = []
        while not venue.finished:
            symbol = venue.symbols[int(rng.integers(2))]
            venue.submit(Order(symbol, OrderKind.TARGET, float(rng.normal(0, 50))))
            log += venue.advance()
        return log

    assert run() == run() != []
