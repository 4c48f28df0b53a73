"""Mixtures of Gaussians: moments, entropies, and what an observation says about its component.

Everything is in nats and float64. Draws are standard normal numbers that every component and every
action shares (common random numbers), so differences between actions carry no noise of their own.
Where one dimension is enough, ``stratified_draws`` needs no seed and is far more exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtri

from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

LN_2PI = math.log(2.0 * math.pi)
WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Gaussians with independent dimensions, mixed by weights.

    Attributes:
        weight: One a component; they sum to 1.
        mean: ``(..., components, dimensions)``; leading axes are actions or anything else.
        variance: Likewise; always above 0, for the entropy of a sure thing is minus infinity.
    """

    weight: FloatArray
    mean: FloatArray
    variance: FloatArray

    def __post_init__(self) -> None:
        if self.mean.shape != self.variance.shape or self.mean.ndim < 2:
            raise DataError(
                "means and variances of a mixture have one shape",
                found=f"{self.mean.shape} and {self.variance.shape}",
                expected="(..., components, dimensions)",
            )
        if self.weight.shape != self.mean.shape[-2:-1]:
            raise DataError(
                "a mixture has one weight a component",
                found=self.weight.shape,
                expected=self.mean.shape[-2:-1],
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.variance).all()):
            raise DataError("a mean or a variance of a mixture is not a finite number")
        if not (self.variance > 0.0).all():
            raise DataError("variances are above 0", found=float(self.variance.min()))
        total = float(self.weight.sum())
        if not ((self.weight >= 0.0).all() and abs(total - 1.0) < WEIGHT_TOLERANCE):
            raise DataError("weights are at least 0 and sum to 1", found=self.weight.tolist())

    @property
    def dimensions(self) -> int:
        """Return how many numbers one observation has."""
        return int(self.mean.shape[-1])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the variance of each dimension, over all components, exactly."""
        weight = self.weight[:, None]
        centre: FloatArray = (weight * self.mean).sum(-2)
        apart = self.mean - centre[..., None, :]
        spread: FloatArray = (weight * (self.variance + apart * apart)).sum(-2)
        return centre, spread


def row_mixture(weight: ArrayLike, mean: ArrayLike, variance: ArrayLike) -> Mixture:
    """Return a mixture of one dimension; the last axis of the mean and variance is components."""
    means, variances = (np.asarray(part, dtype=np.float64) for part in (mean, variance))
    return Mixture(np.asarray(weight, np.float64), means[..., None], variances[..., None])


def normal_draws(seeds: Seeds, count: int, dimensions: int = 1) -> FloatArray:
    """Return an even number of random draws, in pairs of opposite sign, scaled to variance 1."""
    if count < 2 or count % 2:
        raise DataError("draws come in pairs", found=count, expected="an even number above 0")
    half = seeds.child("mixture draws").rng().standard_normal((count // 2, dimensions))
    return _unit(np.concatenate([half, -half]))


def stratified_draws(count: int) -> FloatArray:
    """Return the middles of equally likely slices of a normal variable, scaled to variance 1.

    Example:
        >>> stratified_draws(3).round(6).ravel().tolist()
        [-1.224745, 0.0, 1.224745]
    """
    if count < 2:
        raise DataError("a spread takes two draws", found=count, expected="2 or more")
    return _unit(ndtri((np.arange(count) + 0.5) / count)[:, None])


def gaussian_entropy(variance: ArrayLike) -> FloatArray:
    """Return the entropy of Gaussians of one dimension.

    Example:
        >>> round(float(gaussian_entropy(1.0)), 6)
        1.418939
    """
    logs: FloatArray = np.log(np.asarray(variance, np.float64))
    entropy: FloatArray = 0.5 * (LN_2PI + 1.0 + logs)
    return entropy


def entropy(mixture: Mixture, draws: FloatArray) -> FloatArray:
    """Return the entropy of a mixture; exact for one component, else from the draws."""
    if mixture.weight.size == 1:
        return _component_entropies(mixture)[..., 0]
    return -_expected(mixture, logsumexp(_log_terms(mixture, draws), axis=-1))


def conditional_entropy(
    mixture: Mixture, labels: NDArray[np.int64], draws: FloatArray
) -> FloatArray:
    """Return the expected entropy once the label of the component is known.

    It is exact where every label has one component.
    """
    if np.unique(labels).size == labels.size:
        weighted: FloatArray = (mixture.weight * _component_entropies(mixture)).sum(-1)
        return weighted
    return -_expected(mixture, _within(mixture, labels, _log_terms(mixture, draws)))


def label_information(mixture: Mixture, labels: NDArray[np.int64], draws: FloatArray) -> FloatArray:
    """Return the mutual information of an observation and the label of its component.

    No term of the average is above minus the log of the label's weight, so neither is the estimate
    above the entropy of the labels. It is not cut at 0, which would bias it upwards.
    """
    terms = _log_terms(mixture, draws)
    gained = _within(mixture, labels, terms) - logsumexp(terms, axis=-1)
    return _expected(mixture, gained)


def _unit(draws: FloatArray) -> FloatArray:
    scaled: FloatArray = draws / np.sqrt((draws * draws).mean(0))
    return scaled


def _component_entropies(mixture: Mixture) -> FloatArray:
    total: FloatArray = gaussian_entropy(mixture.variance).sum(-1)
    return total


def _expected(mixture: Mixture, values: FloatArray) -> FloatArray:
    """Average values of shape (..., components, draws)."""
    mean: FloatArray = (mixture.weight * values.mean(-1)).sum(-1)
    return mean


def _log_terms(mixture: Mixture, draws: FloatArray) -> FloatArray:
    """Return log of weight times density: (..., component drawn from, draw, component asked)."""
    if draws.ndim != 2 or draws.shape[1] != mixture.dimensions:
        raise DataError(
            "draws have as many columns as an observation has numbers",
            found=draws.shape,
            expected=f"(any, {mixture.dimensions})",
        )
    spread = np.sqrt(mixture.variance)
    points = mixture.mean[..., :, None, :] + spread[..., :, None, :] * draws
    gaps = points[..., None, :] - mixture.mean[..., None, None, :, :]
    squares = (gaps * gaps / mixture.variance[..., None, None, :, :]).sum(-1)
    scale = (LN_2PI + np.log(mixture.variance)).sum(-1)[..., None, None, :]
    terms: FloatArray = _logs(mixture.weight) - 0.5 * (squares + scale)
    return terms


def _within(mixture: Mixture, labels: NDArray[np.int64], terms: FloatArray) -> FloatArray:
    """Return the log density given the label of the component that was drawn from."""
    if labels.shape != mixture.weight.shape:
        raise DataError("one label a component", found=labels.shape, expected=mixture.weight.shape)
    same = labels[:, None] == labels[None, :]
    shares = (same * mixture.weight).sum(-1)
    # A label without weight is never drawn from; any finite number may stand in its place.
    empty = shares <= 0.0
    kept = np.where((same | empty[:, None])[:, None, :], terms, -np.inf)
    within: FloatArray = logsumexp(kept, axis=-1) - np.where(empty, 0.0, _logs(shares))[:, None]
    return within


def _logs(weights: FloatArray) -> FloatArray:
    logs: FloatArray = np.full(weights.shape, -np.inf)
    np.log(weights, out=logs, where=weights > 0.0)
    return logs
