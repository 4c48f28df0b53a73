"""The companion that learns from every outcome at once; it senses drift and decides nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from river.linear_model import LogisticRegression
from river.optim import SGD
from river.preprocessing import StandardScaler

from agent_gym.core.types import FloatArray
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.scores import auc, log_loss


class Companion:
    """Logistic regression on scaled features, one row at a time: first asked, then told.

    A missing feature is left out of that row.
    """

    def __init__(self, feature_names: tuple[str, ...], rate: float = 0.02) -> None:
        self._names = feature_names
        self._model: Any = StandardScaler() | LogisticRegression(optimizer=SGD(rate))

    def step(self, row: FloatArray, won: bool) -> float:
        """Return the probability of a win as it was said before the outcome was told."""
        named = {
            name: value
            for name, value in zip(self._names, row.tolist(), strict=True)
            if not math.isnan(value)
        }
        said = float(self._model.predict_proba_one(named).get(True, 0.5))
        self._model.learn_one(named, won)
        return min(max(said, 1e-6), 1.0 - 1e-6)

    def follow(self, data: Dataset) -> FloatArray:
        """Return what was said of each row of a table, in the order of time."""
        return np.array([self.step(data.X[i], bool(data.y[i])) for i in range(len(data))])


def prequential(data: Dataset) -> dict[str, Any]:
    """Return how a companion does that goes through a table once."""
    if not len(data):
        return {"n": 0, "log_loss": None, "auc": None}
    p = Companion(data.feature_names).follow(data)
    ranking = auc(p, data.y)
    return {
        "n": len(data),
        "log_loss": log_loss(p, data.y, data.weight),
        "auc": None if ranking is None else ranking.as_dict(),
    }
