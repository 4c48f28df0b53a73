"""Prices that a venue shows: an order book drawn from the very law that fills are priced by."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from agent_gym.core.types import FloatArray
from agent_gym.exchange.kernel import layout
from agent_gym.exchange.kernel.ladder import price_slices
from agent_gym.exchange.venue import Venue

VOLUME_BARS = 24
LEVELS = 20
GRID_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Level:
    """A price and how much is offered there."""

    price: float
    qty: float


@dataclass(frozen=True, slots=True)
class Book:
    """Both sides, best price first."""

    bids: tuple[Level, ...]
    asks: tuple[Level, ...]


def standing_price(venue: Venue, symbol: str) -> float:
    """Return the price of this moment: where the next bar opens, or the last close at the end."""
    bars = venue.tape(symbol).bars
    return float(bars.close[venue.t] if venue.finished else bars.open[venue.t + 1])


def book_of(venue: Venue, symbol: str, levels: int = LEVELS) -> Book:
    """Return the book of an instrument at this moment.

    Walking up the asks costs what the venue charges for a market order of that size, as far as it
    is known now: spread and volatility are those of the last bar, the volume is a mean of the last
    24. It holds as much as the venue lets anyone take in a bar.
    """
    tape, terms = venue.tape(symbol), venue.terms(symbol)
    row, instrument = tape.rows[venue.t], tape.bars.instrument
    past = tape.bars.volume[max(0, venue.t + 1 - VOLUME_BARS) : venue.t + 1]
    volume = float(past.mean()) or 1.0
    cap = min(layout.Terms(*terms.tolist()).cap, 1.0)
    sizes = _sizes(cap * volume, instrument.lot, levels)
    ref = standing_price(venue, symbol)
    sides = []
    for side in (-1.0, 1.0):
        prices = np.empty_like(sizes)
        price_slices(
            side,
            ref,
            volume,
            row[layout.BAR_SIGMA],
            row[layout.BAR_HALF_SPREAD],
            terms.ctypes.data,
            sizes,
            prices,
        )
        sides.append(_levels(side, prices, sizes, instrument.tick))
    return Book(sides[0], sides[1])


def _sizes(total: float, lot: float, levels: int) -> FloatArray:
    """Return slices that grow away from the best price, in whole lots."""
    reach = total * (np.arange(1, levels + 1) / levels) ** 2
    if lot > 0.0:
        reach = np.unique(np.maximum(np.floor(reach / lot), 1.0)) * lot
    return np.diff(reach, prepend=0.0)


def _levels(side: float, prices: FloatArray, sizes: FloatArray, tick: float) -> tuple[Level, ...]:
    """Return slices on the grid of prices, never better than they are; equal prices are one."""
    found: dict[float, float] = {}
    for price, size in zip(prices.tolist(), sizes.tolist(), strict=True):
        shown = price
        if tick > 0.0:
            steps = price / tick
            whole = math.ceil(steps - GRID_SLACK) if side > 0.0 else math.floor(steps + GRID_SLACK)
            shown = max(whole, 1) * tick
        found[shown] = found.get(shown, 0.0) + size
    return tuple(Level(price, size) for price, size in found.items())
