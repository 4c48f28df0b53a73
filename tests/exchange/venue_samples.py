"""Small order venues and orders that the tests share."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from agent_gym.exchange import Costs
from agent_gym.exchange.orders import Order, OrderKind
from agent_gym.exchange.venue import Venue
from tests.samples import bars_of, random_bars, renamed

SYMBOL = "BTC/USDT"


def one_bar(o, h, low, c, *, kind="perpetual", before=100.0):
    """Return a venue that stands before the bar in question."""
    bars = bars_of(
        np.array([before, o, c]),
        np.array([before, h, c]),
        np.array([before, low, c]),
        np.array([before, c, c]),
        kind=kind,
    )
    return Venue([bars], Costs.fees_only(10).model_copy(update={"maker_bps": 2.0}))


def limit(qty, price, **more):
    return Order(SYMBOL, OrderKind.LIMIT, qty, price, **more)


def stop(qty, price, **more):
    return Order(SYMBOL, OrderKind.STOP, qty, price, **more)


def market(qty, **more):
    return Order(SYMBOL, OrderKind.MARKET, qty, **more)


def prices_of(kind, price):
    """Return the price and the trigger that an order of this kind has."""
    priced = kind is OrderKind.LIMIT or kind.waits
    return {
        "price": price if priced else None,
        "trigger": price if kind.waits_for_limit else None,
    }


def two_markets(n=60, seed=1, kind="perpetual", sigma=0.02, funding=0.0):
    names = ("BTC/USDT", "ETH/USDT")
    return [
        renamed(random_bars(n, seed + i, kind=kind, sigma=sigma, funding=funding), name)
        for i, name in enumerate(names)
    ]


def scaled(bars, scale):
    """Return the same market with prices of 1e-12 or 1e12."""
    columns = {name: getattr(bars, name) * scale for name in ("open", "high", "low", "close")}
    return replace(bars, **columns, volume=bars.volume / scale)


ORDERS = st.lists(
    st.tuples(
        st.integers(0, 1),  # account
        st.integers(0, 1),  # instrument
        st.sampled_from(list(OrderKind)),
        st.floats(-300, 300).filter(lambda q: abs(q) > 1e-3),
        st.floats(0.8, 1.25),  # price as a share of the last close
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=60,
)
