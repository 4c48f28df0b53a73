"""The reflexive market: prices that a crowd and the trader's own orders move.

Here alone an action changes what will be seen of the market. The crowd comes from the registry
(kind ``crowd``), the trader's money is kept by the one venue.
Hands on: ``ReflexiveWorld`` (step by step), ``simulate`` (a whole series), ``ReflexiveConfig``, and
``Crowd``, what a crowd must answer to.
"""

from agent_gym.envs.reflexive.config import (
    ClusteredNews,
    DriftSignal,
    LinearImpact,
    ReflexiveConfig,
    SquareRootImpact,
)
from agent_gym.envs.reflexive.crowd import Crowd, Nobody, open_crowd
from agent_gym.envs.reflexive.sight import FILL_COLUMNS
from agent_gym.envs.reflexive.simulation import Simulation, simulate
from agent_gym.envs.reflexive.world import ReflexiveWorld

__all__ = [
    "FILL_COLUMNS",
    "ClusteredNews",
    "Crowd",
    "DriftSignal",
    "LinearImpact",
    "Nobody",
    "ReflexiveConfig",
    "ReflexiveWorld",
    "Simulation",
    "SquareRootImpact",
    "open_crowd",
    "simulate",
]
