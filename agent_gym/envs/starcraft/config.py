"""What can be chosen about a battle of StarCraft II."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from agent_gym.core.registry import Config

MapName: TypeAlias = Literal["3m", "8m", "2s_vs_1sc", "2s3z", "3s_vs_5z"]
Difficulty: TypeAlias = Literal["1", "2", "3", "4", "5", "6", "7", "8", "9", "A"]


class StarCraftConfig(Config):
    """Which battle is fought, by which game, and how long it may take."""

    map: MapName = Field(default="3m", description="a map that SMAC and the world `battle` have")
    reward: Literal["dense", "sparse"] = Field(
        default="dense", description="dense: what SMAC pays, scaled to 20; sparse: 1 or -1"
    )
    python: Path | None = Field(
        default=None, description="interpreter that has SMAC; AGENT_GYM_SC2_PYTHON if absent"
    )
    game: Path | None = Field(
        default=None, description="folder of the game; SC2PATH or ~/StarCraftII if absent"
    )
    game_version: str | None = Field(default=None, description="the newest there is if absent")
    difficulty: Difficulty = Field(default="7", description="of the enemy's script, as SMAC has it")
    fresh_client: bool = Field(
        default=True,
        description="start the game anew for every episode: it is seeded and can be recorded; "
        "otherwise only the first one after a start is",
    )
    launch_timeout_s: float = Field(default=180.0, gt=0.0, description="to start, and to save")
    step_timeout_s: float = Field(default=30.0, gt=0.0, description="for one step")
