"""What a model forecasts in many states, and how far two models differ in it, in nats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from agent_gym.agents.umc.efe import gaussian_kl, stratified_draws
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray

DRAWS = 64
LN_2PI = float(np.log(2.0 * np.pi))
WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Predictive:
    """A mixture of Gaussians in each state: one row a state, one column a head.

    A forecast of several independent numbers is as many rows.

    Attributes:
        weight: How far each head is believed; a row adds up to 1.
        mean: What it expects.
        variance: How sure it is; always above 0.
    """

    weight: FloatArray
    mean: FloatArray
    variance: FloatArray

    def __post_init__(self) -> None:
        shapes = {part.shape for part in (self.weight, self.mean, self.variance)}
        if len(shapes) != 1 or self.weight.ndim != 2 or not self.weight.size:
            raise DataError("a forecast has states and heads", found=sorted(shapes))
        if not (np.isfinite(self.mean).all() and np.isfinite(self.variance).all()):
            raise DataError("a forecast is not a finite number")
        if not (self.variance > 0.0).all():
            raise DataError("variances are above 0", found=float(self.variance.min()))
        off = np.abs(self.weight.sum(1) - 1.0).max()
        if not ((self.weight >= 0.0).all() and off < WEIGHT_TOLERANCE):
            raise DataError("weights are at least 0 and sum to 1", found=float(off))


def mean_divergence(model: Predictive, other: Predictive) -> float:
    """Return the mean KL of one model's forecasts from another's, over the states.

    It is exact for single Gaussians, and exactly 0 between equal forecasts. Else every head gives
    the middles of 64 equally likely slices, which are the same ones for both models.

    Example:
        >>> one = Predictive(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
        >>> mean_divergence(one, Predictive(one.weight, one.mean + 0.1, one.variance))
        0.005000000000000001
    """
    if len(model.weight) != len(other.weight):
        raise DataError(
            "forecasts are compared in the same states",
            found=f"{len(model.weight)} and {len(other.weight)}",
        )
    if model.weight.shape[1] == 1 == other.weight.shape[1]:
        return float(np.mean(gaussian_kl(model.mean, model.variance, other.mean, other.variance)))
    draws = stratified_draws(DRAWS).ravel()
    points = model.mean[..., None] + np.sqrt(model.variance)[..., None] * draws
    ratio = _log_density(model, points) - _log_density(other, points)
    return float((model.weight * ratio.mean(-1)).sum(1).mean())


def _log_density(model: Predictive, points: FloatArray) -> FloatArray:
    """Return the log density at points of shape (states, heads drawn from, draws)."""
    mean, variance = model.mean[:, None, None, :], model.variance[:, None, None, :]
    exponent = -0.5 * ((points[..., None] - mean) ** 2 / variance + np.log(variance) + LN_2PI)
    weight = np.broadcast_to(model.weight[:, None, None, :], exponent.shape)
    total: FloatArray = logsumexp(exponent, axis=-1, b=weight)
    return total
