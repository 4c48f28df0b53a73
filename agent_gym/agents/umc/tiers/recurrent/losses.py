"""What the network is taught by: its variational free energy, bar by bar.

Per bar: what the posterior fails to explain of the bar, what it costs to tell posterior from
priors, and how badly the returns of the next bars were foretold from what is known at its close.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from agent_gym.agents.umc.tiers.recurrent.config import RecurrentConfig
from agent_gym.agents.umc.tiers.recurrent.network import (
    Normal,
    Outlook,
    Pass,
    RecurrentNetwork,
)

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences to learn from.

    Attributes:
        values: Scaled observations, (sequence, bar, column).
        known: 1 where they are known.
        ahead: Returns of the next bars in deviations, (sequence, bar, bars ahead).
        weights: How often each head's resampled past holds the bar, (sequence, bar, head).
        start: Memory before the first bar, (sequence, memory).
        noise: Standard normal numbers for the hidden state, (sequence, bar, latent).
    """

    values: Tensor
    known: Tensor
    ahead: Tensor
    weights: Tensor
    start: Tensor
    noise: Tensor


@dataclass(frozen=True, slots=True)
class FreeEnergy:
    """The parts of the loss in nats, one number a bar.

    Attributes:
        emission: What the bar costs, given the hidden state.
        kl: Divergence of posterior from priors, before any nats are free.
        ahead: What the returns of the next bars cost.
        total: What is made small.
    """

    emission: Tensor
    kl: Tensor
    ahead: Tensor
    total: Tensor


def free_energy(network: RecurrentNetwork, batch: Batch) -> FreeEnergy:
    """Return the variational free energy of each bar."""
    config = network.config
    told: Pass = network(batch.values, batch.known, batch.start)
    latent = told.posterior.mean + told.posterior.spread.exp() * batch.noise
    emission = _emission(network, network.emission(told.memory_before, latent), batch)
    kl = (batch.weights * divergence(told.posterior, told.prior)).mean(dim=-1)
    paid = _paid(config, told, batch.weights)
    ahead = (batch.weights * _ahead(told.outlook, batch.ahead)).mean(dim=-1)
    total = emission + config.kl_weight * paid + config.return_weight * ahead
    return FreeEnergy(emission, kl, ahead, total)


def divergence(posterior: Normal, prior: Normal) -> Tensor:
    """Return the divergence of the posterior from each head's prior, in nats."""
    mean, spread = posterior.mean.unsqueeze(-2), posterior.spread.unsqueeze(-2)
    ratio = torch.exp(2.0 * (spread - prior.spread))
    apart = (mean - prior.mean) ** 2 * torch.exp(-2.0 * prior.spread)
    return (0.5 * (ratio + apart - 1.0) + prior.spread - spread).sum(dim=-1)


def next_return_density(outlook: Outlook, value: Tensor) -> Tensor:
    """Return the log density each head gives to the next return, in deviations."""
    reached = gaussian(value[..., None, None], Normal(outlook.means, outlook.spreads))
    return torch.logsumexp(outlook.logits + reached, dim=-1)


def gaussian(value: Tensor, normal: Normal) -> Tensor:
    """Return the log density of independent Gaussians."""
    apart = (value - normal.mean) * torch.exp(-normal.spread)
    return -0.5 * apart * apart - normal.spread - HALF_LOG_TAU


def _paid(config: RecurrentConfig, told: Pass, weights: Tensor) -> Tensor:
    """Return the divergence above the free nats, with most of its pull on the priors.

    The posterior pays in full: at a discount, with a variance that is learned, it would be worth
    its while to copy each bar into the hidden state, and the free energy would rise. Priors have
    no free nats, so that they are taught from the first step on.
    """
    posterior, prior = told.posterior, told.prior
    still = Normal(posterior.mean.detach(), posterior.spread.detach())
    fixed = Normal(prior.mean.detach(), prior.spread.detach())
    paid = (weights * divergence(posterior, fixed)).mean(dim=-1).clamp(min=config.free_nats)
    taught = (weights * divergence(still, prior)).mean(dim=-1)
    pull = config.kl_balance / (1.0 - config.kl_balance)
    return paid + pull * (taught - taught.detach())


def _emission(network: RecurrentNetwork, level: Normal, batch: Batch) -> Tensor:
    """Return the cost of each bar: Student's t for its return, Gaussians for the other numbers."""
    plain = gaussian(batch.values[..., 1:], Normal(level.mean[..., 1:], level.spread[..., 1:]))
    spread = level.spread[..., 0]
    degrees = network.degrees()
    apart = (batch.values[..., 0] - level.mean[..., 0]) * torch.exp(-spread)
    heavy = (
        torch.lgamma(0.5 * (degrees + 1.0))
        - torch.lgamma(0.5 * degrees)
        - 0.5 * torch.log(math.pi * degrees)
        - spread
        - 0.5 * (degrees + 1.0) * torch.log1p(apart * apart / degrees)
    )
    rest = (batch.known[..., 1:] * plain).sum(dim=-1)
    return -(batch.known[..., 0] * heavy + rest)


def _ahead(outlook: Outlook, ahead: Tensor) -> Tensor:
    """Return the cost of the returns ahead, all bars together, for each head."""
    next_bar = next_return_density(outlook, ahead[..., 0])
    later = gaussian(ahead[..., None, 1:], outlook.later).sum(dim=-1)
    return -(next_bar + later)
