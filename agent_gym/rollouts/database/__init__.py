"""The trajectory store: what agents played, in a database, their steps in files beside it.

SQLite in a file, or PostgreSQL by URL. Everything here needs the extra ``service``; the rest of the
room does not.
"""

from agent_gym.rollouts.database.agents import AGENT_TICK, PlayedTick, TickTaken
from agent_gym.rollouts.database.batches import BatchRequest, TrainingBatches
from agent_gym.rollouts.database.connection import DatabaseDown, plain_errors
from agent_gym.rollouts.database.integrity import IntegrityReport
from agent_gym.rollouts.database.model_tables import (
    Event,
    MarketOutcome,
    ModelDeployment,
    ServiceAgent,
    TrainedModel,
    TrainingBatch,
    TrainingBatchMember,
)
from agent_gym.rollouts.database.outbox import DeliveryReport
from agent_gym.rollouts.database.query import SORTS, Page, TrajectoryFilter
from agent_gym.rollouts.database.reading import StoredTrajectory, TrajectoryBatch, TrajectoryGroup
from agent_gym.rollouts.database.recorder import TrajectoryRecorder
from agent_gym.rollouts.database.records import (
    FEATURE_NAMES,
    AgentRecord,
    DeploymentRecord,
    EpisodeFigures,
    JudgmentRecord,
    LlmCallRecord,
    ModelRecord,
    OutcomeRecord,
    TrajectoryContext,
    window_of,
)
from agent_gym.rollouts.database.step_columns import StepColumns
from agent_gym.rollouts.database.store import StoreCounts, TrajectoryStore
from agent_gym.rollouts.database.tables import LlmCall, RewardJudgment, StepFile, Trajectory

__all__ = [
    "AGENT_TICK",
    "FEATURE_NAMES",
    "SORTS",
    "AgentRecord",
    "BatchRequest",
    "DatabaseDown",
    "DeliveryReport",
    "DeploymentRecord",
    "EpisodeFigures",
    "Event",
    "IntegrityReport",
    "JudgmentRecord",
    "LlmCall",
    "LlmCallRecord",
    "MarketOutcome",
    "ModelDeployment",
    "ModelRecord",
    "OutcomeRecord",
    "Page",
    "PlayedTick",
    "RewardJudgment",
    "ServiceAgent",
    "StepColumns",
    "StepFile",
    "StoreCounts",
    "StoredTrajectory",
    "TickTaken",
    "TrainedModel",
    "TrainingBatch",
    "TrainingBatchMember",
    "TrainingBatches",
    "Trajectory",
    "TrajectoryBatch",
    "TrajectoryContext",
    "TrajectoryFilter",
    "TrajectoryGroup",
    "TrajectoryRecorder",
    "TrajectoryStore",
    "plain_errors",
    "window_of",
]
