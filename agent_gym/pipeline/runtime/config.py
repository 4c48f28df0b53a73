"""How agents are kept alive."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config


class RuntimeConfig(Config):
    """What a tick costs, and how long and how large an agent may be."""

    cost_points: int = Field(default=1, ge=0, description="points that a tick costs")
    timeout_s: float = Field(default=30.0, gt=0.0, description="for one decision")
    start_timeout_s: float = Field(default=120.0, gt=0.0, description="for the process of an agent")
    processes: int = Field(
        default=8, ge=1, le=256, description="agents that decide at the same time"
    )
    memory_mb: int = Field(default=4096, ge=256, description="address space of an agent's process")
    explore: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="share of the markets in which agents draw their actions, to be learned from; "
        "in the others they take the best ones, as the gate has judged them",
    )
    text: bool = Field(default=False, description="show the market in words too")
    seed: int = Field(default=0, ge=0, description="decides what agents draw")
    imports: tuple[str, ...] = Field(
        default=(), description="modules that register further kinds of agents"
    )
