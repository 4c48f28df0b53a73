"""What the next bar will say about which head is right, for many bars at once."""

from __future__ import annotations

import math

import numpy as np

from agent_gym.agents.umc.efe import stratified_draws
from agent_gym.agents.umc.tiers.contract import Forecasts
from agent_gym.core.kernels import door
from agent_gym.core.types import FloatArray

DRAWS = np.ascontiguousarray(stratified_draws(64)[:, 0])


@door("void(float64[:,::1], float64[:,::1], float64[:,::1], float64[::1], float64[::1])")
def expected_information(
    chance: FloatArray, mean: FloatArray, variance: FloatArray, draws: FloatArray, out: FloatArray
) -> None:
    """Write the mutual information of the next return and the head it comes from, in nats."""
    heads, mixed = chance.shape[1], np.empty(draws.size)
    for t in range(chance.shape[0]):
        total = 0.0
        for k in range(heads):
            if chance[t, k] <= 0.0:
                continue
            spread, gained = math.sqrt(variance[t, k]), 0.0
            mixed[:] = 0.0
            for j in range(heads):
                ratio = math.sqrt(variance[t, k] / variance[t, j])
                apart = (mean[t, k] - mean[t, j]) / spread
                for i in range(draws.size):
                    gap = ratio * (apart + draws[i])
                    within = math.exp(0.5 * (draws[i] * draws[i] - gap * gap))
                    mixed[i] += chance[t, j] * ratio * within
            for i in range(draws.size):
                gained -= math.log(mixed[i])
            total += chance[t, k] * gained / draws.size
        out[t] = total


def head_information(told: Forecasts, draws: FloatArray = DRAWS) -> FloatArray:
    """Return what the next bar is expected to say about which head is right, one number a bar.

    Heads are taken as Gaussians of their mean and variance, weighed by their chances. The result
    is at most the entropy of the chances.
    """
    out = np.empty(told.chance.shape[0])
    chance, mean, variance = map(np.ascontiguousarray, (told.chance, told.mean, told.variance))
    expected_information(chance, mean, variance, draws, out)
    return out
