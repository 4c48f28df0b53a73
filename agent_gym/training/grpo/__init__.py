"""GRPO: a policy learns from groups of recorded trajectories that began alike.

Belongs here: groups and advantages, the loss, the trainer, and the proof that it learns. Language
models and neural policies share all of it: the loss works on log-probabilities that are given.
May import: core, agents, rollouts, evaluation. Torch is used here.
Hands on: a changed policy and a TrainingResult; the artifact is the policy's own.
"""

from agent_gym.training.grpo.advantages import Advantages, group_advantages, tick_advantages
from agent_gym.training.grpo.batch import Recorded, RolloutBatch, recorded_of, stack
from agent_gym.training.grpo.best_and_worst import DPOConfig, SFTConfig, imitate_best, prefer_best
from agent_gym.training.grpo.config import AdamConfig, AlarmLimits, EntropySchedule, GRPOConfig
from agent_gym.training.grpo.loss import LossInputs, LossReport, policy_loss
from agent_gym.training.grpo.loss_config import (
    CispoSurrogate,
    ClipSurrogate,
    ImportanceConfig,
    LossConfig,
)
from agent_gym.training.grpo.neural import NeuralLearner
from agent_gym.training.grpo.result import TrainingResult, UpdateMetrics
from agent_gym.training.grpo.service import GRPOTrainingService
from agent_gym.training.grpo.stored import batch_of
from agent_gym.training.grpo.trainable import Evaluation, TrainablePolicy

__all__ = [
    "AdamConfig",
    "Advantages",
    "AlarmLimits",
    "CispoSurrogate",
    "ClipSurrogate",
    "DPOConfig",
    "EntropySchedule",
    "Evaluation",
    "GRPOConfig",
    "GRPOTrainingService",
    "ImportanceConfig",
    "LossConfig",
    "LossInputs",
    "LossReport",
    "NeuralLearner",
    "Recorded",
    "RolloutBatch",
    "SFTConfig",
    "TrainablePolicy",
    "TrainingResult",
    "UpdateMetrics",
    "batch_of",
    "group_advantages",
    "imitate_best",
    "policy_loss",
    "prefer_best",
    "recorded_of",
    "stack",
    "tick_advantages",
]
