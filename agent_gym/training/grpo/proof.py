"""Does it learn, and only then? The questions that the tests and the published figures ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np
import torch

from agent_gym.agents.neural.policy import NeuralPolicy
from agent_gym.core.registry import Config
from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo.advantages import group_advantages
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.config import AdamConfig, AlarmLimits, EntropySchedule, GRPOConfig
from agent_gym.training.grpo.loss import LossInputs, policy_loss
from agent_gym.training.grpo.loss_config import LossConfig
from agent_gym.training.grpo.neural import NeuralLearner
from agent_gym.training.grpo.result import TrainingResult
from agent_gym.training.grpo.service import GRPOTrainingService
from agent_gym.training.grpo.signal_market import SignalMarket, SignalMarketConfig

Twist: TypeAlias = Literal["true", "flipped", "constant", "shuffled", "mixed"]
HELD_OUT = 200
GROUPS, MEMBERS = 8, 8
LEARNING = GRPOConfig(
    updates=60,
    epochs=2,
    adam=AdamConfig(learning_rate=0.02),
    entropy=EntropySchedule(start=0.0),
    alarms=AlarmLimits(max_kl=None, max_clip_share=None),
)
"""The settings of the proof; frozen."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question: which rewards the learner is told, in which market, with which settings."""

    twist: Twist = "true"
    config: GRPOConfig = LEARNING
    regime_sd: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """How one seed went on snapshots that it never saw, by the number of updates before.

    ``scores`` are of doing what the policy finds likeliest, ``expected`` of drawing from it.
    """

    seed: int
    best: float
    worst: float
    scores: dict[int, float]
    expected: dict[int, float]
    result: TrainingResult
    policy: NeuralPolicy = field(repr=False)


def learn(case: Case, seed: int, looks: tuple[int, ...] = ()) -> Answer:
    """Train a fresh policy on the signal market and look at it on snapshots it never saw.

    Args:
        case: The question.
        seed: Decides the policy, the snapshots and the play.
        looks: Updates before which it is looked at too; it is always looked at first and last.
    """
    market = SignalMarket(SignalMarketConfig(regime_sd=case.regime_sd))
    seeds = Seeds(seed).child("signal-market")
    held_out = SignalMarket().snapshots(Seeds(0).child("held-out"), HELD_OUT)
    learner = NeuralLearner(SignalMarket().policy(seeds.child("policy")))
    scores: dict[int, float] = {}
    expected: dict[int, float] = {}

    def look(update: int, policy: NeuralPolicy) -> None:
        scores[update] = market.score(policy, held_out)
        expected[update] = market.expected(policy, held_out)

    def source(update: int, own: NeuralLearner) -> RolloutBatch:
        if update in looks or update == 0:
            look(update, own.policy)
        here = seeds.child("update", update)
        snapshots = market.snapshots(here.child("snapshots"), GROUPS)
        batch = market.play(own.policy, snapshots, MEMBERS, here.child("play"))
        return TWISTS[case.twist](batch, here.child("twist"))

    result = GRPOTrainingService(case.config.model_copy(update={"seed": seed})).train(
        learner, source
    )
    look(case.config.updates, learner.policy)
    return Answer(
        seed=seed,
        best=market.best(held_out),
        worst=market.worst(held_out),
        scores=scores,
        expected=expected,
        result=result,
        policy=learner.policy,
    )


def _true(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    return batch


def _flipped(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    return replace(batch, rewards=-batch.rewards, returns=-batch.returns)


def _constant(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    return replace(batch, rewards=np.ones_like(batch.rewards), returns=np.ones(len(batch)))


def _shuffled(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    order = seeds.rng().permutation(len(batch))
    return replace(batch, rewards=batch.rewards[order], returns=batch.returns[order])


def _mixed(batch: RolloutBatch, seeds: Seeds) -> RolloutBatch:
    """Put trajectories of different snapshots into each group, as nobody should."""
    order = seeds.rng().permutation(len(batch))
    return replace(batch, group_keys=tuple(batch.group_keys[i] for i in order))


TWISTS: dict[Twist, Callable[[RolloutBatch, Seeds], RolloutBatch]] = {
    "true": _true,
    "flipped": _flipped,
    "constant": _constant,
    "shuffled": _shuffled,
    "mixed": _mixed,
}


class LengthBias(Config):
    """A game in which going on or stopping changes nothing about the reward.

    A coin decides between a right and a wrong branch, worth 1 and 0; from then on the policy may
    only go on or stop, up to ``length`` decisions. Whatever it learns about going on is bias.
    """

    groups: int = 512
    members: int = 8
    length: int = 8
    updates: int = 300
    learning_rate: float = 0.5


def length_bias(
    aggregation: Literal["grpo", "dr_grpo"], seed: int, game: LengthBias
) -> tuple[float, float]:
    """Return the chance of going on, in the right and in the wrong branch, after training."""
    rng = Seeds(seed).child("length-bias").rng()
    logits = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    length = game.length if aggregation == "dr_grpo" else None
    config = LossConfig(aggregation=aggregation, length=length)
    n = game.groups * game.members
    labels = np.repeat(np.arange(game.groups), game.members)
    for _ in range(game.updates):
        branch = rng.integers(0, 2, n)
        chance = torch.sigmoid(logits.detach()).numpy()[branch]
        goes_on = rng.random((n, game.length)) < chance[:, np.newaxis]
        before = np.cumprod(np.pad(goes_on[:, :-1], ((0, 0), (1, 0)), constant_values=True), axis=1)
        found = group_advantages(branch.astype(np.float64), labels, "none")
        own = logits[torch.from_numpy(branch)].unsqueeze(1)
        signs = torch.from_numpy(np.where(goes_on, 1.0, -1.0))
        current = torch.nn.functional.logsigmoid(own * signs)
        inputs = LossInputs(
            current=current,
            behaviour=current.detach(),
            advantages=torch.from_numpy(found.values),
            mask=torch.from_numpy(before.astype(np.bool_)),
        )
        (slope,) = torch.autograd.grad(policy_loss(inputs, config).loss, logits)
        logits = (logits - game.learning_rate * slope).detach().requires_grad_()
    wrong, right = torch.sigmoid(logits.detach()).tolist()
    return right, wrong
