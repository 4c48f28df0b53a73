"""What a step says about which head is right: the bonus before it is scaled."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.agents.information import moment_information
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.world_model import Forecast
from agent_gym.training.marl.amal_config import InformationKind


class MutualInformationEstimator:
    """Turns the forecast of several heads into one number a step, never below 0.

    Mutual information is that of the next state and the head that is right, in nats, with one
    Gaussian in place of the mixture. A battle is nearly deterministic, so heads grow sure and close
    together at once and their ratio says nothing; ``floor`` is added to every variance, and what
    heads differ by less than that is no information. No step can say more than which head it is.

    Args:
        kind: What is told; the others are there to be compared with.
        floor: In units of the spread of each change.
    """

    def __init__(self, kind: InformationKind, floor: float) -> None:
        self._kind, self._floor = kind, floor

    def __call__(self, told: Forecast) -> FloatArray:
        """Return one number a row."""
        if self._kind == "variance":
            return np.asarray(told.mean.var(axis=1).sum(axis=-1))
        if self._kind == "error":
            found = np.square(told.truth - told.mean[:, 0]).sum(axis=-1)
            return np.where(told.counted, found, 0.0)
        total: FloatArray = self.by_feature(told).sum(axis=-1)
        return np.minimum(total, self.most(told))

    def by_feature(self, told: Forecast) -> FloatArray:
        """Return the mutual information of each feature, ``[rows, features]``."""
        return moment_information(told.mean, told.variance + self._floor**2)

    @staticmethod
    def most(told: Forecast) -> float:
        """Return the most that can be said: the logarithm of the number of heads."""
        return math.log(told.mean.shape[1])
