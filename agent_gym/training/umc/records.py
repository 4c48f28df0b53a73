"""What is told while UMC learns, and what is written when it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.keeper import ResumableFit
from agent_gym.core.manifest import Manifest
from agent_gym.evaluation.protocol.splits import Fold

HELD_OUT = "held_out_"


@dataclass(frozen=True, slots=True)
class FitEvent:
    """How far a fit is.

    Attributes:
        fit: Its name.
        step: Steps taken.
        steps: Steps that it takes at most.
        score: What the last look at held-out bars found, higher is better.
        done: Whether it is over.
    """

    fit: str
    step: int
    steps: int
    score: float | None
    done: bool


@dataclass(frozen=True, slots=True)
class TrainEvent:
    """How far a training is: the fold, and a fit within it; no fit where a fold begins or ends."""

    fold: int
    folds: int
    fit: FitEvent | None = None


TellFit: TypeAlias = Callable[[FitEvent], None]
Tell: TypeAlias = Callable[[TrainEvent], None]


@dataclass(frozen=True, slots=True)
class FitRecord:
    """What a fit came to, the same however often it was stopped.

    Attributes:
        name: Its place in the seed tree.
        warm: Whether it went on from earlier weights.
        steps: Steps taken.
        most_steps: Steps it would have taken if it had not been stopped early.
        looks: What each look at held-out bars found: the curve.
    """

    name: str
    warm: bool
    steps: int
    most_steps: int
    looks: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, name: str, fit: ResumableFit) -> FitRecord:
        """Return the record of a fit that is over."""
        looks = tuple(asdict(look) for look in fit.looks)
        return cls(name, fit.warm, fit.step_count, fit.steps, looks)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {
            "looks": [dict(look) for look in self.looks],
            "stopped_early": self.steps < self.most_steps,
        }


@dataclass(frozen=True, slots=True)
class Spent:
    """Wall and CPU seconds."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


def event_of(name: str, fit: ResumableFit) -> FitEvent:
    """Return how far a fit is."""
    looked = asdict(fit.looks[-1]) if fit.looks else {}
    scores = [value for key, value in looked.items() if key.startswith(HELD_OUT)]
    score = None if not scores else float(scores[0])
    return FitEvent(name, fit.step_count, fit.steps, score, fit.done)


@dataclass(frozen=True, slots=True, eq=False)
class FoldRecord:
    """One fold: its rows, its agent, and how that came about."""

    number: int
    fold: Fold | None
    agent: UMCAgent
    folder: Path
    fits: tuple[FitRecord, ...]
    spent: Spent

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; nothing hangs on the clock."""
        agent = self.agent
        return {
            "fold": self.number,
            "rows": None if self.fold is None else self.fold.as_dict(),
            "folder": self.folder.name,
            "tier": agent.mind.model.report.as_dict(),
            "policy": {"decides": agent.plans.decider, **agent.losses()},
            "fits": [fit.as_dict() for fit in self.fits],
        }


@dataclass(frozen=True, slots=True, eq=False)
class UMCTrained:
    """What a training leaves behind."""

    folder: Path
    folds: Sequence[FoldRecord]
    manifest: Manifest
    spent: Mapping[str, Spent]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values; equal trainings have equal bytes."""
        return {
            "kind": "umc training",
            "folds": [fold.as_dict() for fold in self.folds],
            "manifest": self.manifest.model_dump(mode="json"),
        }

    def timings(self) -> dict[str, Any]:
        """Return where the time went: fits with all their stops, folds as in this process."""
        return {
            "fits": {name: asdict(spent) for name, spent in self.spent.items()},
            "folds": {str(fold.number): asdict(fold.spent) for fold in self.folds},
        }
