"""The registry: which models there are, which one serves, and how that came about.

Belongs here: signed artifacts, versions, the champion's pointer, rollouts and rollbacks, the sealed
budget, the history.
May import: core, agents (artifact format), rollouts (database), evaluation (promotion).
Hands on: ``served(agent_id)``, verified artifacts, and a history that nobody can change unnoticed.
"""

from agent_gym.pipeline.registry.artifacts import ArtifactStore, VerifiedArtifact
from agent_gym.pipeline.registry.deployment import ModelDeploymentService, RegistryState
from agent_gym.pipeline.registry.keys import KeyRing
from agent_gym.pipeline.registry.ledger import HistoryEntry
from agent_gym.pipeline.registry.models import ModelRegistry, RegisteredModel, next_version
from agent_gym.pipeline.registry.refusals import (
    RefusedArtifact,
    RefusedDeployment,
    SealedSetSpent,
)
from agent_gym.pipeline.registry.rollout import Rollout, RolloutPolicy, Stage, in_canary
from agent_gym.pipeline.registry.sealed import SealedBudget

__all__ = [
    "ArtifactStore",
    "HistoryEntry",
    "KeyRing",
    "ModelDeploymentService",
    "ModelRegistry",
    "RefusedArtifact",
    "RefusedDeployment",
    "RegisteredModel",
    "RegistryState",
    "Rollout",
    "RolloutPolicy",
    "SealedBudget",
    "SealedSetSpent",
    "Stage",
    "VerifiedArtifact",
    "in_canary",
    "next_version",
]
