"""What may join a training: more batches, more kinds of reward, and what they count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from agent_gym.agents.marl import TeamPolicy
from agent_gym.training.marl.amal_figures import AmalFigures
from agent_gym.training.marl.batch import Arrays, Batch
from agent_gym.training.marl.collection import Episodes
from agent_gym.training.marl.learner import LearnFigures


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """What is learned from in one iteration, without what is used again.

    Attributes:
        fresh: What the team itself has just played.
        others: What others have.
        shares: What kinds of reward beside the team's own count.
        floors: Effective shares below which batches are left out, by source.
        env_steps: All steps that were played for it, learned from or not.
        policy: The team as it was when it played.
        episodes: Those of the team that ended.
    """

    fresh: Batch
    others: tuple[Batch, ...]
    shares: Mapping[str, float]
    floors: Mapping[str, float]
    env_steps: int
    policy: TeamPolicy
    episodes: Episodes


class Mixer(Protocol):
    """Joins a training; it sees what was played before it is learned from."""

    @property
    def heads(self) -> tuple[str, ...]: ...
    @property
    def endless(self) -> frozenset[str]: ...
    def mix(self, batch: Batch, episodes: Episodes, policy: TeamPolicy) -> Mixed: ...
    def learned(self, figures: LearnFigures, policy: TeamPolicy, env_steps: int) -> AmalFigures: ...
    def state(self) -> tuple[Arrays, dict[str, Any]]: ...
    def restore(self, arrays: Arrays, values: dict[str, Any]) -> None: ...


def alone(batch: Batch, episodes: Episodes, policy: TeamPolicy) -> Mixed:
    """Return a team's window with nothing beside it."""
    return Mixed(batch, (), {}, {}, batch.env_steps, policy, episodes)
