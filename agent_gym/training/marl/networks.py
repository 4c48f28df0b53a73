"""The networks while they are trained: what ``agents.marl`` computes in numpy, in torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from agent_gym.agents.marl.network import ILLEGAL, HeadShape, NetworkConfig, first_weights
from agent_gym.agents.torch_parts import put_arrays
from agent_gym.core.seeds import Seeds

FIRST_VALUE_GAIN = 0.01
"""How large values are at first: nearly nothing, so that first advantages are what was paid.

With a gain of 1 they are the noise of an untrained critic, which is larger than early rewards, and
some teams learn to keep away from the battle.
"""


class Answers(NamedTuple):
    """The answer of every head, ``[steps, rows, width]``, and the memory before every step.

    ``memory`` is ``[steps + 1, rows, memory]``; its last entry is what is left after the last step.
    """

    heads: dict[str, Tensor]
    memory: Tensor


class TeamNetwork(nn.Module):
    """The twin of ``agents.marl.Network``; its parameters carry the same names."""

    def __init__(self, inputs: int, config: NetworkConfig, heads: Mapping[str, HeadShape]) -> None:
        super().__init__()
        widths = [inputs] + [config.hidden] * config.layers
        self.norm = nn.LayerNorm(inputs)
        self.layers = nn.ModuleList(
            nn.Linear(before, config.hidden) for before in widths[: config.layers]
        )
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in range(config.layers))
        self.memory: nn.GRUCell | None = None
        if config.recurrent:
            self.memory = nn.GRUCell(config.hidden, config.hidden)
            self.memory_norm = nn.LayerNorm(config.hidden)
        self.heads = nn.ModuleDict(
            {name: nn.Linear(config.hidden, head.width) for name, head in heads.items()}
        )

    def answers(self, inputs: Tensor, memory: Tensor, begun: Tensor) -> Answers:
        """Go through steps one after the other, for all rows side by side.

        Args:
            inputs: What is seen, ``[steps, rows, inputs]``.
            memory: What is remembered before the first step, ``[rows, memory]``.
            begun: Where an episode begins and nothing is remembered, ``[steps, rows]``.
        """
        x = self.norm(inputs)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(torch.relu(layer(x)))
        kept = memory.expand(len(inputs) + 1, *memory.shape)
        if self.memory is not None:
            kept = self._remember(x, memory, begun)
            x = self.memory_norm(kept[1:])
        return Answers({name: head(x) for name, head in self.heads.items()}, kept)

    def _remember(self, x: Tensor, memory: Tensor, begun: Tensor) -> Tensor:
        assert self.memory is not None
        kept = [memory]
        for seen, first in zip(x, begun, strict=True):
            kept.append(self.memory(seen, kept[-1].masked_fill(first.unsqueeze(-1), 0.0)))
        return torch.stack(kept)


def critic_network(
    inputs: int, config: NetworkConfig, heads: tuple[str, ...], seeds: Seeds
) -> TeamNetwork:
    """Return a critic as it is at first: one value a head for every agent."""
    shapes = {name: HeadShape(1, FIRST_VALUE_GAIN) for name in heads}
    network = TeamNetwork(inputs, config, shapes)
    put_arrays(network, first_weights(inputs, config, shapes, seeds), "critic")
    return network


def masked(logits: Tensor, legal: Tensor) -> Tensor:
    """Return the log of the chance of each action; what is not legal has none."""
    return torch.log_softmax(logits.masked_fill(~legal, ILLEGAL), dim=-1)
