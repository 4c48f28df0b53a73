"""Probes that cost too much for every training: each asks whether one idea is alive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from scipy.spatial import cKDTree

from agent_gym.agents.marl import Crowd
from agent_gym.core.errors import DataError
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.envs.exact import same_bits
from agent_gym.training.marl.amal.agent import AMALAgent
from agent_gym.training.marl.amal.buffers import PrimaryBuffer
from agent_gym.training.marl.amal.information import MutualInformationEstimator
from agent_gym.training.marl.amal.transitions import Transitions
from agent_gym.training.marl.amal.world_model import WorldModel
from agent_gym.training.marl.amal_config import AmalConfig
from agent_gym.training.marl.batch import Batch
from agent_gym.training.marl.collection import Collector
from agent_gym.training.marl.config import TeamTrainConfig
from agent_gym.training.marl.learner import Learner
from agent_gym.training.marl.worlds import MakeWorlds

GARBAGE = 1e6
NOISE = 2
"""Features of pure noise that are added to see whether information falls for them."""


def canary(agent: AMALAgent, config: TeamTrainConfig, make_worlds: MakeWorlds, batch: Batch) -> int:
    """Return how many arrays of the model differ if auxiliary rows are replaced by garbage.

    Two twins of the agent learn from the same primary window; one of them has garbage beside it.
    """
    if not len(agent.buffer.auxiliary):
        raise DataError("a canary needs auxiliary rows to spoil", where="auxiliary buffer")
    arrays, values = agent.state()
    learned = []
    for spoiled in (False, True):
        twin = AMALAgent(config, _amal(config), make_worlds)
        twin.restore(arrays, values)
        if spoiled:
            noise = Seeds(config.seed).child("canary").rng().standard_normal(4096)
            twin.buffer.auxiliary.spoil((GARBAGE * noise).astype(np.float32))
        twin.learn_world(batch, twin.information(batch))
        learned.append(twin.model.state())
    return sum(not same_bits(learned[0][name], learned[1][name]) for name in learned[0])


def symmetric(config: TeamTrainConfig) -> TeamTrainConfig:
    """Return a training whose model is fed auxiliary rows: what a canary has to notice."""
    amal = _amal(config)
    model = amal.model.model_copy(update={"symmetric": True})
    return config.model_copy(update={"amal": amal.model_copy(update={"model": model})})


def _amal(config: TeamTrainConfig) -> AmalConfig:
    if config.amal is None:
        raise DataError("this is no training of AMAL", where="amal")
    return config.amal


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
        )
        if self._model is None:
            widths = noised.seen.shape[1], noised.change.shape[1]
            self._model = WorldModel(*widths, self._model_config, self._seeds.child("model"))
        said = self._estimator.by_feature(self._model.forecast(noised))
        self.shares.append(float(said[:, -NOISE:].sum() / max(said.sum(), 1e-12)))
        self._buffer.add(noised)
        self._model.learn(self._buffer.view())


def coverage(rows: Transitions, features: int, count: int, seeds: Seeds) -> float:
    """Return how widely states are spread: the mean log distance to the nearest other one.

    Args:
        rows: Where states are taken from.
        features: How many columns are the state.
        count: How many are drawn; only equal counts compare.
        seeds: Of the draw.
    """
    if len(rows.ended) < count:
        raise DataError("too few rows", found=len(rows.ended), expected=f"at least {count}")
    picked = seeds.rng().choice(len(rows.ended), size=count, replace=False)
    states = rows.seen[picked, :features].astype(np.float64)
    distance = np.asarray(cKDTree(states).query(states, k=2)[0])[:, 1]
    return float(np.log(np.maximum(distance, 1e-6)).mean())


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
    worlds = make_worlds(config, crowd.n_teams * each)
    player = Collector(worlds, 1, 1, config.network.memory, seeds)
    going = np.ones(worlds.n_envs, np.bool_)
    total = np.zeros(worlds.n_envs)
    while going.any():
        batch, _ = player.collect(crowd)
        total += np.where(going, batch.rewards["team"][0], 0.0)
        going &= ~batch.ended[0]
    mean: FloatArray = total.reshape(crowd.n_teams, each).mean(axis=1)
    return mean


def as_if_fresh(batch: Batch) -> Batch:
    """Return a batch whose rows count in full, whoever played them."""
    return replace(batch, weight=1.0)
