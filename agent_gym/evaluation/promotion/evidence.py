"""What the gate is told: both sides on the same sealed snapshots, checked facts, and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.core.types import FloatArray


class Pair(Config):
    """The return of champion and challenger on one sealed snapshot with the same seed."""

    snapshot_id: str = Field(min_length=1)
    slice: str = Field(min_length=1)
    champion: float
    challenger: float

    @property
    def difference(self) -> float:
        """Return what the challenger earned more."""
        return self.challenger - self.champion


class Integrity(Config):
    """Facts that the caller has checked; one that is false ends the matter.

    Attributes:
        artifact_hash_ok: Every file of the challenger has the hash of its signed manifest.
        policy_loads: The policy was read from exactly these files.
        replay_equal: A sealed episode played twice gave the same trajectory.
        snapshots_hash_ok: Every sealed snapshot has the hash that it is known by.
        data_manifest_ok: The trajectories trained on are those that the manifest names.
        notes: What was found where one of them is false.
    """

    artifact_hash_ok: bool
    policy_loads: bool
    replay_equal: bool
    snapshots_hash_ok: bool
    data_manifest_ok: bool
    notes: str = ""


class Figures(Config):
    """What the challenger did on the sealed set; None is "not measured"."""

    max_drawdown: float | None = None
    ruined: int | None = None
    invalid_rate: float | None = None
    latency_ms: float | None = None
    entropy: float | None = None
    kl_to_champion: float | None = None


class Evidence(Config):
    """Everything that one candidate is judged by."""

    champion: str
    challenger: str
    sealed_set: str
    pairs: tuple[Pair, ...]
    integrity: Integrity
    figures: Figures

    @model_validator(mode="after")
    def _sane(self) -> Evidence:
        names = [pair.snapshot_id for pair in self.pairs]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise ValueError(f"a snapshot is one pair, found twice: {', '.join(twice[:3])}")
        if self.champion == self.challenger:
            raise ValueError("a champion is not its own challenger")
        return self


class Look(Config):
    """One counted look at a sealed set, and what this candidate may spend on it."""

    sealed_set: str
    candidate: str
    number: int = Field(ge=1)
    alpha: float = Field(gt=0.0, lt=1.0)


def alpha_of(number: int, alpha: float = 0.05) -> float:
    """Return what candidate ``number`` may spend, so that all of them together spend ``alpha``.

    Example:
        >>> [round(alpha_of(k), 5) for k in (1, 2, 3)]
        [0.0304, 0.0076, 0.00338]
        >>> round(sum(alpha_of(k) for k in range(1, 100_000)), 4)
        0.05
    """
    if number < 1:
        raise ValueError(f"looks are counted from 1, found {number}")
    return 6.0 * alpha / (math.pi * number) ** 2


def differences_of(pairs: Sequence[Pair]) -> FloatArray:
    """Return what the challenger earned more, pair by pair."""
    return np.array([pair.difference for pair in pairs], dtype=np.float64)


def by_slice(pairs: Sequence[Pair]) -> dict[str, FloatArray]:
    """Return the differences of every slice, slices in order of their names."""
    names = sorted({pair.slice for pair in pairs})
    return {name: differences_of([pair for pair in pairs if pair.slice == name]) for name in names}
