"""UMC as something that is trained for minutes: checkpoints, folds one after the other, a record.

Belongs here: the keeper of its slow fits, the trainer that walks folds, and what it leaves behind.
May import: core, agents, evaluation, markets. Torch is not used here: the fits themselves are the
agent's. Hands on: a folder with the agent of every fold, its record, and checkpoints.
"""

from agent_gym.training.umc.checkpoints import CheckpointKeeper
from agent_gym.training.umc.config import UMCTrainConfig
from agent_gym.training.umc.records import FitRecord, FoldRecord, TrainEvent, UMCTrained
from agent_gym.training.umc.trainer import UMCTrainer
from agent_gym.training.umc.verdict import judge_walk

__all__ = [
    "CheckpointKeeper",
    "FitRecord",
    "FoldRecord",
    "TrainEvent",
    "UMCTrainConfig",
    "UMCTrained",
    "UMCTrainer",
    "judge_walk",
]
