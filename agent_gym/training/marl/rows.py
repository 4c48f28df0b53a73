"""What a learner goes through: chunks of steps side by side, of all batches together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl.network import Floats
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.batch import Batch, Bools
from agent_gym.training.marl.returns import normalized

LARGEST_MERIT = 5.0
"""In units of the spread of advantages, so that one lucky battle does not decide everything."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One row a step and agent, laid out ``[chunk, rows, ...]``; memories are ``[1, rows, ...]``.

    Attributes:
        seen: Inputs of the actor.
        legal: What could be done.
        actions: What was done.
        drawn: Its log-probability then.
        ratios: Its chance now over its chance then.
        used: Whether the policy learns from it.
        merits: By how much a row that is too unlikely now was better than expected; 0 elsewhere.
        weights: What it counts.
        begun: Whether it begins an episode.
        actor_memory: What the actor remembered before the chunk.
        critic_seen: Inputs of the critic.
        critic_memory: What the critic remembered before the chunk.
        advantages: By value head, in units of its reward.
        targets: By value head, in units of its reward.
        before: What the critic said, by value head, in its own scale.
    """

    seen: Floats
    legal: Bools
    actions: NDArray[np.int64]
    drawn: Floats
    ratios: FloatArray
    used: Bools
    merits: FloatArray
    weights: Floats
    begun: Bools
    actor_memory: Floats
    critic_seen: Floats
    critic_memory: Floats
    advantages: Mapping[str, FloatArray]
    targets: Mapping[str, FloatArray]
    before: Mapping[str, Floats]

    def advantage(self, shares: Mapping[str, float]) -> FloatArray:
        """Return one advantage a row, scaled over the rows that are used; the others have none.

        The first head counts in full. Another one counts by its share of the first one's spread,
        so that a share means the same whatever its reward is measured in.
        """
        (first, whole), *others = self.advantages.items()
        if unknown := sorted(set(shares) - {name for name, _ in others}):
            raise ValueError(f"no share can be given to {unknown}; the whole is {first!r}")
        total = whole
        for name, each in others:
            scale = whole[self.used].std() / max(float(each[self.used].std()), 1e-8)
            total = total + shares.get(name, 0.0) * scale * each
        return normalized(total, self.used)

    def merit(self) -> FloatArray:
        """Return merits in units of the spread of the first head's advantages that are used."""
        whole = next(iter(self.advantages.values()))[self.used]
        if not whole.size:
            return np.zeros_like(self.merits)
        scaled: FloatArray = np.minimum(self.merits / (whole.std() + 1e-8), LARGEST_MERIT)
        return scaled


def ids_of(shape: tuple[int, ...], agents: int) -> Floats:
    """Return which agent it is, for every row of ``shape`` (whose last axis are the agents)."""
    return np.broadcast_to(np.eye(agents, dtype=np.float32), (*shape, agents))


def actor_inputs(batch: Batch) -> Floats:
    """Return what every agent saw, and which agent it is, ``[T, E, N, inputs]``."""
    seen = batch.observations[:-1]
    return np.concatenate([seen, ids_of(seen.shape[:-1], seen.shape[-2])], axis=-1)


def critic_inputs(batch: Batch, *, with_state: bool) -> Floats:
    """Return what the critic sees for every agent, ``[T+1, E, N, inputs]``."""
    seen = batch.observations
    parts = [seen, ids_of(seen.shape[:-1], seen.shape[-2])]
    if with_state:
        shape = (*seen.shape[:-1], batch.state.shape[-1])
        parts.insert(0, np.broadcast_to(batch.state[:, :, None], shape))
    return np.concatenate(parts, axis=-1)


def for_agents(per_env: NDArray[Any], agents: int) -> NDArray[Any]:
    """Return ``[T, E]`` for every agent, ``[T, E, N]``."""
    return np.broadcast_to(per_env[..., None], (*per_env.shape, agents))


def joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all parts side by side."""
    if len(parts) == 1:
        return parts[0]
    made: dict[str, Any] = {}
    for field in fields(Rows):
        each = [getattr(part, field.name) for part in parts]
        if isinstance(each[0], Mapping):
            made[field.name] = {
                name: np.concatenate([one[name] for one in each], axis=1) for name in each[0]
            }
        else:
            made[field.name] = np.concatenate(each, axis=1)
    return replace(parts[0], **made)
