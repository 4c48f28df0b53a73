"""Many teams that differ from one policy by a shift of its weights, played side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl.network import Floats, masked_log_probs
from agent_gym.agents.marl.policy import ACTION, Choice, TeamPolicy, choose
from agent_gym.core.errors import AgentError
from agent_gym.core.types import FloatArray

LAST_LAYER = (f"heads.{ACTION}.bias", f"heads.{ACTION}.weight")
"""The weights behind the shared layers: a bias and a row for every action."""


def sizes_of(policy: TeamPolicy, names: Sequence[str]) -> list[int]:
    """Return how many numbers each of the named weights has."""
    return [policy.weights[name].size for name in names]


class Crowd:
    """One team for every row of shifts; all that is played is split among them evenly.

    Where only the last layer is shifted, all teams share one pass through the layers before it.

    Args:
        policy: What they are shifted from.
        shifts: ``[teams, numbers]``, to be added to the named weights, one name after the other.
        names: Which weights are shifted.
    """

    def __init__(self, policy: TeamPolicy, shifts: FloatArray, names: Sequence[str]) -> None:
        sizes = sizes_of(policy, names)
        if shifts.ndim != 2 or shifts.shape[1] != sum(sizes):
            raise AgentError(
                "shifts do not fit the weights", found=shifts.shape, expected=f"(any, {sum(sizes)})"
            )
        parts = np.split(shifts, np.cumsum(sizes)[:-1], axis=1)
        shifted = {
            name: policy.weights[name] + part.reshape(-1, *policy.weights[name].shape)
            for name, part in zip(names, parts, strict=True)
        }
        self.policy, self.n_teams = policy, len(shifts)
        self._shifted = {name: each.astype(np.float32) for name, each in shifted.items()}
        self._whole = () if set(names) <= set(LAST_LAYER) else self._policies()

    def _policies(self) -> tuple[TeamPolicy, ...]:
        return tuple(
            self.policy.with_weights(
                self.policy.weights | {name: each[i] for name, each in self._shifted.items()}
            )
            for i in range(self.n_teams)
        )

    def act(
        self,
        observations: Floats,
        legal: NDArray[np.bool_],
        memory: Floats,
        draws: FloatArray | None = None,
    ) -> Choice:
        """Choose for every agent; the first environments are the first team's, and so on.

        Args:
            observations: What every agent sees, ``[environments, agents, features]``.
            legal: What each may do.
            memory: What each remembers.
            draws: As in ``TeamPolicy.act``.
        """
        seen, allowed, kept = map(self._split, (observations, legal, memory))
        found, kept = self.log_probs(seen, allowed, kept)
        joined = found.reshape(len(observations), *found.shape[2:])
        return choose(joined, kept.reshape(memory.shape), draws)

    def log_probs(
        self, observations: Floats, legal: NDArray[np.bool_], memory: Floats
    ) -> tuple[Floats, Floats]:
        """Return the log of the chance of each action by team, ``[teams, rows, agents, ...]``."""
        if self._whole:
            each = [
                one.log_probs(observations[i], legal[i], memory[i])
                for i, one in enumerate(self._whole)
            ]
            return np.stack([found for found, _ in each]), np.stack([kept for _, kept in each])
        features, memory = self.policy.features(observations, memory)
        bias, weight = (
            self._shifted.get(name, self.policy.weights[name][None]) for name in LAST_LAYER
        )
        rows = features.reshape(self.n_teams, -1, features.shape[-1])
        logits = rows @ weight.transpose(0, 2, 1) + bias[:, None]
        return masked_log_probs(logits.reshape(legal.shape), legal), memory

    def on_same(self, observations: Floats, legal: NDArray[np.bool_]) -> Floats:
        """Return the log of the chance of each action if every team saw the same rows anew."""
        memory = self.policy.memory(self.n_teams, len(observations))
        seen = np.broadcast_to(observations, (self.n_teams, *observations.shape))
        allowed = np.broadcast_to(legal, (self.n_teams, *legal.shape))
        return self.log_probs(seen, allowed, memory)[0]

    def _split(self, array: NDArray[Any]) -> NDArray[Any]:
        if len(array) % self.n_teams:
            raise AgentError(
                "environments cannot be split evenly",
                found=f"{len(array)} for {self.n_teams} teams",
            )
        return array.reshape(self.n_teams, len(array) // self.n_teams, *array.shape[1:])
