"""What is told while a team learns, and what is written when it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agent_gym.agents.marl import TeamPolicy
from agent_gym.core.manifest import Manifest
from agent_gym.training.marl.amal_figures import AmalFigures
from agent_gym.training.marl.best import Confirmed
from agent_gym.training.marl.collection import Episodes
from agent_gym.training.marl.learner import LearnFigures
from agent_gym.training.marl.looks import Look

MILESTONES = (0.8, 0.95)
Status: TypeAlias = Literal["done", "stopped_early"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a training is, told after every iteration; ``look`` where there was one.

    ``amal`` are the figures of what joined the training, if something did.
    """

    iteration: int
    env_steps: int
    total_steps: int
    episodes: Episodes
    figures: LearnFigures
    look: Look | None
    amal: AmalFigures | None = None


Listener: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class CurveRow:
    """A look, and the iteration before it.

    ``mean_wins`` are those of the mean of the team over its last steps, None without one.
    ``train_win_rate`` and ``train_return`` are those of drawn actions, None if no episode ended;
    greedy figures are far ahead of them.
    """

    env_steps: int
    episodes: int
    wins: int
    mean_return: float
    mean_length: float
    mean_wins: int | None
    train_win_rate: float | None
    train_return: float | None
    policy_loss: float
    value_loss: float
    entropy: float
    approx_kl: float
    clip_fraction: float
    used: float
    ess: Mapping[str, float]

    @property
    def win_rate(self) -> float:
        """Return the share of greedy episodes that was won."""
        return self.wins / self.episodes

    @classmethod
    def of(
        cls,
        env_steps: int,
        look: Look,
        mean: Look | None,
        episodes: Episodes,
        figures: LearnFigures,
    ) -> CurveRow:
        """Return the row of a look."""
        told = asdict(figures)
        return cls(
            env_steps=env_steps,
            **asdict(look),
            mean_wins=None if mean is None else mean.wins,
            train_win_rate=episodes.win_rate,
            train_return=episodes.mean_return,
            **{name: told[name] for name in cls.__slots__ if name in told},
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"win_rate": self.win_rate}


@dataclass(frozen=True, slots=True)
class Reached:
    """When a win rate was first seen; if it never was, how long it was waited for."""

    env_steps: int
    reached: bool


def first_reaching(curve: Sequence[CurveRow], win_rate: float) -> Reached:
    """Return the steps to a win rate, as censored data: "later than this" if it was not reached."""
    for row in curve:
        if row.win_rate >= win_rate:
            return Reached(row.env_steps, True)
    return Reached(curve[-1].env_steps if curve else 0, False)


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of this training with all its stops; ``looks`` are CPU seconds up to each look."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    looks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRecord:
    """What a training leaves behind.

    Attributes:
        folder: Where it lies.
        policy: The team as it is after the last step; nothing was picked.
        algorithm: What was done.
        status: Whether it played all steps.
        env_steps: Steps of all environments together.
        curve: One row a look.
        final: Greedy episodes from fresh starts.
        best: The team of the best look, from the same fresh starts.
        manifest: What it was made from.
        spent: How long it took; no part of the written record, which equal trainings share.
        amal: Figures of every iteration, if AMAL joined the training.
    """

    folder: Path
    policy: TeamPolicy
    algorithm: str
    status: Status
    env_steps: int
    curve: tuple[CurveRow, ...]
    final: Look
    best: Confirmed
    manifest: Manifest
    spent: Spent
    amal: tuple[AmalFigures, ...] = ()

    def steps_to(self, win_rate: float) -> Reached:
        """Return when a win rate was first seen."""
        return first_reaching(self.curve, win_rate)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; equal trainings have equal bytes."""
        told = {"amal": [each.as_dict() for each in self.amal]} if self.amal else {}
        return told | {
            "kind": "training of a team",
            "algorithm": self.algorithm,
            "map": self.policy.contract.map,
            "model_hash": self.policy.version,
            "status": self.status,
            "env_steps": self.env_steps,
            "steps_to": {str(rate): asdict(self.steps_to(rate)) for rate in MILESTONES},
            "final": asdict(self.final) | {"win_rate": self.final.interval.as_dict()},
            "best": self.best.as_dict(),
            "curve": [row.as_dict() for row in self.curve],
            "manifest": self.manifest.model_dump(mode="json"),
        }
