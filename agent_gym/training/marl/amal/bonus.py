"""The bonus: information in units of its own spread, and a weight that fades by itself."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.marl.network import Floats
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.scale import Scale
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.batch import Arrays

REFERENCE = (2, 5)
"""Iterations whose largest mean is the reference; in the first one no head has learned."""


class Bonus:
    """Scales information and says what it counts.

    It counts in full at first, less as information runs out, and less the more is won. Spread and
    reference are those of primary windows alone.
    """

    def __init__(self, config: AmalConfig) -> None:
        self._config = config
        self._scale = Scale(1)
        self.iteration = 0
        self.mean = self.reference = self.win_rate = 0.0

    def take_in(self, information: FloatArray, win_rate: float | None) -> None:
        """Take in a primary window: its information, and the share of battles won."""
        self.iteration += 1
        self._scale.update(information[:, None])
        self.mean = float(information.mean())
        first, last = REFERENCE
        if first <= self.iteration <= last:
            self.reference = max(self.reference, self.mean)
        if win_rate is not None:
            kept = self._config.win_memory
            self.win_rate = kept * self.win_rate + (1.0 - kept) * win_rate

    def paid(self, information: FloatArray) -> Floats:
        """Return information as it is paid."""
        scaled = information / float(self._scale.spread[0])
        return np.clip(scaled, 0.0, self._config.largest_bonus).astype(np.float32)

    @property
    def weight(self) -> float:
        """Return what the bonus counts now, as a share of the spread of what is won."""
        if self.reference <= 0.0:
            return 0.0
        left = min(1.0, self.mean / self.reference)
        return self._config.lambda_info * left * (1.0 - self.win_rate)

    def state(self) -> Arrays:
        """Return all that it remembers."""
        told = np.array([self.iteration, self.mean, self.reference, self.win_rate])
        return self._scale.arrays() | {"told": told}

    def restore(self, arrays: Arrays) -> None:
        """Remember what another one did."""
        self._scale.restore(arrays)
        iteration, self.mean, self.reference, self.win_rate = map(float, arrays["told"])
        self.iteration = int(iteration)
