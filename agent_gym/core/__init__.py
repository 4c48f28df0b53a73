"""Room: core. The words and contracts that all other rooms share.

Belongs here: types, protocols, the registry, the seed tree, the clock, the error tree, the
manifest, the one way a file is written and the one way a kernel is compiled.
May import: the standard library, numpy, pydantic (and numba, in ``core.kernels`` alone).
Hands on: everything below; nothing here knows a price, an order or an agent.

What is named here is imported when it is first asked for: the errors alone cost neither numpy nor
pydantic, which is what lets ``agent-gym --help`` answer at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "clock": "Clock ManualClock SystemClock",
    "errors": "AgentError AgentGymError ConfigError DataError StoreError VenueError",
    "manifest": "Manifest",
    "registry": "Config Ref make names register",
    "seeds": "Seeds",
    "types": "Action ActionSpec Agent Decision EpisodeStart Nanos Observation Outcome "
    "Role SeriesAgent Sink Step Team World",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

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


def __getattr__(name: str) -> Any:
    """Return one of the names above, importing its module on the first call."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
