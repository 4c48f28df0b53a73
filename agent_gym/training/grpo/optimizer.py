"""Adam, whose state can be put into a file and read back to the same bits."""

from __future__ import annotations

import torch
from torch import Tensor

from agent_gym.core.errors import DataError
from agent_gym.training.grpo.config import AdamConfig
from agent_gym.training.grpo.trainable import TrainablePolicy

MOMENTS = ("exp_avg", "exp_avg_sq")


class Optimizer:
    """Steps the parameters of a policy; ``tensors`` is all it remembers, and the policy's numbers.

    Parameters are taken by name in sorted order, so that the norm of a gradient is the same sum
    whatever order a policy lists them in.
    """

    def __init__(self, policy: TrainablePolicy, config: AdamConfig) -> None:
        self._named = dict(sorted(policy.named_parameters()))
        self._max_norm = config.max_grad_norm
        self._adam = torch.optim.Adam(
            list(self._named.values()), lr=config.learning_rate, fused=True
        )

    def step(self, loss: Tensor) -> float:
        """Take one step down a loss; return the norm of its gradient, before it was cut."""
        self._adam.zero_grad(set_to_none=True)
        torch.autograd.backward([loss])
        norm = torch.nn.utils.clip_grad_norm_(list(self._named.values()), self._max_norm)
        found = float(norm)
        if not torch.isfinite(norm):
            raise DataError("the gradient is not a number", found=found)
        self._adam.step()
        return found

    def tensors(self) -> dict[str, Tensor]:
        """Return the parameters and what Adam remembers of each, by name."""
        kept: dict[str, Tensor] = {}
        for name, parameter in self._named.items():
            kept[f"policy.{name}"] = parameter.detach().clone()
            for moment in MOMENTS:
                state = self._adam.state.get(parameter, {})
                kept[f"{moment}.{name}"] = state.get(moment, torch.zeros_like(parameter)).clone()
        return kept

    def steps(self) -> int:
        """Return how many steps were taken."""
        states = [self._adam.state.get(parameter, {}) for parameter in self._named.values()]
        return max((int(state["step"]) for state in states if state), default=0)

    def restore(self, tensors: dict[str, Tensor], steps: int) -> None:
        """Put parameters and memory back as they were."""
        expected = self.tensors()
        if {n: t.shape for n, t in tensors.items()} != {n: t.shape for n, t in expected.items()}:
            raise DataError("the checkpoint is that of another policy", found=sorted(tensors)[:3])
        with torch.no_grad():
            for name, parameter in self._named.items():
                parameter.copy_(tensors[f"policy.{name}"])
                if steps:
                    moments = {moment: tensors[f"{moment}.{name}"].clone() for moment in MOMENTS}
                    self._adam.state[parameter] = {"step": torch.tensor(float(steps)), **moments}
