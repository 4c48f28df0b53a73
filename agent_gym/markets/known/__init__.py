"""Markets whose law is known, so that what can be earned in them is known too.

Belongs here: markets with something to find (M1 to M5, B1), nulls in which there is nothing (N1 to
N4), and the truth of what was drawn. Agents are given the bars alone.
Hands on: ``Drawn(bars, truth)``; what can be earned is in ``evaluation.oracle``.
"""

from agent_gym.markets.known.config import KnownMarketConfig
from agent_gym.markets.known.source import (
    KNOWN,
    NULLS,
    Drawn,
    KnownSource,
    draw,
    full_name,
    known_config,
)

__all__ = [
    "KNOWN",
    "NULLS",
    "Drawn",
    "KnownMarketConfig",
    "KnownSource",
    "draw",
    "full_name",
    "known_config",
]
