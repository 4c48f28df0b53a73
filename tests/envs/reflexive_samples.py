"""Small reflexive markets; importing the echoes makes their name known where none announces it."""

from __future__ import annotations

import numpy as np

import agent_gym.agents.echo.population  # noqa: F401
from agent_gym.core import Ref, Seeds
from agent_gym.core.types import Action, FloatArray, Observation, Outcome
from agent_gym.envs.reflexive import ReflexiveConfig, ReflexiveWorld
from agent_gym.exchange.costs import Costs

STILL = {"crowd": None, "volume_spread": 0.0}
FREE = Costs.free()
WEIGHTS = {
    "momentum": 0.15,
    "mean_reversion": 0.10,
    "breakout": 0.10,
    "market_maker": 0.20,
    "trend_vol_target": 0.10,
    "value": 0.10,
    "noise": 0.20,
    "stop_cascade": 0.05,
}


def echoes(**params: object) -> Ref:
    """Return a crowd of echoes."""
    return Ref(use="echo", params={"size": 40, "evolve_every_bars": None, **params})


def small(**fields: object) -> ReflexiveConfig:
    """Return a market of a few bars."""
    return ReflexiveConfig(**{"bars": 60, "warmup_bars": 20, "crowd": echoes(), **fields})


def played(
    world: ReflexiveWorld, actions: list[Action], seed: int = 1
) -> tuple[Observation, list[Outcome]]:
    """Play some actions; returns the first observation and what came of each."""
    (first,) = world.reset(Seeds(seed)).values()
    return first, [world.advance(action) for action in actions]


def column(world: ReflexiveWorld, outcomes: list[Outcome], name: str) -> FloatArray:
    """Return one column of what was seen."""
    place = world.start(world.roles[0], Seeds(0)).column(name)
    return np.array([outcome.observation.features[place] for outcome in outcomes])
