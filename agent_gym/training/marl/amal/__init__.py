"""AMAL: asymmetric learning of a team with a model of the world and auxiliary teams.

Belongs here: the model, which learns from primary rows alone; the bonus for information; auxiliary
teams found by the cross-entropy method; and what shows whether each of them is alive.
Hands on: ``AMALAgent``, which joins the session of a training.
"""

from agent_gym.training.marl.amal.agent import AMALAgent, amal_for
from agent_gym.training.marl.amal.buffers import (
    AsymmetricReplayBuffer,
    AuxBuffer,
    PrimaryBuffer,
    PrimaryView,
)
from agent_gym.training.marl.amal.information import MutualInformationEstimator
from agent_gym.training.marl.amal.world_model import WorldModel
from agent_gym.training.marl.amal_config import AmalConfig, WorldModelConfig
from agent_gym.training.marl.amal_figures import AmalFigures

__all__ = [
    "AMALAgent",
    "AmalConfig",
    "AmalFigures",
    "AsymmetricReplayBuffer",
    "AuxBuffer",
    "MutualInformationEstimator",
    "PrimaryBuffer",
    "PrimaryView",
    "WorldModel",
    "WorldModelConfig",
    "amal_for",
]
