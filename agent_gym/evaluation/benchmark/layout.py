"""Where the features of each market stand in an observation, found by their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_gym.core.errors import AgentError
from agent_gym.core.types import EpisodeStart


@dataclass(frozen=True, slots=True)
class MarketLayout:
    """The markets of a world and the columns of their features."""

    markets: tuple[str, ...]
    places: dict[str, int]

    @classmethod
    def of(cls, start: EpisodeStart) -> MarketLayout:
        """Read the layout from the names that a world states."""
        places = {name: i for i, name in enumerate(start.feature_names)}
        markets = dict.fromkeys(
            name.split("/")[0] for name in start.feature_names if name.endswith("/gap")
        )
        if not markets:
            raise AgentError(
                "this world has no markets of a benchmark",
                found=", ".join(start.feature_names[:5]),
                expected="features named <market>/<feature>",
                remedy="Play it on the world named benchmark",
            )
        return cls(tuple(markets), places)

    @property
    def n_markets(self) -> int:
        """Return how many targets an action has."""
        return len(self.markets)

    def columns(self, feature: str) -> NDArray[np.intp]:
        """Return where a feature of each market stands."""
        return np.array([self.places[f"{market}/{feature}"] for market in self.markets])
