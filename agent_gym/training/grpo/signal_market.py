"""A market whose best policy is known: follow the signal. It shows whether learning works.

Each tick the price goes up or down by one; a signal says which way, and is right with a known
chance. Being long or short earns the move or loses it, and costs. Two columns of noise and the
time of day say nothing. What is best on a set of snapshots, and what is worst, is a plain sum, so
"learned it" is an equation and not an impression.

The world can be stepped like any other (``SignalWorld``) and played many snapshots at a time
(``SignalMarket.play``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from pydantic import Field

from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.agents.neural.policy import NeuralConfig, NeuralPolicy
from agent_gym.core.errors import VenueError
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    EpisodeStart,
    FloatArray,
    Nanos,
    Observation,
    Outcome,
    Role,
)
from agent_gym.training.grpo.batch import RolloutBatch

FEATURES = ("coin/signal", "coin/noise_1", "coin/noise_2", "account/time")
TRADER = Role("trader")
TICK_NS = 60_000_000_000


class SignalMarketConfig(Config):
    """How much there is to learn."""

    ticks: int = Field(default=16, ge=1)
    accuracy: float = Field(default=0.75, ge=0.5, le=1, description="how often the signal is right")
    cost: float = Field(default=0.1, ge=0, description="of holding a position for a tick")
    regime_sd: float = Field(
        default=0.0, ge=0, description="luck of a snapshot that every trajectory on it shares"
    )


@dataclass(frozen=True, slots=True)
class SignalSnapshots:
    """A number of snapshots: moves ``[S, T]``, what is seen ``[S, T, 4]``, luck ``[S]``."""

    moves: FloatArray
    seen: FloatArray
    luck: FloatArray

    def __len__(self) -> int:
        return len(self.moves)


@dataclass(frozen=True, slots=True)
class SignalMarket:
    """Draws snapshots, plays policies on them, and knows the best and the worst."""

    config: SignalMarketConfig = field(default_factory=SignalMarketConfig)

    def policy(self, seeds: Seeds, *, hidden: tuple[int, ...] = (16,)) -> NeuralPolicy:
        """Return a fresh policy for this market."""
        inputs = FeatureLayout.of(FEATURES).inputs
        return NeuralPolicy.create(NeuralConfig(hidden=hidden), inputs, seeds)

    def snapshots(self, seeds: Seeds, n: int) -> SignalSnapshots:
        """Draw snapshots."""
        ticks, rng = self.config.ticks, seeds.rng()
        moves = np.where(rng.random((n, ticks)) < 0.5, -1.0, 1.0)
        right = rng.random((n, ticks)) < self.config.accuracy
        seen = np.empty((n, ticks, len(FEATURES)))
        seen[:, :, 0] = np.where(right, moves, -moves)
        seen[:, :, 1:3] = rng.standard_normal((n, ticks, 2))
        seen[:, :, 3] = np.arange(ticks) / ticks
        return SignalSnapshots(moves, seen, self.config.regime_sd * rng.standard_normal(n))

    def rewards(self, snapshots: SignalSnapshots, sides: FloatArray) -> FloatArray:
        """Return what sides ``[S, ..., T]`` earn tick by tick; luck comes with the last tick."""
        more = (slice(None), *(np.newaxis,) * (sides.ndim - 2))
        earned = sides * snapshots.moves[more] - self.config.cost * np.abs(sides)
        earned[..., -1] += snapshots.luck[more]
        return np.asarray(earned)

    def play(
        self, policy: NeuralPolicy, snapshots: SignalSnapshots, members: int, seeds: Seeds
    ) -> RolloutBatch:
        """Let a policy play each snapshot several times; a snapshot is a group."""
        log_probs = policy.log_probs(snapshots.seen)
        reach = np.exp(log_probs).cumsum(axis=-1)
        n, ticks = snapshots.moves.shape
        draws = seeds.rng().random((n, members, ticks)) * reach[:, np.newaxis, :, -1]
        chosen = (draws[..., np.newaxis] >= reach[:, np.newaxis]).sum(axis=-1)
        of_chosen = np.take_along_axis(
            np.broadcast_to(log_probs[:, np.newaxis], (*chosen.shape, log_probs.shape[-1])),
            chosen[..., np.newaxis],
            axis=-1,
        )[..., 0]
        rewards = self.rewards(snapshots, policy.levels[chosen]).reshape(n * members, ticks)
        name = "/".join(seeds.path)
        return RolloutBatch(
            ids=tuple(f"{name}:{s}.{m}" for s in range(n) for m in range(members)),
            group_keys=tuple(f"{name}:{s}" for s in range(n) for _ in range(members)),
            versions=(policy.version,) * (n * members),
            feature_names=FEATURES,
            observations=np.repeat(snapshots.seen, members, axis=0),
            actions=policy.levels[chosen].reshape(n * members, ticks, 1),
            rewards=rewards,
            log_probs=of_chosen.reshape(n * members, ticks),
            mask=np.ones((n * members, ticks), dtype=np.bool_),
            finished=np.ones(n * members, dtype=np.bool_),
            returns=rewards.sum(axis=1),
        )

    def score(self, policy: NeuralPolicy, snapshots: SignalSnapshots) -> float:
        """Return the mean return of a policy that always does what it finds likeliest."""
        sides = policy.levels[policy.log_probs(snapshots.seen).argmax(axis=-1)]
        return self._mean(snapshots, sides)

    def expected(self, policy: NeuralPolicy, snapshots: SignalSnapshots) -> float:
        """Return the mean return of a policy that draws, exactly: over all it could draw."""
        chances = np.exp(policy.log_probs(snapshots.seen))
        sides = np.broadcast_to(policy.levels, chances.shape)
        each = sides * snapshots.moves[..., np.newaxis] - self.config.cost * np.abs(sides)
        return float((chances * each).sum(axis=(1, 2)).mean() + snapshots.luck.mean())

    def best(self, snapshots: SignalSnapshots) -> float:
        """Return the mean return of following the signal."""
        return self._mean(snapshots, snapshots.seen[:, :, 0])

    def worst(self, snapshots: SignalSnapshots) -> float:
        """Return the mean return of betting against the signal."""
        return self._mean(snapshots, -snapshots.seen[:, :, 0])

    def _mean(self, snapshots: SignalSnapshots, sides: FloatArray) -> float:
        return float(self.rewards(snapshots, sides).sum(axis=1).mean())


class SignalWorld:
    """Implements SoloWorld on one snapshot that the seed of an episode decides."""

    roles = (TRADER,)

    def __init__(self, market: SignalMarket) -> None:
        self._market = market

    def start(self, role: Role, seeds: Seeds) -> EpisodeStart:
        """Say what is shown and what may be done."""
        return EpisodeStart(role, FEATURES, ActionSpec(), seeds, Nanos(TICK_NS))

    def reset(self, seeds: Seeds) -> Mapping[Role, Observation]:
        """Draw a snapshot and show its first tick."""
        self._snapshot = self._market.snapshots(seeds, 1)
        self._sides: list[float] = []
        return {TRADER: self._observation()}

    def step(self, actions: Mapping[Role, Action]) -> Mapping[Role, Outcome]:
        """Play one tick by role."""
        return {TRADER: self.advance(actions[TRADER])}

    def advance(self, action: Action) -> Outcome:
        """Play one tick."""
        side = float(np.asarray(action, dtype=np.float64).reshape(-1)[0])
        if not -1.0 <= side <= 1.0:
            raise VenueError("a side out of bounds", found=side, expected="-1 to 1")
        t, snapshot = len(self._sides), self._snapshot
        self._sides.append(side)
        ended = t + 1 == self._market.config.ticks
        reward = side * snapshot.moves[0, t] - self._market.config.cost * abs(side)
        reward += float(snapshot.luck[0]) if ended else 0.0
        return Outcome(self._observation(), float(reward), terminated=ended)

    def _observation(self) -> Observation:
        t = len(self._sides)
        shown = min(t, self._market.config.ticks - 1)
        return Observation(Nanos(t * TICK_NS), self._snapshot.seen[0, shown].copy())
