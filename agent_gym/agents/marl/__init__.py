"""Teams that were trained together: one network for all agents, each of which decides alone.

Belongs here: the network in numpy, the policy with its files, and the team that the loop plays.
Training, which needs torch, is in ``agent_gym.training.marl``.
"""

from agent_gym.agents.marl.crowd import Crowd
from agent_gym.agents.marl.network import HeadShape, Network, NetworkConfig, first_weights
from agent_gym.agents.marl.policy import Choice, TeamContract, TeamPolicy
from agent_gym.agents.marl.team import PolicyTeam, PolicyTeamConfig

__all__ = [
    "Choice",
    "Crowd",
    "HeadShape",
    "Network",
    "NetworkConfig",
    "PolicyTeam",
    "PolicyTeamConfig",
    "TeamContract",
    "TeamPolicy",
    "first_weights",
]
