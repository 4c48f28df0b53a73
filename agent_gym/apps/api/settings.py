"""What a service is told when it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from agent_gym.apps.binding import LOOPBACK
from agent_gym.core.files import DATABASE_VARIABLE, home
from agent_gym.core.registry import Config
from agent_gym.pipeline.automation.config import AutomationConfig
from agent_gym.pipeline.automation.readiness import ReadinessPolicy
from agent_gym.pipeline.harness.options import LEARNING, HarnessOptions
from agent_gym.pipeline.registry import RolloutPolicy
from agent_gym.pipeline.runtime import RuntimeConfig


def _automation() -> AutomationConfig:
    """Return the settings of the harness, with the conditions that the environment names."""
    return AutomationConfig(
        readiness=ReadinessPolicy.from_environment(),
        grpo=LEARNING,
        rounds=HarnessOptions().rounds,
    )


class ServiceSettings(Config):
    """Where the loop lies, who may call, and what runs by itself."""

    folder: Path = Field(default_factory=home, description="of the loop")
    database: str | None = Field(default=None, description="URL; default: SQLite in the folder")
    hosts: tuple[str, ...] = Field(default=LOOPBACK, description="names it may be called by")
    max_body_bytes: int = Field(default=65_536, ge=1, le=1 << 24)
    body_timeout_s: float = Field(default=10.0, gt=0.0)
    tick_every_s: float | None = Field(default=None, gt=0.0, description="ticks of the agents")
    check_every_s: float | None = Field(
        default=None, gt=0.0, description="say whether training could begin"
    )
    train_every_s: float | None = Field(default=None, gt=0.0, description="train if it is ready")
    runtime: RuntimeConfig = Field(default_factory=RuntimeConfig)
    automation: AutomationConfig = Field(default_factory=_automation)
    rollout: RolloutPolicy = Field(default_factory=RolloutPolicy)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, **given: Any
    ) -> ServiceSettings:
        """Return the defaults with the database that the environment names."""
        said = os.environ if environment is None else environment
        return cls(**({"database": said.get(DATABASE_VARIABLE) or None} | given))
