"""Players that behave badly, registered for the workers of the benchmark runner."""

from __future__ import annotations

import os

import numpy as np

from agent_gym.core.clock import SystemClock
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, EpisodeStart, Observation, Step


class Nothing(Config):
    """Nothing to set."""


class _Player:
    def __init__(self, name: str) -> None:
        self.name = name

    def reset(self, start: EpisodeStart) -> None: ...

    def observe(self, step: Step) -> None: ...

    def act(self, obs: Observation) -> Decision:
        match self.name:
            case "test/raises":
                raise RuntimeError("no idea")
            case "test/hangs":
                while True:
                    SystemClock().sleep_s(0.05)
            case "test/dies":
                os._exit(9)
            case "test/garbage":
                return Decision("all in")  # type: ignore[arg-type]
            case _:
                return Decision(np.zeros(3))


class _Bot:
    """Buys YES of the first question once and floods the rest of the time."""

    name = "test/bot"

    def __init__(self) -> None:
        self.answers: list[bool] = []

    def play(self, market) -> None:
        market.call("a2a.buyShares", {"marketId": "pm-1", "outcome": "YES", "amount": 5.0})
        for _ in range(200):
            self.answers.append(market.call("a2a.getFeed").ok)


for _name in ("test/raises", "test/hangs", "test/dies", "test/garbage"):
    register("agent", _name, Nothing)(lambda config, name=_name: _Player(name))


@register("agent", "test/bot", Nothing)
def bot(config: Nothing) -> _Bot:
    return _Bot()
