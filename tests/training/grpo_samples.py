"""Small learners and batches that the tests of GRPO share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from agent_gym.core.seeds import Seeds
from agent_gym.training.grpo import (
    AdamConfig,
    AlarmLimits,
    EntropySchedule,
    GRPOConfig,
    NeuralLearner,
)
from agent_gym.training.grpo.batch import RolloutBatch
from agent_gym.training.grpo.signal_market import SignalMarket

torch.set_num_threads(1)
MARKET = SignalMarket()
OFF = AlarmLimits(max_kl=None, max_clip_share=None)
QUICK = GRPOConfig(
    updates=6,
    adam=AdamConfig(learning_rate=0.02),
    entropy=EntropySchedule(start=0.05, updates=6),
    alarms=OFF,
    checkpoint_every=1,
)


def learner(seed: int = 0) -> NeuralLearner:
    return NeuralLearner(MARKET.policy(Seeds(seed).child("policy")))


def played(own: NeuralLearner, seed: int = 0, groups: int = 4, members: int = 4) -> RolloutBatch:
    seeds = Seeds(seed).child("played")
    snapshots = MARKET.snapshots(seeds.child("snapshots"), groups)
    return MARKET.play(own.policy, snapshots, members, seeds.child("play"))


def source(update: int, own: NeuralLearner) -> RolloutBatch:
    return played(own, seed=100 + update)


def without_log_probs(batch: RolloutBatch) -> RolloutBatch:
    return replace(batch, log_probs=np.full_like(batch.log_probs, np.nan))
