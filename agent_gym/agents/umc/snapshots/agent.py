"""The agent ``umc/market``: UMC on every market of a snapshot."""

from __future__ import annotations

from agent_gym.agents.neural.drawing import PolicyAgent, PolicyAgentConfig
from agent_gym.agents.umc.snapshots.policy import KIND, UMCMarketPolicy
from agent_gym.core.registry import register


class UMCMarketAgent(PolicyAgent[UMCMarketPolicy]):
    """A policy of UMC that draws its targets, or takes those of least free energy."""

    name = KIND


@register("agent", KIND, PolicyAgentConfig)
def umc_market(config: PolicyAgentConfig) -> UMCMarketAgent:
    """Build the agent from the folder of its policy."""
    return UMCMarketAgent(UMCMarketPolicy.load(config.model), deterministic=config.deterministic)
