"""The book that is shown is the law by which fills are priced."""

from dataclasses import replace

import numpy as np
import pytest

from agent_gym.exchange.costs import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.quotes import book_of, standing_price
from agent_gym.exchange.venue import Venue
from agent_gym.markets.instrument import Instrument
from tests.samples import random_bars

SYMBOL = "BTC/USDT"


def venue_of(tick=0.0, lot=0.0, steady=True, costs=None):
    bars = random_bars(60, kind="spot", volume=1_000.0)
    if steady:
        bars = replace(bars, volume=np.full(60, 1_000.0))
    bars = replace(bars, instrument=Instrument(tick=tick, lot=lot))
    venue = Venue([bars], costs or Costs(), AccountRules(cash=1e9))
    for _ in range(30):
        venue.advance()
    return venue


@pytest.mark.parametrize("depth", [1, 5, 20])
def test_walking_the_book_costs_what_a_market_order_pays(depth):
    venue = venue_of()
    asks = book_of(venue, SYMBOL).asks[:depth]
    size = sum(level.qty for level in asks)
    worth = sum(level.qty * level.price for level in asks)
    number = venue.submit(Order(SYMBOL, OrderKind.MARKET, size))
    venue.advance()
    done = venue.order(number)
    assert done.filled == pytest.approx(size)
    # The volatility of the present bar is not known before it closes; that of the last one is.
    assert done.average_price == pytest.approx(worth / size, rel=2e-4)


def test_without_impact_the_book_is_exact():
    venue = venue_of(costs=Costs(impact=0.0))
    book = book_of(venue, SYMBOL)
    number = venue.submit(Order(SYMBOL, OrderKind.MARKET, 5.0))
    venue.advance()
    assert venue.order(number).average_price == pytest.approx(book.asks[0].price, rel=1e-12)
    assert len(book.bids) == len(book.asks) == 1


def test_levels_lie_on_the_grid_and_go_away_from_the_price():
    venue = venue_of(tick=0.05, lot=0.1, steady=False)
    book, price = book_of(venue, SYMBOL), standing_price(venue, SYMBOL)
    for side, sign in ((book.asks, 1.0), (book.bids, -1.0)):
        prices = [level.price for level in side]
        assert all(sign * (one - price) > 0.0 for one in prices)
        assert prices == sorted(prices, reverse=sign < 0)
        assert all(round(one / 0.05) * 0.05 == pytest.approx(one) for one in prices)
        assert all(round(one.qty / 0.1) * 0.1 == pytest.approx(one.qty) for one in side)


def test_a_book_holds_what_may_be_taken_in_a_bar():
    venue = venue_of()
    total = sum(level.qty for level in book_of(venue, SYMBOL).asks)
    assert total == pytest.approx(0.1 * 1_000.0)


def test_the_price_at_the_end_is_the_last_close():
    venue = venue_of()
    while not venue.finished:
        venue.advance()
    assert standing_price(venue, SYMBOL) == venue.tape(SYMBOL).bars.close[-1]
    assert book_of(venue, SYMBOL).asks
