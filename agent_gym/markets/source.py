"""Where a world gets its bars: anything registered as a market can hand out a series."""

from __future__ import annotations

from typing import Protocol

from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars


class MarketSource(Protocol):
    """A market that can be named in a config; the same seeds give the same bars."""

    def bars(self, seeds: Seeds) -> Bars: ...


def open_market(ref: Ref, seeds: Seeds) -> Bars:
    """Return the bars of the market that a Ref names."""
    source = make("market", ref)
    bars: Bars = source.bars(seeds)  # type: ignore[attr-defined]
    return bars
