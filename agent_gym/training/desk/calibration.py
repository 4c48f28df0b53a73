"""From log odds of a forest to probabilities that mean what they say."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from agent_gym.core.types import FloatArray
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.scores import log_loss

Method: TypeAlias = Literal["sigmoid", "isotonic"]
ISOTONIC_ROWS = 1000
FOLDS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A sigmoid (x holds its slope, y its offset) or steps through the points x, y."""

    method: Method
    x: FloatArray
    y: FloatArray

    def apply(self, raw: FloatArray) -> FloatArray:
        """Return probabilities for raw scores."""
        if self.method == "sigmoid":
            return np.asarray(expit(-(self.x[0] * raw + self.y[0])))
        # Points that share an x are a step; interp needs one value for each x.
        return np.asarray(np.interp(raw, self.x, self.y))


def fit_calibration(model: Any, data: Dataset, method: Method) -> Calibration:
    """Fit one method on rows that the model was not fitted on."""
    wrapped = CalibratedClassifierCV(FrozenEstimator(model), method=method)
    with warnings.catch_warnings():
        # It warns that a frozen model takes no weights; it is not fitted again, so that is right.
        warnings.filterwarnings("ignore", message="Since FrozenEstimator", category=UserWarning)
        wrapped.fit(data.X, data.y, sample_weight=data.weight)
    (fitted,) = wrapped.calibrated_classifiers_
    (found,) = fitted.calibrators
    if method == "sigmoid":
        return Calibration("sigmoid", np.array([float(found.a_)]), np.array([float(found.b_)]))
    points = np.asarray(found.X_thresholds_, dtype=np.float64)
    return Calibration("isotonic", points, np.asarray(found.y_thresholds_, dtype=np.float64))


def choose_calibration(model: Any, data: Dataset, wanted: str) -> Calibration:
    """Return the calibration asked for; isotonic takes 1000 rows, ``auto`` the smaller loss."""
    if wanted == "sigmoid" or len(data) < ISOTONIC_ROWS:
        return fit_calibration(model, data, "sigmoid")
    if wanted == "isotonic":
        return fit_calibration(model, data, "isotonic")
    costs = {name: _held_out_loss(model, data, name) for name in METHODS}
    return fit_calibration(model, data, min(METHODS, key=lambda name: costs[name]))


METHODS: tuple[Method, ...] = ("sigmoid", "isotonic")


def _held_out_loss(model: Any, data: Dataset, method: Method) -> float:
    """Return the loss on blocks of time that the calibration has not seen."""
    raw = np.asarray(model.decision_function(data.X))
    cuts = np.linspace(0, len(data), FOLDS + 1).astype(int)
    total = 0.0
    for start, stop in pairwise(cuts):
        rest = np.ones(len(data), dtype=np.bool_)
        rest[start:stop] = False
        part = fit_calibration(model, data.take(rest), method)
        held = data.take(slice(start, stop))
        total += log_loss(part.apply(raw[start:stop]), held.y, held.weight) * len(held)
    return total / len(data)
