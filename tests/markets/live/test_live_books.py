from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_exchange import START_MS, LocalExchange

from agent_gym.core.errors import ConfigError, DataError
from agent_gym.markets.live import OrderBook, quotes_of
from agent_gym.markets.live.books import read_order_book, read_trades
from agent_gym.markets.order_flow import order_flow_imbalance

MS_NS = 1_000_000
START = START_MS * MS_NS


def book(bid: float, bid_size: float, ask: float, ask_size: float) -> OrderBook:
    raw = {"bids": [[bid, bid_size]], "asks": [[ask, ask_size]], "timestamp": 1, "nonce": 1}
    return read_order_book(raw, 5, "here")


def test_a_book_from_the_exchange(make_loader: Any) -> None:
    found = make_loader().fetch_order_book(depth=2)
    assert found.bid_price.tolist() == [100.0, 99.5]
    assert found.ask_size.tolist() == [2.0, 6.0]
    assert (found.mid, found.spread, found.update_id) == (100.25, 0.5, 100)
    assert found.imbalance(2) == pytest.approx((9.0 - 8.0) / 17.0)
    assert not found.bid_price.flags.writeable


@pytest.mark.parametrize(
    ("bids", "asks", "text"),
    [
        ([["101.0", "1"]], [["100.5", "1"]], "crossed"),
        ([["100.5", "1"]], [["100.5", "1"]], "crossed"),
        ([], [["100.5", "1"]], "empty"),
        ([["99.0", "1"], ["99.0", "1"]], [["100.5", "1"]], "out of order"),
        ([["-1", "1"]], [["100.5", "1"]], "positive"),
        ([["99.0", "nan"]], [["100.5", "1"]], "positive"),
    ],
)
def test_a_book_that_cannot_be_true_is_refused(
    exchange: LocalExchange, make_loader: Any, bids: Any, asks: Any, text: str
) -> None:
    exchange.depth = {"lastUpdateId": 1, "bids": bids, "asks": asks}
    with pytest.raises(DataError, match=text):
        make_loader().fetch_order_book()


def test_passing_faults_are_tried_again(exchange: LocalExchange, make_loader: Any) -> None:
    exchange.faults["depth"].extend(["500", "truncated"])
    exchange.faults["aggTrades"].extend(["429", "broken"])
    loader = make_loader()
    assert loader.fetch_order_book().update_id == 100
    assert len(loader.fetch_trades(limit=7)) == 7
    assert loader.retrier.retries == 4


def test_books_become_quotes_for_order_flow() -> None:
    still = book(100.0, 5.0, 101.0, 5.0)
    later = [still, book(100.0, 8.0, 101.0, 5.0), book(100.5, 2.0, 101.0, 9.0)]
    assert order_flow_imbalance(quotes_of(later))[1:].tolist() == [3.0, 2.0 - 4.0]
    assert len(quotes_of([])) == 0
    timeless = read_order_book({"bids": [[1, 1]], "asks": [[2, 1]]}, 1, "here")
    with pytest.raises(DataError, match="without a time"):
        quotes_of([still, timeless])


def test_trades_become_a_tape() -> None:
    raw = [TRADE | {"id": str(n), "timestamp": n} for n in (3, 1, 2)]
    tape = read_trades(raw, "here").tape()
    assert tape.trade_id.tolist() == [1, 2, 3]
    assert tape.side.tolist() == [1, 1, 1]
    for change in ({"id": "x"}, {"side": None}):
        with pytest.raises(DataError, match="no tape"):
            read_trades([TRADE | change], "here").tape()


def test_the_latest_trades(make_loader: Any) -> None:
    trades = make_loader().fetch_trades(limit=4)
    assert trades.ids == ("1497", "1498", "1499", "1500")
    assert trades.side.tolist() == [1, -1, 1, -1]  # buyer is maker: the taker sold


def test_trades_over_several_pages_come_once_each(
    exchange: LocalExchange, make_loader: Any
) -> None:
    trades = make_loader().fetch_trades(START, limit=5000)
    assert trades.ids == tuple(map(str, range(1, 1501)))
    assert len(exchange.asked("aggTrades")) == 3
    assert len(make_loader().fetch_trades(START, limit=1234)) == 1234


def test_repeated_trades_are_dropped_and_contradictions_refused(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.trades = [exchange.trade(n) for n in (1, 2, 2, 3, 1)]
    assert make_loader().fetch_trades(limit=50).ids == ("1", "2", "3")
    exchange.trades.append(exchange.trade(2) | {"p": "1.0"})
    with pytest.raises(DataError, match="two different trades have one id"):
        make_loader().fetch_trades(limit=50)


def test_a_page_full_of_one_millisecond_is_an_error(
    exchange: LocalExchange, make_loader: Any
) -> None:
    exchange.trades = [exchange.trade(n) | {"T": START_MS + 5} for n in range(1, 3000)]
    with pytest.raises(DataError, match="one millisecond"):
        make_loader().fetch_trades(START, limit=2500)


@pytest.mark.parametrize("wrong", [0, -3])
def test_senseless_sizes_are_refused(make_loader: Any, wrong: int) -> None:
    with pytest.raises(ConfigError, match="depth"):
        make_loader().fetch_order_book(wrong)
    with pytest.raises(ConfigError, match="limit"):
        make_loader().fetch_trades(limit=wrong)


TRADE = {"id": "1", "timestamp": 5, "price": 1.0, "amount": 2.0, "side": "buy"}


@pytest.mark.parametrize(
    "change",
    [{"id": None}, {"price": None}, {"price": 0.0}, {"amount": float("nan")}, {"timestamp": None}],
)
def test_a_trade_that_cannot_be_true_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        read_trades([TRADE | change], "here")


@given(st.permutations(range(12)))
def test_trades_are_put_in_order(order: list[int]) -> None:
    raw = [TRADE | {"id": str(n), "timestamp": n // 4, "side": None} for n in order]
    trades = read_trades(raw, "here")
    assert trades.ids == tuple(map(str, range(12)))
    assert not trades.side.any()
    assert trades.take([0, 3]).ids == ("0", "3")
