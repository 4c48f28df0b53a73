"""Independent agents, one for each role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config, Ref, make, register
from agent_gym.core.types import Agent, Decision, EpisodeStart, Observation, Role, Step


class Independent:
    """Implements SeparateTeam with one agent a role; the agents do not know of each other.

    Example:
        >>> from agent_gym.agents.rules.baselines import FlatConfig, flat
        >>> Independent({Role("trader"): flat(FlatConfig())}).names
        {'trader': 'rules/flat'}
    """

    def __init__(self, agents: Mapping[Role, Agent]) -> None:
        if not agents:
            raise AgentError("a team needs at least one agent", found=0)
        self.agents: Mapping[Role, Agent] = dict(agents)

    @property
    def names(self) -> Mapping[Role, str]:
        """Return the agent behind each role."""
        return {role: agent.name for role, agent in self.agents.items()}

    def reset(self, starts: Mapping[Role, EpisodeStart]) -> None:
        """Begin an episode; every role of the world must have its agent, and no agent is spare."""
        if starts.keys() != self.agents.keys():
            raise AgentError(
                "the team does not fit the roles of this world",
                found=", ".join(sorted(self.agents)),
                expected=", ".join(sorted(starts)),
                remedy="Name one agent for each role",
            )
        for role, start in starts.items():
            self.agents[role].reset(start)

    def act(self, obs: Mapping[Role, Observation]) -> Mapping[Role, Decision]:
        """Ask every agent that sees something."""
        agents = self.agents
        return {role: agents[role].act(seen) for role, seen in obs.items()}

    def observe(self, steps: Mapping[Role, Step]) -> None:
        """Tell every agent its own step."""
        agents = self.agents
        for role, step in steps.items():
            agents[role].observe(step)


class IndependentConfig(Config):
    """Which agent plays which role."""

    agents: dict[str, Ref]


@register("team", "independent", IndependentConfig)
def independent(config: IndependentConfig) -> Independent:
    """Build one agent a role, each from its own entry in the registry."""
    return Independent(
        {Role(role): cast(Agent, make("agent", ref)) for role, ref in config.agents.items()}
    )
