"""The learning layer lives in ``agent_gym.training.desk``."""

from agent_gym.training.desk import ResearchEngine, RetrainingLoop, TrainingModule

__all__ = ["ResearchEngine", "RetrainingLoop", "TrainingModule"]
