"""The four numbers. Each takes what makes the thing to be checked, so any model can be checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import AsymmetricGate, Projection, Tags
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.leakage.predictive import Predictive, mean_divergence

Weights = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, the most it may be, and whether it is within."""

    value: float
    bound: float
    passed: bool

    def as_dict(self) -> dict[str, float | bool | None]:
        """Return the fields for JSON, which knows no infinity: null is beyond all bounds."""
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "bound": self.bound, "passed": self.passed}


def purity(rows: Tags) -> Figure:
    """G1: count the rows of a training set that are not primary; none may be."""
    tainted = float(np.count_nonzero(~rows.primary))
    return Figure(tainted, 0.0, tainted == 0.0)


@dataclass(frozen=True, slots=True)
class NonInterference:
    """G2: parameters learned beside others and alone; equal only if every bit is."""

    digest_with: str
    digest_without: str
    largest_change: float

    @property
    def figure(self) -> Figure:
        """Return the largest change of a parameter; infinite if they are not the same ones."""
        return Figure(self.largest_change, 0.0, self.digest_with == self.digest_without)


def non_interference(train: Callable[[bool], Weights]) -> NonInterference:
    """G2: train with all that others do and without it, from the same seed.

    Args:
        train: Trains once; told whether the others are there. Returns the parameters by name.
    """
    return compare_weights(train(True), train(False))


def compare_weights(beside: Weights, alone: Weights) -> NonInterference:
    """G2 of two trainings that have been done."""
    return NonInterference(
        weights_digest(beside), weights_digest(alone), _largest_change(beside, alone)
    )


def weights_digest(weights: Weights) -> str:
    """Return the SHA-256 of all parameters: names, shapes, types and every bit."""
    found = sha256()
    for name in sorted(weights):
        values = np.ascontiguousarray(weights[name])
        found.update(f"{name}|{values.dtype.str}|{values.shape}|".encode())
        found.update(values.tobytes())
    return found.hexdigest()


@dataclass(frozen=True, slots=True)
class PredictiveLeakage:
    """G3: how far forecasts differ with others and without, and how far by chance alone."""

    leaked: float
    floor: float
    bound: float

    @property
    def figure(self) -> Figure:
        """Return what leaked and the most it may be."""
        return Figure(self.leaked, self.bound, self.leaked <= self.bound)


def predictive_leakage(
    forecast: Callable[[bool], Predictive],
    gate: AsymmetricGate,
    floor: Callable[[int], Predictive] | None = None,
) -> PredictiveLeakage:
    """G3: how far forecasts on held-out primary states differ, in nats.

    Args:
        forecast: Collects data, trains on it and forecasts; told whether the others are there.
        gate: Knows the bound.
        floor: The same without others, for trial 0 and trial 1 of its chances; what they differ by
            no leak can be told from. Where nothing is left to chance (a replay) there is none.
    """
    leaked = mean_divergence(forecast(True), forecast(False))
    least = mean_divergence(floor(0), floor(1)) if floor else 0.0
    return PredictiveLeakage(leaked, least, gate.leakage_limit(least))


def policy_influence(
    logits: Callable[[bool], FloatArray], gate: AsymmetricGate
) -> tuple[Figure, Projection]:
    """G4: how far others move the policy on held-out primary states after projection.

    Args:
        logits: The policy's logits in each state; told whether others taught it as well.
        gate: Projects and knows the bound.
    """
    found = gate.project(logits(False), logits(True))
    bound = gate.config.kl_threshold
    return Figure(found.divergence, bound, found.divergence <= bound), found


def _largest_change(one: Weights, other: Weights) -> float:
    if {k: v.shape for k, v in one.items()} != {k: v.shape for k, v in other.items()}:
        return math.inf
    changes = [np.abs(np.asarray(one[name], float) - other[name]) for name in one]
    return max((float(change.max(initial=0.0)) for change in changes), default=0.0)
