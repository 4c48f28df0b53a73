"""Random markets and random orders of every kind, for properties that hold whatever is sent."""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import strategies as st

from agent_gym.exchange import AccountRules, Costs
from agent_gym.exchange.orders import Order, OrderKind
from tests.samples import random_bars, renamed

ACCOUNTS = ("a", "b")
SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT")


@dataclass(frozen=True)
class Wish:
    """One request before the venue is known: an order, or a cancel of an earlier one."""

    account: int
    instrument: int
    kind: OrderKind
    qty: float
    level: float | str  # price as a share of the last close, or a price of the next bar
    reduce_only: bool
    style: str
    group: int
    offset: float = 1.0  # the limit of an order with a trigger, as a share of it
    trail_bps: float = 0.0
    exclusive: bool = False

    def order(self, markets, t, scale=1.0):
        m = self.instrument % len(markets)
        bars = markets[m]
        if isinstance(self.level, str):
            price = getattr(bars, self.level)[min(t + 1, len(bars) - 1)]
        else:
            price = bars.close[t] * self.level
        kind, trails = self.kind, self.trail_bps > 0.0 and self.kind.waits
        priced = kind is OrderKind.LIMIT or kind.waits_for_limit or (kind.waits and not trails)
        limit = float(price) * (self.offset if kind.waits_for_limit else 1.0)
        return Order(
            bars.instrument.symbol,
            kind,
            _on_grid(self.qty / scale, bars.instrument.lot),
            limit if priced else None,
            trigger=float(price) if kind.waits_for_limit else None,
            trail_bps=self.trail_bps if trails else 0.0,
            exclusive=self.exclusive and self.group > 0,
            reduce_only=self.reduce_only and self.kind is not OrderKind.TARGET,
            post_only=self.style == "post_only" and self.kind is OrderKind.LIMIT,
            immediate=self.style == "immediate",
            group=self.group and self.group * len(SYMBOLS) + m,  # a group has one instrument
        )


def _on_grid(qty, lot):
    return qty if lot == 0.0 else (round(qty / lot) or 1) * lot


WISHES = st.builds(
    Wish,
    account=st.integers(0, 1),
    instrument=st.integers(0, 2),
    kind=st.sampled_from(list(OrderKind)),
    qty=st.floats(1e-3, 300) | st.floats(-300, -1e-3) | st.sampled_from([-5.0, 5.0]),
    level=st.floats(0.9, 1.1) | st.sampled_from(["open", "high", "low"]),
    reduce_only=st.booleans(),
    style=st.sampled_from(["plain", "plain", "post_only", "immediate"]),
    group=st.integers(0, 3),
    offset=st.sampled_from([1.0, 0.99, 1.01]),
    trail_bps=st.sampled_from([0.0, 0.0, 50.0, 300.0]),
    exclusive=st.booleans(),
)
# What is asked for before each bar: orders to send, and which earlier ones to take back.
SESSIONS = st.lists(
    st.tuples(st.lists(WISHES, max_size=4), st.lists(st.integers(0, 30), max_size=2)),
    max_size=25,
)
COSTS = st.builds(
    Costs,
    participation=st.sampled_from([None, 1e-4, 1e-6]),
    impact=st.sampled_from([0.0, 1.0]),
    latency_bars=st.integers(0, 3),
    limit_on_touch=st.booleans(),
)
RULES = st.builds(AccountRules, max_leverage=st.sampled_from([1.0, 4.0]))


@st.composite
def market_sets(draw, n=28):
    """Return one to three instruments, spot and perpetual, funded, with and without a grid."""
    seed = draw(st.integers(0, 1000))
    made = []
    for m in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["spot", "perpetual"]))
        funding = draw(st.sampled_from([-3e-3, 1e-2])) if kind == "perpetual" else 0.0
        bars = random_bars(n, seed + m, kind=kind, sigma=0.04, funding=funding)
        instrument = bars.instrument.model_copy(
            update={
                "lot": draw(st.sampled_from([0.0, 0.25])),
                "min_notional": draw(st.sampled_from([0.0, 400.0])),
            }
        )
        made.append(renamed(replace(bars, instrument=instrument), SYMBOLS[m]))
    return made


def funding_of(bars, t):
    rates = bars.extra.get("funding")
    return 0.0 if rates is None else float(rates[t])


def play(venue, markets, sessions, scale=1.0):
    """Yield what each bar did: the numbers placed before it, the cancels taken, and its trades."""
    numbers = []
    queue = list(sessions)
    while not venue.finished:
        wishes, cancels = queue.pop(0) if queue else ([], [])
        placed = []
        for wish in wishes:
            order = wish.order(markets, venue.t, scale)
            instrument = markets[wish.instrument % len(markets)].instrument
            worth = abs(order.qty) * (order.price or np.inf)
            if worth < instrument.min_notional and not order.reduce_only:
                continue
            placed.append(venue.submit(order, ACCOUNTS[wish.account]))
        numbers += placed
        taken = [numbers[k] for k in cancels if k < len(numbers) and venue.cancel(numbers[k])]
        yield placed, taken, venue.advance()


class Books:
    """The accounts kept by hand, from trades and funding alone."""

    def __init__(self, markets, rules):
        self.markets = {bars.instrument.symbol: bars for bars in markets}
        self.cash = dict.fromkeys(ACCOUNTS, rules.cash)
        self.held = defaultdict(float)
        self.fees = defaultdict(float)
        self.funding = defaultdict(float)
        self.volume = rules.cash

    def pay_funding(self, t):
        for (name, symbol), units in self.held.items():
            bars = self.markets[symbol]
            due = units * bars.open[t] * funding_of(bars, t)
            self.cash[name] -= due
            self.funding[name] += due
            self.volume += abs(due)

    def take(self, trade):
        self.cash[trade.account] -= trade.qty * trade.price + trade.fee
        self.held[trade.account, trade.symbol] += trade.qty
        self.fees[trade.account] += trade.fee
        self.volume += abs(trade.qty * trade.price)

    def check(self, venue):
        slack = 1e-9 * self.volume
        for name in ACCOUNTS:
            view = venue.account(name)
            assert view.funding == pytest.approx(self.funding[name], abs=slack)
            assert view.fees == pytest.approx(self.fees[name], abs=slack)
            assert view.cash == pytest.approx(self.cash[name] + view.insurance, abs=slack)
            worth = open_pnl = 0.0
            for symbol, bars in self.markets.items():
                close, units = bars.close[venue.t], view.positions[symbol]
                assert units * close == pytest.approx(self.held[name, symbol] * close, abs=slack)
                worth += units * close
                open_pnl += units * (close - view.average_prices[symbol])
            assert view.equity == pytest.approx(view.cash + worth, abs=slack)
            parts = venue.rules.cash + view.realised - view.fees - view.funding + view.insurance
            assert view.equity == pytest.approx(parts + open_pnl, abs=slack)
            assert view.insurance >= 0.0
            assert np.isfinite([view.cash, view.equity]).all()
