"""The desk's learning layer: what happened, what would have happened, and a model that may say no.

Belongs here: analysis of the desk's memory, paper outcomes, tables, the trained acceptor, drift,
retraining with promotion and rollback. Scikit-learn and River are used in this folder alone.
May import: core, markets, exchange, agents, evaluation.
Hands on: ``BehaviorReport``; a ``DeskModel``, which the desk takes as its acceptor.
"""

from agent_gym.training.desk.behavior import BehaviorReport
from agent_gym.training.desk.config import (
    DriftConfig,
    PaperConfig,
    PromotionConfig,
    RetrainingConfig,
    TrainingConfig,
)
from agent_gym.training.desk.dataset import Dataset
from agent_gym.training.desk.drift import DriftAlarm, DriftMonitor
from agent_gym.training.desk.model import DeskModel, load_model
from agent_gym.training.desk.paper import PaperDesk, PaperOutcome
from agent_gym.training.desk.research import ResearchEngine
from agent_gym.training.desk.retraining import RetrainingLoop, RetrainReport
from agent_gym.training.desk.store import ModelStore
from agent_gym.training.desk.training import TrainingModule, TrainResult

__all__ = [
    "BehaviorReport",
    "Dataset",
    "DeskModel",
    "DriftAlarm",
    "DriftConfig",
    "DriftMonitor",
    "ModelStore",
    "PaperConfig",
    "PaperDesk",
    "PaperOutcome",
    "PromotionConfig",
    "ResearchEngine",
    "RetrainReport",
    "RetrainingConfig",
    "RetrainingLoop",
    "TrainResult",
    "TrainingConfig",
    "TrainingModule",
    "load_model",
]
