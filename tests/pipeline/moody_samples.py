"""Agents that behave badly on demand; imported by their own processes, so it needs little."""

import os
import sys
import time
from pathlib import Path

import numpy as np

from agent_gym.agents.artifact import read_artifact
from agent_gym.agents.neural.layout import FeatureLayout
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision

MOODY = "test/moody"


class MoodyConfig(Config):
    model: Path
    deterministic: bool = False


class Moody:
    """Behaves by the name of the agent, which its seeds know."""

    name = MOODY

    def __init__(self, folder: Path) -> None:
        self.version = read_artifact(folder, MOODY)[0].model_hash

    def reset(self, start):
        self._who = start.seeds.path[1]
        self._n = len(FeatureLayout.of(start.feature_names).markets)

    def act(self, obs):
        calm = Decision(np.zeros(self._n), {"log_prob": -1.0})
        return MOODS.get(self._who.split("-")[0], lambda _: calm)(self)


def hang(_):
    while True:
        time.sleep(60)  # noqa: TID251


def flood_words(agent):
    for _ in range(200):
        sys.stdout.write("x" * 100_000)
    return Decision(np.zeros(agent._n), {f"s{i}": 1.0 for i in range(200_000)})


def flood_numbers(_):
    return Decision(np.zeros(400_000))


def lie(agent):
    agent.version = "0" * 64
    return Decision(np.zeros(agent._n))


def spy(agent):
    kept = sorted(name for name in os.environ if "AGENT_GYM" in name or "KEY" in name)
    return Decision(np.zeros(agent._n), None, f"saw {kept}")


def grow(_):
    return Decision(np.zeros(10**11))


MOODS = {
    "hang": hang,
    "die": lambda _: os._exit(9),
    "exit": lambda _: (_ for _ in ()).throw(SystemExit(3)),
    "raise": lambda _: 1 / 0,
    "words": flood_words,
    "numbers": flood_numbers,
    "nan": lambda agent: Decision(np.full(agent._n, np.nan)),
    "shape": lambda agent: Decision(np.zeros(agent._n + 1)),
    "none": lambda _: None,
    "text": lambda _: Decision("buy everything"),
    "lie": lie,
    "spy": spy,
    "grow": grow,
}


@register("agent", MOODY, MoodyConfig)
def moody(config: MoodyConfig) -> Moody:
    return Moody(config.model)
