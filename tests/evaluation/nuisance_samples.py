"""Players that are a nuisance, registered for the workers of the benchmark runner."""

import sys

import numpy as np

from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision


class Nothing(Config):
    """Nothing to set."""


class Trap:
    """Looks like an action until somebody looks closer."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("hands off")


GARBAGE = {
    "nuisance/nan": np.full(3, np.nan),
    "nuisance/huge": np.ones(200_000),
    "nuisance/nested": [[[1.0]], {"a": None}],
    "nuisance/trap": Trap(),
}


class Nuisance:
    def __init__(self, name):
        self.name = name

    def reset(self, start): ...

    def observe(self, step): ...

    def act(self, obs):
        if self.name == "nuisance/quits":
            sys.exit(0)
        if self.name == "nuisance/no-decision":
            return None
        return Decision(GARBAGE[self.name])


class Flood:
    """Calls for ever, whatever it is told."""

    name = "nuisance/flood"

    def play(self, market):
        while True:
            market.call("a2a.getFeed")


for _name in (*GARBAGE, "nuisance/quits", "nuisance/no-decision"):
    register("agent", _name, Nothing)(lambda config, name=_name: Nuisance(name))


@register("agent", "nuisance/flood", Nothing)
def flood(config: Nothing) -> Flood:
    return Flood()
