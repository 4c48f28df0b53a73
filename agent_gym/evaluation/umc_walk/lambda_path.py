"""Lambda from bar to bar, as the controller moves it while it follows a series."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from agent_gym.agents.umc.lam import AdaptiveLambdaScheduler, LambdaConfig, LambdaMetrics
from agent_gym.core.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LambdaPath:
    """Lambda after each bar, and where its bounds are."""

    values: FloatArray
    lowest: float
    highest: float

    @property
    def share_at_bounds(self) -> float | None:
        """Return the share of bars with lambda at a bound; None where it can be nowhere else.

        A lambda that its bounds hold confirms nothing by lying between them.
        """
        if self.lowest == self.highest or not self.values.size:
            return None
        at = (self.values == self.lowest) | (self.values == self.highest)
        return float(at.mean())


def lambda_path(config: LambdaConfig, information: FloatArray, coherence: FloatArray) -> LambdaPath:
    """Return lambda after each bar, begun anew at the first."""
    scheduler = AdaptiveLambdaScheduler(config)
    state = scheduler.initial()
    values = np.empty(information.size)
    for t, (taught, explained) in enumerate(zip(information, coherence, strict=True)):
        state = scheduler.step(state, LambdaMetrics(float(taught), float(explained)))
        values[t] = state.lam
    return LambdaPath(values, config.lambda_min, config.lambda_max)
