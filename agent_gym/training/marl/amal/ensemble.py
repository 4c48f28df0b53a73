"""Several networks in one: every layer is one batched product, and no weight is shared."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from agent_gym.agents.marl.foresight import LOG_VARIANCES
from agent_gym.core.seeds import Seeds

LEAST_LOG_VARIANCE, LARGEST_LOG_VARIANCE = LOG_VARIANCES


class Told(NamedTuple):
    """Of every head: mean and log-variance, ``[heads, rows, outputs]``, and the logit of an end."""

    mean: Tensor
    log_variance: Tensor
    end: Tensor


class Ensemble(nn.Module):
    """Heads of equal shape with first weights of their own.

    Args:
        heads: How many.
        widths: Inputs, hidden layers, and the numbers whose mean and variance are told.
        seeds: Where first weights come from.
    """

    def __init__(self, heads: int, widths: tuple[int, ...], seeds: Seeds) -> None:
        super().__init__()
        self.outputs = widths[-1]
        sizes = (*widths[:-1], 2 * self.outputs + 1)
        rng = seeds.rng()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for before, after in pairwise(sizes):
            drawn = rng.standard_normal((heads, before, after)) / np.sqrt(before)
            self.weights.append(nn.Parameter(torch.from_numpy(drawn.astype(np.float32))))
            self.biases.append(nn.Parameter(torch.zeros(heads, 1, after)))

    def told(self, seen: Tensor) -> Told:
        """Return what every head says of its rows, ``[heads, rows, inputs]``."""
        x = seen
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            x = x if i == last else functional.silu(x)
        n = self.outputs
        mean, raw, end = x[..., :n], x[..., n:-1], x[..., -1]
        below = LARGEST_LOG_VARIANCE - functional.softplus(LARGEST_LOG_VARIANCE - raw)
        within = LEAST_LOG_VARIANCE + functional.softplus(below - LEAST_LOG_VARIANCE)
        return Told(mean, within, end)
