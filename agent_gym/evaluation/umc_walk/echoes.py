"""A crowd of echoes on recorded bars: it lives there and moves nothing.

The bars are given, so no demand of the crowd reaches a price, and nothing of the crowd reaches the
model: it is handed bars alone. What a recorded market is worth nobody knows, so the echoes that
look at worth are shown the price itself and sit out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.agents.echo import EchoConfig, EchoPopulation, Generation
from agent_gym.core.seeds import Seeds
from agent_gym.markets.bars import Bars

WARM_BARS = 48


@dataclass(frozen=True, slots=True, eq=False)
class EchoRecord:
    """How a crowd did on recorded bars.

    Attributes:
        size: Echoes in the crowd.
        bars: Bars that it lived through.
        generations: One row a family and generation.
        fitness: Mean fitness of each family at the end.
    """

    size: int
    bars: int
    generations: tuple[Generation, ...]
    fitness: Mapping[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "size": self.size,
            "bars": self.bars,
            "generations": [each.as_dict() for each in self.generations],
            "fitness": dict(self.fitness),
        }


def follow_echoes(bars: Bars, config: EchoConfig, seed: int) -> EchoRecord | None:
    """Let a crowd live through bars; None where there are no echoes or too few bars."""
    if config.size == 0 or len(bars) <= WARM_BARS:
        return None
    close, high, low, opened = (
        np.log(column) for column in (bars.close, bars.high, bars.low, bars.open)
    )
    crowd = EchoPopulation(config)
    sigma = float(np.diff(close[:WARM_BARS]).std())
    crowd.begin(float(close[0]), sigma, Seeds(seed).child("echoes on bars"))
    for t in range(1, len(bars)):
        crowd.decide()
        crowd.settle(float(close[t]), float(high[t]), float(low[t]), float(close[t]), opened[t])
    fitness, start, found = crowd.fitness, 0, {}
    for family, count in crowd.heads.items():
        found[family.value] = float(fitness[start : start + count].mean())
        start += count
    return EchoRecord(crowd.size, crowd.bar, tuple(crowd.history), found)
