"""Room: core. The words and contracts that all other rooms share.

Belongs here: types, protocols, the registry, the seed tree, the clock, the error tree, the
manifest, the one way a file is written and the one way a kernel is compiled.
May import: the standard library, numpy, pydantic (and numba, in ``core.kernels`` alone).
Hands on: everything below; nothing here knows a price, an order or an agent.
"""

from agent_gym.core.clock import Clock, ManualClock, SystemClock
from agent_gym.core.errors import (
    AgentError,
    AgentGymError,
    ConfigError,
    DataError,
    StoreError,
    VenueError,
)
from agent_gym.core.manifest import Manifest
from agent_gym.core.registry import Config, Ref, make, names, register
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Action,
    ActionSpec,
    Agent,
    Decision,
    EpisodeStart,
    Nanos,
    Observation,
    Outcome,
    Role,
    SeriesAgent,
    Sink,
    Step,
    Team,
    World,
)

__all__ = [
    "Action",
    "ActionSpec",
    "Agent",
    "AgentError",
    "AgentGymError",
    "Clock",
    "Config",
    "ConfigError",
    "DataError",
    "Decision",
    "EpisodeStart",
    "Manifest",
    "ManualClock",
    "Nanos",
    "Observation",
    "Outcome",
    "Ref",
    "Role",
    "Seeds",
    "SeriesAgent",
    "Sink",
    "Step",
    "StoreError",
    "SystemClock",
    "Team",
    "VenueError",
    "World",
    "make",
    "names",
    "register",
]
