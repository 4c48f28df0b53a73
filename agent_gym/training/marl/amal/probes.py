"""Probes that cost too much for every training: each asks whether one idea is alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from agent_gym.agents.marl import Crowd
from agent_gym.agents.marl.network import Floats
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.training.marl.amal.agent import AMALAgent
from agent_gym.training.marl.amal.buffers import PrimaryBuffer
from agent_gym.training.marl.amal.information import MutualInformationEstimator
from agent_gym.training.marl.amal.transitions import Transitions
from agent_gym.training.marl.amal.world_model import WorldModel
from agent_gym.training.marl.batch import TEAM, Batch, Bools
from agent_gym.training.marl.collection import Actor, Collector
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.worlds import MakeWorlds

LEAST_DISTANCE = 1e-6
NOISE = 2
"""Features of pure noise that are added to see whether information falls for them."""


class NoiseProbe:
    """A model of its own that is shown the same windows and noise beside them.

    Args:
        agent: Whose model is copied in shape.
        seeds: Of the noise and of the model.
    """

    def __init__(self, agent: AMALAgent, n_envs: int, seeds: Seeds) -> None:
        self._core, config = len(agent.core), agent.config
        self._model_config, self._seeds = config.model, seeds
        self._estimator = MutualInformationEstimator("mutual_information", config.variance_floor)
        self._buffer = PrimaryBuffer(config.model.window, config.model.held_out_every, n_envs)
        self._model: WorldModel | None = None
        self.shares: list[float] = []

    def take_in(self, rows: Transitions) -> None:
        """Measure the share of the noise in the information of a window, then learn from it."""
        rng = self._seeds.child("noise", len(self.shares)).rng()
        before, after = rng.standard_normal((2, len(rows.ended), NOISE)).astype(np.float32)
        core, rest = rows.seen[:, : self._core], rows.seen[:, self._core :]
        change = np.where(rows.ended[:, None], np.float32(0.0), after - before)
        noised = Transitions(
            np.concatenate([core, before, rest], axis=1),
            np.concatenate([rows.change, change], axis=1),
            rows.reward,
            rows.ended,
            rows.source,
        )
        if self._model is None:
            widths = noised.seen.shape[1], noised.change.shape[1]
            self._model = WorldModel(*widths, self._model_config, self._seeds.child("model"))
        said = self._estimator.by_feature(self._model.forecast(noised))
        self.shares.append(float(said[:, -NOISE:].sum() / max(said.sum(), 1e-12)))
        self._buffer.add(noised)
        self._model.learn(self._buffer.view())


class Place(NamedTuple):
    """Where probes play: what a training is fought in, and how many battles at a time."""

    config: TeamTrainConfig
    make_worlds: MakeWorlds
    battles: int


class Battles(NamedTuple):
    """One battle in every environment, ``[T, E, ...]``; ``going`` says which steps are of it."""

    states: Floats
    rewards: Floats
    going: Bools


def coverage(states: FloatArray, battle: NDArray[np.int64]) -> float:
    """Return how widely states are spread: the mean log distance to the nearest of another battle.

    The next step of the same battle is always near, and says how fast a team moves, not how far
    its battles lie apart. Only equally many states out of equally many battles compare.

    Args:
        states: One a row.
        battle: Of which battle each is.
    """
    if len(np.unique(battle)) < 2:
        raise DataError("too few battles", found=len(np.unique(battle)), expected="at least 2")
    nearest = np.empty(len(states))
    for each in np.unique(battle):
        own = battle == each
        nearest[own] = cKDTree(states[~own]).query(states[own])[0]
    return _log_distance(nearest)


class Sight(NamedTuple):
    """How auxiliary teams see other states than the primary one, in logs of distances.

    ``coverage`` is by how much more widely their states are spread. ``novelty`` is by how much
    further off they lie from what the primary team has seen than its own next battles do.
    """

    coverage: float
    novelty: float


def sight(theirs: Actor, ours: Actor, place: Place, core: NDArray[np.int64], seeds: Seeds) -> Sight:
    """Compare the states of two actors in equally many battles from the same starts.

    Args:
        theirs: Auxiliary teams.
        ours: The primary team, which plays as many battles from other starts beside.
        place: Where they play.
        core: Features of the state that count.
        seeds: Of starts and draws.
    """
    games = (theirs, "new"), (ours, "new"), (ours, "known")
    played = [battles(actor, place, seeds.child(name)) for actor, name in games]
    count = min(int(each.going.sum()) for each in played) // 2
    (far, far_of), (near, near_of), (known, _) = (
        _drawn(each, core, count, seeds.child("draw")) for each in played
    )
    off = [_log_distance(cKDTree(known).query(each)[0]) for each in (far, near)]
    return Sight(coverage(far, far_of) - coverage(near, near_of), off[0] - off[1])


def _drawn(
    played: Battles, core: NDArray[np.int64], count: int, seeds: Seeds
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return some states of battles, and of which battle each is."""
    states = played.states[played.going][:, core].astype(np.float64)
    battle = np.nonzero(played.going)[1]
    picked = seeds.rng().choice(len(states), size=count, replace=False)
    return states[picked], battle[picked]


def _log_distance(distances: Any) -> float:
    return float(np.log(np.maximum(np.asarray(distances), LEAST_DISTANCE)).mean())


def battles(actor: Actor, place: Place, seeds: Seeds) -> Battles:
    """Return one battle in every environment."""
    worlds = place.make_worlds(place.config, place.battles)
    player = Collector(worlds, 1, 1, place.config.network.memory, seeds)
    states, rewards, going = [], [], [np.ones(place.battles, np.bool_)]
    while going[-1].any():
        batch, _ = player.collect(actor)
        states.append(batch.state[0])
        rewards.append(batch.rewards[TEAM][0])
        going.append(going[-1] & ~batch.ended[0])
    return Battles(np.stack(states), np.stack(rewards), np.stack(going[:-1]))


def gradient(learner: Learner, batches: Sequence[Batch], shares: dict[str, float]) -> FloatArray:
    """Return the gradient of the policy's loss on batches, flat; nothing is changed."""
    actor = learner.parts.actor
    loss = learner.loss_on(batches, shares)
    found = torch.autograd.grad([loss], list(actor.parameters()))
    return np.concatenate([each.numpy().ravel() for each in found]).astype(np.float64)


def cosine(one: FloatArray, other: FloatArray) -> float:
    """Return the cosine of two directions.

    Example:
        >>> cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0])).__round__(3)
        0.707
    """
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12))


def returns_anew(
    crowd: Crowd, config: TeamTrainConfig, make_worlds: MakeWorlds, each: int, seeds: Seeds
) -> FloatArray:
    """Return the mean return of every team in fresh battles, which no selection has seen."""
    played = battles(crowd, Place(config, make_worlds, crowd.n_teams * each), seeds)
    total = np.where(played.going, played.rewards, 0.0).sum(axis=0)
    mean: FloatArray = total.reshape(crowd.n_teams, each).mean(axis=1)
    return mean


def as_if_fresh(batch: Batch) -> Batch:
    """Return a batch whose rows count in full, whoever played them."""
    return replace(batch, weight=1.0)
