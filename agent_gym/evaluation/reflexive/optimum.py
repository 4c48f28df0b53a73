"""The yardstick of a market with impact: the best fixed participation, found with the true law.

What is optimised: the mean log growth, after all costs, of one simple rule. The rule wants to hold
``size`` of its equity on the side of the signal once the signal is at least ``threshold``, keeps
its side in between, and trades towards that by at most ``participation`` of a usual bar's volume in
each bar. Only the participation is chosen, from a grid, by playing the true market with its true
impact on the same seeds for all. It is the optimum of this rule, not of all that could be done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from agent_gym.core.errors import ConfigError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Decision, EpisodeStart, FloatArray, Observation, Step
from agent_gym.envs.config import ContinuousTargets
from agent_gym.envs.reflexive import ReflexiveConfig
from agent_gym.evaluation.reflexive.episodes import growth

GRID = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
NEAR = 0.05  # share of the size that is not worth an order
SIGNAL = "signal_drift"


class FixedParticipation:
    """Implements Agent: follows a signal and trades at most a fixed share of a usual bar."""

    name = "fixed-participation"

    def __init__(self, participation: float, size: float = 1.0, threshold: float = 0.5) -> None:
        if not (participation > 0.0 and size > 0.0 and threshold >= 0.0):
            raise ConfigError(
                "a participation and a size are more than 0, a threshold at least 0",
                found=(participation, size, threshold),
            )
        self._participation, self._size, self._threshold = participation, size, threshold

    def reset(self, start: EpisodeStart) -> None:
        """Find the columns; what the world does not show cannot be followed."""
        self._signal, self._position = start.column(SIGNAL), start.column("position")
        self._scale, self._actions = start.column("equity_per_volume"), start.actions
        self._side, self._target = 0.0, 0.0

    def act(self, obs: Observation) -> Decision:
        """Go one step towards the side of the signal."""
        seen = obs.features
        if abs(seen[self._signal]) >= self._threshold:
            self._side = float(np.sign(seen[self._signal]))
        away = self._side * self._size - float(seen[self._position])
        if abs(away) > NEAR * self._size:
            most = self._participation / float(seen[self._scale])
            self._target = float(seen[self._position]) + min(max(away, -most), most)
        return Decision(self._actions.encode(self._target))

    def observe(self, step: Step) -> None:
        """Nothing to learn: it is told what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Growth by participation (rows) and seed (columns), and which row is best on average."""

    grid: tuple[float, ...]
    growth: FloatArray
    seeds: Seeds
    market: ReflexiveConfig

    @property
    def best(self) -> float:
        """Return the participation with the largest mean growth."""
        return self.grid[int(self.growth.mean(axis=1).argmax())]

    @property
    def best_growth(self) -> FloatArray:
        """Return the growth of the best participation by seed: the yardstick on these paths."""
        row: FloatArray = self.growth[self.grid.index(self.best)]
        return row

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for manifests and reports; intervals are standard errors."""
        n = self.growth.shape[1]
        errors = self.growth.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else [None] * len(self.grid)
        rows = [
            {
                "participation": share,
                "mean_growth": float(row.mean()),
                "standard_error": None if error is None else float(error),
                "growth": row.tolist(),
            }
            for share, row, error in zip(self.grid, self.growth, errors, strict=True)
        ]
        return {
            "best": self.best,
            "rows": rows,
            "seeds": {"root": self.seeds.root, "path": list(self.seeds.path), "count": n},
            "market": self.market.model_dump(mode="json"),
        }


def best_participation(
    market: ReflexiveConfig,
    seeds: Seeds,
    *,
    paths: int = 8,
    grid: tuple[float, ...] = GRID,
    size: float = 1.0,
    threshold: float = 0.5,
) -> Optimum:
    """Play the rule with each participation on the same paths of the true market.

    Path i is that of ``seeds.child(i)``, so that an agent can be played on the same ones.
    """
    if market.signal is None:
        raise ConfigError(
            "there is nothing to follow without a signal",
            where="signal",
            found=None,
            remedy="Give the market a signal, for example {strength: 0.1}",
        )
    high = max(size, 1.0)
    free = market.model_copy(update={"actions": ContinuousTargets(low=-high, high=high)})
    table = [
        [growth(FixedParticipation(s, size, threshold), free, seeds.child(i)) for i in range(paths)]
        for s in grid
    ]
    return Optimum(tuple(grid), np.array(table), seeds, free)
