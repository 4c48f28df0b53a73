"""Agents that live on, a tick at a time, on the model that serves."""

from agent_gym.pipeline.runtime.calls import StoredCall, TickCall, stored_calls
from agent_gym.pipeline.runtime.config import RuntimeConfig
from agent_gym.pipeline.runtime.rounds import TickRound, TickRow
from agent_gym.pipeline.runtime.runtime import AgentRuntime
from agent_gym.pipeline.runtime.verify import ServedReport, verify_served

__all__ = [
    "AgentRuntime",
    "RuntimeConfig",
    "ServedReport",
    "StoredCall",
    "TickCall",
    "TickRound",
    "TickRow",
    "stored_calls",
    "verify_served",
]
