"""From returns to bars: wicks from a path inside the bar, and volume that says nothing ahead."""

from __future__ import annotations

import numpy as np

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.markets.bars import Bars, Provenance
from agent_gym.markets.instrument import Instrument
from agent_gym.markets.known.config import PERIOD_NS, START_NS
from agent_gym.markets.known.processes import Path, autoregression

START_PRICE = 100.0
STEPS = 12  # inside a bar
USUAL_VOLUME = 1e9  # base units; so much that no account of ours moves the price
VOLUME_MEMORY, VOLUME_SPREAD = 0.9, 0.4
LARGEST_PRICE = 1e12
SMALLEST_PRICE = 1e-8


def print_bars(path: Path, seeds: Seeds, provenance: Provenance, *, flow: bool = False) -> Bars:
    """Return the bars of a path; with ``flow`` order flow beside them that follows the price."""
    n = path.returns.size
    logs = np.log1p(path.returns)
    close = START_PRICE * np.exp(np.cumsum(logs))
    if not (close.max() < LARGEST_PRICE and close.min() > SMALLEST_PRICE):
        raise ConfigError(
            "with these parameters the price leaves all bounds",
            where=provenance.origin,
            found=f"from {close.min():.3g} to {close.max():.3g}",
            expected=f"between {SMALLEST_PRICE:g} and {LARGEST_PRICE:g}",
            remedy="Ask for fewer bars, less drift or less noise",
        )
    opened = np.concatenate([[START_PRICE], close[:-1]])
    up, down = _reach(logs, path.sigma, seeds)
    busy = _busy(n, seeds)
    extra = dict(path.signals)
    if flow:
        score = path.returns / path.sigma
        busy = busy + 0.25 * (np.abs(score) - 0.8)
        extra |= _flow(score, USUAL_VOLUME * np.exp(busy), close, seeds)
    return Bars(
        instrument=Instrument(symbol="KNOWN/USD", exchange="synthetic", kind="spot"),
        period_ns=PERIOD_NS,
        ts=START_NS + PERIOD_NS * np.arange(n, dtype=np.int64),
        open=opened,
        high=np.maximum(np.maximum(opened, close), opened * np.exp(up)),
        low=np.minimum(np.minimum(opened, close), opened * np.exp(down)),
        close=close,
        volume=USUAL_VOLUME * np.exp(busy),
        extra=extra,
        provenance=provenance,
    )


def _reach(logs: FloatArray, sigma: FloatArray, seeds: Seeds) -> tuple[FloatArray, FloatArray]:
    """Return how far the price went above and below the open: a walk tied to the close.

    Given both ends a Brownian path does not depend on its drift, so wicks tell nothing of it.
    """
    moves = seeds.child("inside").rng().standard_normal((logs.size, STEPS))
    walked = np.cumsum(moves, axis=1)
    share = np.arange(1, STEPS + 1) / STEPS
    tied = walked - share * walked[:, -1:]
    inside = tied * (sigma / STEPS**0.5)[:, None] + share * logs[:, None]
    return inside.max(axis=1), inside.min(axis=1)


def _busy(n: int, seeds: Seeds) -> FloatArray:
    """Return the log of volume over its usual size; it has a memory and looks at nothing."""
    shocks = VOLUME_SPREAD * (1.0 - VOLUME_MEMORY**2) ** 0.5
    drawn = seeds.child("volume").rng().standard_normal(n)
    return autoregression(0.0, VOLUME_MEMORY, shocks * drawn)


def _flow(
    score: FloatArray, volume: FloatArray, close: FloatArray, seeds: Seeds
) -> dict[str, FloatArray]:
    """Return takers, book and order flow as real ones look: they go with this bar, not the next."""
    n = score.size

    def drawn(name: str) -> FloatArray:
        numbers: FloatArray = seeds.child(name).rng().standard_normal(n)
        return numbers

    lean = np.tanh(0.15 * score + 0.1 * drawn("takers"))
    book = autoregression(0.0, 0.7, 0.3 * drawn("book") + 0.15 * score)
    return {
        "trades": np.ceil(volume / 1e5 * np.exp(0.1 * drawn("trades"))),
        "taker_buy": volume * 0.5 * (1.0 + lean),
        "spread": close * 1e-4 * np.exp(autoregression(0.0, 0.9, 0.1 * drawn("spread"))),
        "obi": np.tanh(book),
        "ofi": 0.1 * volume * (0.5 * score + drawn("orders")),
    }
