"""What auxiliary teams may differ by: which weights are shifted, and in which directions."""

from __future__ import annotations

import numpy as np

from agent_gym.agents.marl import Crowd, TeamPolicy
from agent_gym.agents.marl.crowd import LAST_LAYER, sizes_of
from agent_gym.agents.marl.network import Floats
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.batch import Bools

ROUNDS = 6
FACTORS = (0.2, 5.0)
LARGEST_SHIFT = 20.0
"""Of a single weight: what is e**20 times as likely is certain, and teams do not differ more."""


class ShiftSpace:
    """Directions in the weights of a policy.

    Args:
        policy: Whose weights they are.
        config: Which ones are shifted.
        seeds: Where random directions come from.
    """

    def __init__(self, policy: TeamPolicy, config: AmalConfig, seeds: Seeds) -> None:
        kind = config.cem_space
        self.names = (
            LAST_LAYER[:1]
            if kind == "bias"
            else tuple(policy.weights)
            if kind == "all"
            else LAST_LAYER
        )
        total = sum(sizes_of(policy, self.names))
        self._directions: FloatArray | None = None
        self.dim = total
        if kind == "subspace":
            self.dim = min(config.cem_directions, total)
            drawn = seeds.child("directions").rng().standard_normal((total, self.dim))
            self._directions = np.linalg.qr(drawn)[0].T

    def crowd(self, policy: TeamPolicy, shifts: FloatArray) -> Crowd:
        """Return the teams that shifts along the directions make of a policy."""
        whole = shifts if self._directions is None else shifts @ self._directions
        return Crowd(policy, whole, self.names)


def divergences(crowd: Crowd, seen: Floats, legal: Bools, alive: Bools) -> FloatArray:
    """Return each team's KL divergence from the policy in nats, mean over the living."""
    theirs, ours = _both(crowd, seen, legal)
    each = (np.exp(theirs) * (theirs - ours)).sum(axis=-1)
    found: FloatArray = (each * alive).sum(axis=(1, 2)) / max(int(alive.sum()), 1)
    return found


def distances(crowd: Crowd, seen: Floats, legal: Bools, alive: Bools) -> FloatArray:
    """Return the Jensen-Shannon divergence of every pair of teams, mean over the living."""
    logs = crowd.on_same(seen, legal).astype(np.float64)
    chances = np.exp(logs)
    count = max(int(alive.sum()), 1)
    entropy = -(chances * logs).sum(axis=-1)
    apart: FloatArray = np.zeros((len(logs), len(logs)))
    for i in range(len(logs) - 1):
        middle = 0.5 * (chances[i] + chances[i + 1 :])
        mixed = -(middle * np.log(np.maximum(middle, 1e-300))).sum(axis=-1)
        gained = mixed - 0.5 * (entropy[i] + entropy[i + 1 :])
        apart[i, i + 1 :] = (gained * alive).sum(axis=(1, 2)) / count
    return np.maximum(apart + apart.T, 0.0)


def _both(crowd: Crowd, seen: Floats, legal: Bools) -> tuple[FloatArray, FloatArray]:
    theirs = crowd.on_same(seen, legal).astype(np.float64)
    ours, _ = crowd.policy.log_probs(seen, legal, crowd.policy.memory(len(seen)))
    return theirs, ours.astype(np.float64)


def rescaling(found: float, wanted: float, shifts: FloatArray) -> float:
    """Return by what shifts are to be multiplied so that a divergence becomes another one.

    Where moments leave teams no choice, no shift makes them differ enough. So no shift is left
    above the largest one; otherwise they would grow without end, until what is not legal is done.

    Example:
        >>> rescaling(0.1, 0.4, np.array([1.0])), rescaling(0.0, 0.4, np.array([16.0]))
        (2.0, 1.25)
    """
    factor = float(np.clip(np.sqrt(wanted / max(found, 1e-12)), *FACTORS))
    largest = float(np.abs(shifts).max())
    return min(factor, LARGEST_SHIFT / max(largest, 1e-12))
