"""Closed forms and bounds of information about parameters.

The pairwise bounds (Kolchinsky and Tracey 2017) are too loose to be estimates; they are there to
check one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from agent_gym.agents.information.mixtures import Mixture, label_information
from agent_gym.core.types import FloatArray


def parameter_information(mean: ArrayLike, variance: ArrayLike, draws: FloatArray) -> FloatArray:
    """Return the entropy of the mean of the heads less the mean of their entropies.

    Args:
        mean: ``(..., heads, dimensions)``; every head counts the same.
        variance: Likewise.
        draws: Common random numbers, ``(count, dimensions)``.
    """
    heads = _heads(mean, variance)
    return label_information(heads, np.arange(heads.weight.size), draws)


def information_lower_bound(mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return a bound from below, by the Bhattacharyya distances of all pairs of heads."""
    heads = _heads(mean, variance)
    one, other = heads.variance[..., :, None, :], heads.variance[..., None, :, :]
    middle = 0.5 * (one + other)
    logs = np.log(middle) - 0.5 * (np.log(one) + np.log(other))
    return _pairwise((0.125 * _gaps(heads) / middle + 0.5 * logs).sum(-1))


def information_upper_bound(mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return a bound from above, by the KL divergences of all pairs of heads."""
    heads = _heads(mean, variance)
    one, other = heads.variance[..., :, None, :], heads.variance[..., None, :, :]
    ratio = one / other
    return _pairwise(0.5 * (ratio - 1.0 - np.log(ratio) + _gaps(heads) / other).sum(-1))


def moment_information(mean: ArrayLike, variance: ArrayLike) -> FloatArray:
    """Return a bound from above for every dimension: one Gaussian in place of the mixture.

    It is the entropy of a Gaussian with the mixture's moments less the mean entropy of the heads,
    so it is never below 0, and it is 0 where all heads agree.

    Args:
        mean: ``(..., heads, dimensions)``; every head counts the same.
        variance: Likewise.

    Example:
        >>> moment_information([[1.0], [-1.0]], [[1.0], [1.0]]).round(6).tolist()  # ln(2) / 2
        [0.346574]
    """
    heads = _heads(mean, variance)
    _, spread = heads.moments()
    within = (heads.weight[:, None] * np.log(heads.variance)).sum(-2)
    bound: FloatArray = np.maximum(0.5 * (np.log(spread) - within), 0.0)  # rounding alone is below
    return bound


def information_gain_linear(
    inputs: ArrayLike, covariance: ArrayLike, noise_variance: float
) -> FloatArray:
    """Return what one answer of a linear-Gaussian model says about its coefficients, exactly.

    Args:
        inputs: ``(..., coefficients)``: where the model is asked.
        covariance: Of the belief about the coefficients.
        noise_variance: Of one answer.

    Example:
        >>> round(float(information_gain_linear([2.0], [[3.0]], 4.0)), 6)  # half of ln(1 + 12/4)
        0.693147
    """
    rows = np.asarray(inputs, np.float64)
    doubt = np.einsum("...i,ij,...j->...", rows, np.asarray(covariance, np.float64), rows)
    gain: FloatArray = 0.5 * np.log1p(doubt / noise_variance)
    return gain


def gaussian_kl(
    mean: ArrayLike, variance: ArrayLike, other_mean: ArrayLike, other_variance: ArrayLike
) -> FloatArray:
    """Return KL[first || other] of Gaussians of one dimension.

    Example:
        >>> gaussian_kl(1.0, 1.0, 0.0, 1.0).item()
        0.5
    """
    mu, var, m, v = (
        np.asarray(part, np.float64) for part in (mean, variance, other_mean, other_variance)
    )
    divergence: FloatArray = 0.5 * (var / v - 1.0 - np.log(var / v) + (mu - m) ** 2 / v)
    return divergence


def _heads(mean: ArrayLike, variance: ArrayLike) -> Mixture:
    means, variances = (np.asarray(part, np.float64) for part in (mean, variance))
    count = means.shape[-2] if means.ndim > 1 else 1
    return Mixture(np.full(count, 1.0 / count), means, variances)


def _gaps(heads: Mixture) -> FloatArray:
    gaps: FloatArray = heads.mean[..., :, None, :] - heads.mean[..., None, :, :]
    return gaps * gaps


def _pairwise(distance: FloatArray) -> FloatArray:
    count = distance.shape[-1]
    bound: FloatArray = np.log(count) - logsumexp(-distance, axis=-1).mean(-1)
    return bound
