"""What the open orders of an account hold back, as an exchange without credit counts it."""

from __future__ import annotations

from collections.abc import Container

from agent_gym.exchange.venue import Venue


def reserved(venue: Venue, account: str, without: Container[int] = ()) -> dict[str, float]:
    """Return what is held back, by asset: money for what is to be bought, units to be sold.

    Fees are not held back: an account that pays out its last cent buys a little less.

    Args:
        venue: Where it trades.
        account: Whose orders.
        without: Numbers of orders that are left out.
    """
    held: dict[str, float] = {}
    for placed in venue.open_orders(account):
        if placed.id in without:
            continue
        order, instrument = placed.order, venue.instrument(placed.order.symbol)
        rest = max(0.0, abs(order.qty) - placed.filled)
        asset = instrument.quote if order.qty > 0.0 else instrument.base
        worth = rest * (order.price or 0.0) if order.qty > 0.0 else rest
        held[asset] = held.get(asset, 0.0) + worth
    return held
