"""What the trainer asks of a policy, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import torch
from torch import Tensor

from agent_gym.training.grpo.batch import RolloutBatch


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a policy makes of recorded decisions, as tensors of ``[trajectories, ticks]``.

    ``entropy`` and ``log_probs`` (all that could have been done, ``[trajectories, ticks, ...,
    choices]``) are for policies that can give them; then entropy and distance are exact.
    """

    log_prob: Tensor
    entropy: Tensor | None = None
    log_probs: Tensor | None = None


class TrainablePolicy(Protocol):
    """A policy with parameters that a gradient can change.

    ``version`` is the content hash of all that decides what it does, as it is now. Evaluating a
    batch draws nothing at random: no dropout, so that the first ratio is exactly 1.
    """

    @property
    def version(self) -> str: ...
    def named_parameters(self) -> Iterable[tuple[str, torch.nn.Parameter]]: ...
    def evaluate(self, batch: RolloutBatch) -> Evaluation: ...


P = TypeVar("P", bound=TrainablePolicy)
Source: TypeAlias = Callable[[int, P], RolloutBatch]
"""Gives the batch of an update: always the same for the same one, or resuming is not exact."""
