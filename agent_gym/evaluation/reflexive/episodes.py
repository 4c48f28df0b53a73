"""One agent in a reflexive market: how much its account grew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from agent_gym.agents.team import Independent
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import Agent
from agent_gym.envs.reflexive import ReflexiveConfig, ReflexiveWorld
from agent_gym.rollouts import play

AgentFactory: TypeAlias = Callable[[], Agent]


def growth(agent: Agent, market: ReflexiveConfig, seeds: Seeds) -> float:
    """Return the log growth of an agent's account over one episode, after all costs.

    Whatever the agent raises comes out: a failure is no loss.
    """
    world = ReflexiveWorld(market.model_copy(update={"reward": "log_equity"}))
    (role,) = world.roles
    result = play(world, Independent({role: agent}), "reflexive", seeds)
    return float(result.total_reward[role])
