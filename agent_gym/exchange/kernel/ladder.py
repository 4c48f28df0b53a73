"""The order book that the cost law stands for: what each slice of a large order would pay."""

from __future__ import annotations

from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray
from agent_gym.exchange.kernel import layout, memory, parts
from agent_gym.exchange.kernel.parts import load_terms, taker_price

PARTS = (parts, layout, memory)


@door(
    "void(float64, float64, float64, float64, float64, int64, float64[::1], float64[::1])",
    parts=PARTS,
)
def price_slices(
    side: float,
    ref: float,
    volume: float,
    sigma: float,
    half: float,
    terms_at: int,
    sizes: FloatArray,
    prices: FloatArray,
) -> None:
    """Write what each slice pays if they are taken one after the other."""
    terms = load_terms(terms_at)
    taken = 0.0
    for i in range(sizes.size):
        prices[i] = taker_price(side, ref, sizes[i], taken, volume, sigma, half, terms)
        taken += sizes[i]
