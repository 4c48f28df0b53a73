"""The compiled venue gives what the plain one gives, order by order, bit for bit."""

import pytest
from hypothesis import given, settings
from interpreted import PLAIN, PlainVenue
from wild_orders import ACCOUNTS, COSTS, RULES, SESSIONS, market_sets, play

from agent_gym.exchange import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from tests.samples import random_bars


def assert_alike(quick, plain, numbers):
    for name in ACCOUNTS:
        assert quick.account(name) == plain.account(name)
        assert quick.open_orders(name) == plain.open_orders(name)
    for number in numbers:
        assert quick.order(number) == plain.order(number)


@settings(max_examples=50, deadline=None)
@given(markets=market_sets(n=14), sessions=SESSIONS, costs=COSTS, rules=RULES)
def test_the_sweep_over_live_orders_changes_no_bit(markets, sessions, costs, rules):
    quick = Venue(markets, costs, rules, accounts=ACCOUNTS)
    plain = PlainVenue(markets, costs, rules, accounts=ACCOUNTS)
    numbers = []
    days = zip(play(quick, markets, sessions), play(plain, markets, sessions), strict=True)
    for (placed, taken, trades), other in days:
        assert (placed, taken, trades) == other
        numbers += placed
        assert_alike(quick, plain, numbers)


def test_many_resting_orders_on_a_long_way_are_alike():
    bars = random_bars(30, 5, sigma=0.03, funding=1e-3)
    venues = [kind([bars], Costs(), AccountRules()) for kind in (Venue, PlainVenue)]
    logs = []
    for venue in venues:
        for k in range(40):
            kind = (OrderKind.LIMIT, OrderKind.STOP)[k % 2]
            venue.submit(Order("BTC/USDT", kind, (-1.0) ** (k // 2), 80.0 + k, k % 3 == 0))
        logs.append([venue.advance() for _ in range(29)])
    assert logs[0] == logs[1]
    assert sum(map(len, logs[0])) > 10


@pytest.mark.parametrize("name", ["reached", "reducible"])
def test_a_planted_difference_is_caught(name, monkeypatch):
    bars = random_bars(20, 5, sigma=0.03)
    monkeypatch.setitem(PLAIN, name, lambda *scalars: 0.0)
    logs = []
    for kind in (Venue, PlainVenue):
        venue = kind([bars], Costs(), AccountRules())
        venue.submit(Order("BTC/USDT", OrderKind.MARKET, 5.0))
        venue.submit(Order("BTC/USDT", OrderKind.LIMIT, -5.0, 90.0, reduce_only=True))
        logs.append([venue.advance() for _ in range(19)])
    assert logs[0] != logs[1]
