"""What the open orders of an account hold back, as an exchange without credit counts it."""

from __future__ import annotations

from collections.abc import Container

from agent_gym.exchange.venue import Venue


def reserved(venue: Venue, account: str, without: Container[int] = ()) -> dict[str, float]:
    """Return what is held back, by asset: money for what is to be bought, units to be sold.

    Fees are not held back: an account that pays out its last cent buys a little less. Of orders of
    which one cancels the other only the dearest counts.

    Args:
        venue: Where it trades.
        account: Whose orders.
        without: Numbers of orders that are left out.
    """
    held: dict[str, float] = {}
    shared: dict[tuple[int, str], float] = {}
    for placed in venue.open_orders(account):
        if placed.id in without:
            continue
        order, instrument = placed.order, venue.instrument(placed.order.symbol)
        rest = max(0.0, abs(order.qty) - placed.filled)
        asset = instrument.quote if order.qty > 0.0 else instrument.base
        price = order.price or placed.level or 0.0
        worth = rest * price if order.qty > 0.0 else rest
        if order.exclusive:
            most = shared.get((order.group, asset), 0.0)
            shared[order.group, asset] = max(most, worth)
        else:
            held[asset] = held.get(asset, 0.0) + worth
    for (_, asset), worth in shared.items():
        held[asset] = held.get(asset, 0.0) + worth
    return held
