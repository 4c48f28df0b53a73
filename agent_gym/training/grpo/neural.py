"""The neural policy while it is trained: the same network in torch, in double precision."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.core.errors import DataError
from agent_gym.core.types import FloatArray
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.loss import categorical_entropy
from agent_gym.training.grpo.trainable import Evaluation


class NeuralLearner:
    """Implements TrainablePolicy on a NeuralPolicy; ``policy`` is what it has become."""

    def __init__(self, policy: NeuralPolicy) -> None:
        self._base = policy
        self._made = policy
        self._prepared: tuple[RolloutBatch, Tensor, Tensor, Tensor] | None = None
        self._parameters = {
            name: torch.nn.Parameter(torch.from_numpy(np.array(array)))
            for name, array in policy.weights.items()
            if name.startswith("layers.")
        }

    @property
    def policy(self) -> NeuralPolicy:
        """Return the policy as it is now; training it further changes nothing in the copy.

        The numbers are compared: the counters of torch do not see what a fused optimiser writes.
        """
        now = {name: parameter.detach().numpy() for name, parameter in self._parameters.items()}
        if any(not np.array_equal(array, self._made.weights[name]) for name, array in now.items()):
            self._made = self._base.with_weights(now)
        return self._made

    @property
    def version(self) -> str:
        """Return the hash of the weights and settings as they are now."""
        return self.policy.version

    def named_parameters(self) -> Iterable[tuple[str, torch.nn.Parameter]]:
        """Return the numbers of the layers; the scaling of the inputs is not trained."""
        return self._parameters.items()

    def evaluate(self, batch: RolloutBatch) -> Evaluation:
        """Return log-probability and entropy of each decision, all markets together."""
        blocks, pull, chosen = self._prepare(batch)
        log_probs = self._forward(blocks, pull)
        taken = log_probs.gather(-1, chosen.unsqueeze(-1)).squeeze(-1)
        return Evaluation(taken.sum(-1), categorical_entropy(log_probs).sum(-1), log_probs)

    def _forward(self, blocks: Tensor, pull: Tensor) -> Tensor:
        last = len(self._base.config.hidden)
        x = blocks
        for i in range(last + 1):
            x = x @ self._parameters[f"layers.{i}.weight"] + self._parameters[f"layers.{i}.bias"]
            x = torch.tanh(x) if i < last else x
        return torch.log_softmax(x - pull, dim=-1)

    def _prepare(self, batch: RolloutBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Scale the inputs and find the levels, once for all epochs of a batch."""
        if self._prepared is None or self._prepared[0] is not batch:
            self._prepared = (batch, *self._tensors(batch))
        return self._prepared[1:]

    def _tensors(self, batch: RolloutBatch) -> tuple[Tensor, Tensor, Tensor]:
        base, clip = self._base, self._base.config.clip
        columns = FeatureLayout.of(batch.feature_names).columns(base.inputs)
        blocks = batch.observations[..., columns]
        seen = ((blocks - base.weights["offset"]) * base.weights["scale"]).clip(-clip, clip)
        chosen = _levels_of(batch, base.levels)
        pull = base.pull(blocks)
        return torch.from_numpy(seen), torch.from_numpy(pull), torch.from_numpy(chosen)


def _levels_of(
    batch: RolloutBatch, levels: FloatArray
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return which level each action is; an action of another policy is refused."""
    chosen = np.searchsorted(levels, batch.actions).clip(max=len(levels) - 1)
    wrong = (levels[chosen] != batch.actions) & batch.mask[..., np.newaxis]
    if wrong.any():
        row, tick, market = (int(i) for i in np.argwhere(wrong)[0])
        raise DataError(
            "an action is none of the policy's levels",
            where=f"trajectory {batch.ids[row]}, tick {tick}, market {market}",
            found=float(batch.actions[row, tick, market]),
            expected=levels.tolist(),
        )
    return chosen.astype(np.int64)
