"""How far a policy has gone from another one, on what was recorded."""

from __future__ import annotations

import torch

from agent_gym.core.errors import DataError
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.trainable import TrainablePolicy


def distances(
    champion: TrainablePolicy, challenger: TrainablePolicy, batch: RolloutBatch
) -> tuple[float, float]:
    """Return entropy of the challenger and its distance from the champion, nats of a single choice.

    Args:
        champion: Who serves.
        challenger: Who wants to.
        batch: What was recorded; both are asked what they would have done there.
    """
    with torch.no_grad():
        own, other = challenger.evaluate(batch), champion.evaluate(batch)
    if own.log_probs is None or other.log_probs is None:
        raise DataError("a policy does not tell the chances of what it did not do")
    seen = torch.from_numpy(batch.mask)
    chances = own.log_probs.exp()
    entropy = -(chances * own.log_probs).sum(-1)[seen].mean()
    return float(entropy), float((chances * (own.log_probs - other.log_probs)).sum(-1)[seen].mean())
