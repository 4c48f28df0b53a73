"""The market under a desk scenario: prices that move, jump and gap, as bars of a venue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agent_gym.core.clock import DAY_NS, SECOND_NS
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.instrument import Instrument

START_NS = 20_454 * DAY_NS  # a Thursday in 2026; simulated time begins there
SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT", "ADA/USDT", "DOT/USDT")
FIRST_PRICE = 100.0
RANGE_SHARE = 0.5  # how far high and low reach beyond open and close, in volatilities of a bar
VOLUME_SIGMA = 0.4


@dataclass(frozen=True, slots=True)
class Course:
    """How prices run: volatility and volume of a bar, and what breaks the calm.

    ``jumps`` holds bar and log return of shocks that hit every symbol at its open; ``gap_prob`` is
    the share of bars that open away from the last close, by ``gap`` volatilities at random.
    """

    n_bars: int
    period_ns: int
    sigma: float
    spread_bp: float
    volume: float
    jumps: tuple[tuple[int, float], ...] = ()
    gap_prob: float = 0.0
    gap: float = 8.0


def draw_bars(
    course: Course, symbols: Sequence[str], seeds: Seeds, first: Mapping[str, float] | None = None
) -> list[Bars]:
    """Return the bars of each symbol; each has a stream of its own.

    They begin at the symbol's price in ``first``, or at 100.
    """
    known = first or {}
    return [
        _bars(course, symbol, known.get(symbol, FIRST_PRICE), seeds.child(symbol).rng())
        for symbol in symbols
    ]


def _bars(course: Course, symbol: str, first: float, rng: np.random.Generator) -> Bars:
    n, sigma = course.n_bars, course.sigma
    within = sigma * rng.standard_normal(n)
    struck = rng.random(n) < course.gap_prob
    between = np.where(struck, course.gap * sigma * rng.standard_normal(n), 0.0)
    high, low = (RANGE_SHARE * sigma * np.abs(rng.standard_normal(n)) for _ in range(2))
    for bar, jump in course.jumps:
        between[bar] += jump
    between[0] = 0.0
    closes = np.cumsum(between + within)
    opens = closes - within
    price: FloatArray = first * np.exp(opens)
    last: FloatArray = first * np.exp(closes)
    volume = course.volume * np.exp(VOLUME_SIGMA * rng.standard_normal(n) - VOLUME_SIGMA**2 / 2)
    return Bars(
        Instrument(symbol=symbol, kind="perpetual"),
        course.period_ns,
        START_NS + course.period_ns * np.arange(n, dtype=np.int64),
        price,
        np.maximum(price, last) * np.exp(high),
        np.minimum(price, last) * np.exp(-low),
        last,
        volume,
        {"spread": 1e-4 * course.spread_bp * price, "funding": np.zeros(n)},
        Provenance(source="synthetic", origin="desk scenario"),
    )


def seconds(time_ns: int) -> float:
    """Return nanoseconds as epoch seconds, as the desk's records have them."""
    return time_ns / SECOND_NS
