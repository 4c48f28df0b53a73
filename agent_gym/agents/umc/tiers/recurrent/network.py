"""The network of the recurrent tier, as torch computes it while it is trained.

A bar's observation moves a memory; from the memory before the bar come K priors of the hidden
state, from memory and observation together its posterior. The posterior must explain the bar
(emission), and with the memory after the bar it foretells the returns to come (K return heads).
Nothing the trader does is an input: it does not move this market.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.weights import SPREAD_FROM, SPREAD_TO
from agent_gym.core.seeds import Seeds

LATENT_FROM, LATENT_TO = -4.0, 2.0
"""Bounds of the log deviation of the hidden state."""
EMISSION_FROM, EMISSION_TO = math.log(0.1), 2.0
"""Bounds of the log deviation of an observed number; one that never errs must not pay for ever."""
FIRST_SPREADS = (-0.7, 0.0, 0.7)
FIRST_FORECAST_SCALE = 0.3
"""How large the last layer of the return heads begins: forecasts start out near plain."""


class Normal(NamedTuple):
    """Mean and log deviation of independent Gaussians."""

    mean: Tensor
    spread: Tensor


class Outlook(NamedTuple):
    """What each head says of the returns ahead, in deviations known now.

    Attributes:
        logits: Log weights of the components for the next bar, (..., head, component).
        means: Their means.
        spreads: Their log deviations.
        later: A Gaussian for each later bar, (..., head, bar).
    """

    logits: Tensor
    means: Tensor
    spreads: Tensor
    later: Normal


@dataclass(frozen=True, slots=True)
class Pass:
    """All that one pass over sequences gives, one row a bar."""

    prior: Normal
    posterior: Normal
    memory_before: Tensor
    outlook: Outlook


class RecurrentNetwork(nn.Module):
    """The network; every parameter is drawn from the seed tree, by its name."""

    def __init__(self, config: RecurrentConfig, columns: int, seeds: Seeds) -> None:
        super().__init__()
        self.config = config
        memory, latent, heads = config.memory, config.latent, config.heads
        next_bar, later = 3 * config.components, 2 * (config.horizon_bars - 1)
        self.missing = nn.Parameter(torch.zeros(columns))
        self.embed = nn.Linear(2 * columns, config.embedding)
        self.gru = nn.GRU(config.embedding, memory, batch_first=True)
        self.prior_in = nn.Linear(memory, heads * config.head_width)
        self.prior_out = nn.Parameter(torch.zeros(heads, config.head_width, 2 * latent))
        self.prior_bias = nn.Parameter(torch.zeros(heads, 2 * latent))
        self.posterior_in = nn.Linear(memory + config.embedding, config.width)
        self.posterior_out = nn.Linear(config.width, 2 * latent)
        self.emission_in = nn.Linear(memory + latent, config.width)
        self.emission_out = nn.Linear(config.width, 2 * columns)
        self.tail = nn.Parameter(torch.zeros(()))
        self.return_in = nn.Linear(memory + latent, heads * config.head_width)
        self.return_out = nn.Parameter(torch.zeros(heads, config.head_width, next_bar))
        self.return_bias = nn.Parameter(torch.zeros(heads, next_bar))
        self.later_out = nn.Parameter(torch.zeros(heads, config.head_width, later))
        self.later_bias = nn.Parameter(torch.zeros(heads, later))
        self.shortcut = nn.Parameter(torch.zeros(heads, columns)) if config.shortcut else None
        self._draw(seeds)

    @override
    def forward(self, values: Tensor, known: Tensor, start: Tensor) -> Pass:
        """Follow sequences from the memories they start with.

        Args:
            values: Scaled observations, (sequence, bar, column).
            known: 1 where they are known.
            start: Memory before the first bar, (sequence, memory).
        """
        filled = known * values + (1.0 - known) * self.missing
        seen = nn.functional.silu(self.embed(torch.cat((filled, 1.0 - known), dim=-1)))
        after, _ = self.gru(seen, start.unsqueeze(0))
        before = torch.cat((start.unsqueeze(1), after[:, :-1]), dim=1)
        posterior = self._posterior(before, seen)
        return Pass(
            self._prior(before), posterior, before, self._outlook(after, posterior.mean, filled)
        )

    def emission(self, memory: Tensor, latent: Tensor) -> Normal:
        """Return level and log deviation of each observed number, given the hidden state."""
        hidden = nn.functional.silu(self.emission_in(torch.cat((memory, latent), dim=-1)))
        mean, spread = self.emission_out(hidden).chunk(2, dim=-1)
        return Normal(mean, _between(spread, EMISSION_FROM, EMISSION_TO))

    def degrees(self) -> Tensor:
        """Return the degrees of freedom of an observed return, above 3."""
        return 3.0 + nn.functional.softplus(self.tail + 1.0) * 4.0

    def _prior(self, memory: Tensor) -> Normal:
        told = self._heads(self.prior_in(memory), self.prior_out, self.prior_bias)
        mean, spread = told.chunk(2, dim=-1)
        return Normal(mean, _between(spread, LATENT_FROM, LATENT_TO))

    def _posterior(self, memory: Tensor, seen: Tensor) -> Normal:
        hidden = nn.functional.silu(self.posterior_in(torch.cat((memory, seen), dim=-1)))
        mean, spread = self.posterior_out(hidden).chunk(2, dim=-1)
        return Normal(mean, _between(spread, LATENT_FROM, LATENT_TO))

    def _outlook(self, memory: Tensor, latent: Tensor, filled: Tensor) -> Outlook:
        read = self.return_in(torch.cat((memory, latent), dim=-1))
        out = torch.cat((self.return_out, self.later_out), dim=-1)
        bias = torch.cat((self.return_bias, self.later_bias), dim=-1)
        told = self._heads(read, out, bias)
        parts, more = self.config.components, self.config.horizon_bars - 1
        logits, means, spreads, later, later_spreads = torch.split(
            told, [parts, parts, parts, more, more], dim=-1
        )
        if self.shortcut is not None:
            means = means + (filled @ self.shortcut.T).unsqueeze(-1)
        return Outlook(
            torch.log_softmax(logits, dim=-1),
            means,
            _between(spreads, SPREAD_FROM, SPREAD_TO),
            Normal(later, _between(later_spreads, SPREAD_FROM, SPREAD_TO)),
        )

    def _heads(self, read: Tensor, out: Tensor, bias: Tensor) -> Tensor:
        hidden = nn.functional.silu(read).view(*read.shape[:-1], *out.shape[:2])
        told: Tensor = torch.einsum("...kw,kwo->...ko", hidden, out) + bias
        return told

    def _draw(self, seeds: Seeds) -> None:
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                bound = self._first_bound(name, parameter)
                drawn = seeds.child(name).rng().uniform(-bound, bound, tuple(parameter.shape))
                parameter.copy_(torch.from_numpy(np.asarray(drawn)))
            self.embed.weight[:, self.missing.numel() :] = 0.0  # a gap never met changes nothing
            parts = self.config.components
            self.return_bias[:, 2 * parts :] = torch.tensor(
                [FIRST_SPREADS[j % len(FIRST_SPREADS)] for j in range(parts)]
            )

    def _first_bound(self, name: str, parameter: Tensor) -> float:
        if name in ("missing", "shortcut", "tail") or name.endswith("_bias"):
            return 0.0
        if name.startswith("gru."):
            return 1.0 / math.sqrt(self.config.memory)
        if name in ("prior_out", "return_out", "later_out"):
            scale = 1.0 if name == "prior_out" else FIRST_FORECAST_SCALE
            return scale / math.sqrt(self.config.head_width)
        module = self.get_submodule(name.split(".")[0])
        assert isinstance(module, nn.Linear)
        return 1.0 / math.sqrt(module.in_features)


def _between(spread: Tensor, low: float, high: float) -> Tensor:
    return spread.clamp(low, high)
