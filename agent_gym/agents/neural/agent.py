"""The neural policy as an agent."""

from __future__ import annotations

from agent_gym.agents.neural.drawing import PolicyAgent, PolicyAgentConfig
from agent_gym.agents.neural.policy import KIND, NeuralPolicy
from agent_gym.core.registry import register


class NeuralAgent(PolicyAgent[NeuralPolicy]):
    """A neural policy that draws its targets, or takes the likeliest ones."""

    name = KIND


@register("agent", KIND, PolicyAgentConfig)
def neural_market(config: PolicyAgentConfig) -> NeuralAgent:
    """Build the agent from the folder of its policy."""
    return NeuralAgent(NeuralPolicy.load(config.model), deterministic=config.deterministic)
