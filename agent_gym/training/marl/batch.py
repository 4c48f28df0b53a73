"""What was played, as plain arrays: time first, then environments, then agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.marl.network import Floats
from agent_gym.agents.named_arrays import under
from agent_gym.training.marl.worlds import living

Bools: TypeAlias = NDArray[np.bool_]
Arrays: TypeAlias = dict[str, NDArray[Any]]
FRESH, REUSED, AUXILIARY = "fresh", "reused", "auxiliary"
TEAM = "team"
"""The reward that the world pays, and the value head that expects it."""
REWARDS = "rewards/"


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A window of T steps in E environments with N agents.

    Attributes:
        source: Who played it; figures are told by source.
        weight: What one of its rows counts.
        observations: ``[T+1, E, N, features]``; the last is only for the value of what comes after.
        state: ``[T+1, E, features]``.
        legal: ``[T, E, N, actions]``.
        actions: ``[T, E, N]``.
        log_probs: Of those actions, when they were drawn, ``[T, E, N]``.
        rewards: By the name of the value head that expects them, each ``[T, E]``.
        ended: Whether the step ended an episode, ``[T, E]``; running out of time is an end.
        begun: Whether what is seen begins an episode, ``[T+1, E]``.
        actor_memory: What each agent remembered where a chunk begins, ``[chunks, E, N, memory]``.
        critic_memory: What the critic remembered where the window begins, ``[E, N, memory]``.
    """

    source: str
    weight: float
    observations: Floats
    state: Floats
    legal: Bools
    actions: NDArray[np.int64]
    log_probs: Floats
    rewards: Mapping[str, Floats]
    ended: Bools
    begun: Bools
    actor_memory: Floats
    critic_memory: Floats

    @property
    def alive(self) -> Bools:
        """Return which agents lived when they acted, ``[T, E, N]``."""
        return living(self.legal)

    @property
    def env_steps(self) -> int:
        """Return how many steps of environments it holds."""
        return self.ended.size

    def paid(self, name: str, rewards: Floats) -> Batch:
        """Return it with one more kind of reward, ``[T, E]``."""
        return replace(self, rewards={**self.rewards, name: rewards})

    def again(self, weight: float) -> Batch:
        """Return it as something to be learned from once more."""
        return replace(self, source=REUSED, weight=weight)

    def arrays(self) -> Arrays:
        """Return all arrays by name, for a file."""
        plain = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("source", "weight", "rewards")
        }
        return plain | {f"{REWARDS}{name}": array for name, array in self.rewards.items()}

    @classmethod
    def of(cls, arrays: Arrays, source: str, weight: float) -> Batch:
        """Return the batch that ``arrays`` were taken from."""
        rewards = under(REWARDS, arrays)
        plain = {name: array for name, array in arrays.items() if not name.startswith(REWARDS)}
        return cls(source=source, weight=weight, rewards=rewards, **plain)


def in_chunks(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return ``[T, E, N, ...]`` as chunks of one length side by side: ``[length, chunks, ...]``.

    Example:
        >>> in_chunks(np.arange(4).reshape(4, 1, 1), 2).tolist()
        [[0, 2], [1, 3]]
    """
    steps, envs, agents, *rest = array.shape
    split = array.reshape(steps // length, length, envs * agents, *rest)
    rows = steps // length * envs * agents
    return np.moveaxis(split, 1, 0).reshape(length, rows, *rest)


def from_chunks(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Undo ``in_chunks`` for an array of ``[T, E, N]``.

    Example:
        >>> from_chunks(np.array([[0, 2], [1, 3]]), (4, 1, 1)).ravel().tolist()
        [0, 1, 2, 3]
    """
    steps, envs, agents = shape
    length = len(array)
    split = array.reshape(length, steps // length, envs * agents)
    return np.moveaxis(split, 0, 1).reshape(shape)
