"""Teams that learn together: MAPPO, its reuse of past samples, IPPO, and AMAL.

Belongs here: playing many environments at once, the losses, the learner, looks and records.
May import: core, envs (the battle), agents, evaluation's statistics, and torch.
Hands on: ``train_team``, which leaves a policy that ``agents.marl`` plays without torch.
"""

from agent_gym.training.marl.amal_config import AmalConfig, WorldModelConfig
from agent_gym.training.marl.amal_figures import AmalFigures
from agent_gym.training.marl.batch import Batch
from agent_gym.training.marl.config import (
    EvaluationConfig,
    LearnConfig,
    ReuseConfig,
    StoppingConfig,
    TeamTrainConfig,
    shipped_config,
)
from agent_gym.training.marl.learner import Learner, LearnFigures
from agent_gym.training.marl.looks import Look, look_at
from agent_gym.training.marl.records import CurveRow, Progress, Reached, TrainingRecord
from agent_gym.training.marl.trainer import TeamTrainer, train_team

__all__ = [
    "AmalConfig",
    "AmalFigures",
    "Batch",
    "CurveRow",
    "EvaluationConfig",
    "LearnConfig",
    "LearnFigures",
    "Learner",
    "Look",
    "Progress",
    "Reached",
    "ReuseConfig",
    "StoppingConfig",
    "TeamTrainConfig",
    "TeamTrainer",
    "TrainingRecord",
    "WorldModelConfig",
    "look_at",
    "shipped_config",
    "train_team",
]
