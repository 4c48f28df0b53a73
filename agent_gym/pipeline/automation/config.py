"""The settings of the loop."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.evaluation.promotion import PromotionPolicy
from agent_gym.pipeline.automation.readiness import ReadinessPolicy
from agent_gym.training.grpo.config import GRPOConfig


class AutomationConfig(Config):
    """When training begins, how it learns, and what a model must show."""

    readiness: ReadinessPolicy = Field(default_factory=ReadinessPolicy)
    grpo: GRPOConfig = Field(default_factory=GRPOConfig)
    promotion: PromotionPolicy = Field(default_factory=PromotionPolicy)
    rounds: int = Field(
        default=1,
        ge=1,
        le=50,
        description="rounds of training; from the second on, the policy so far plays anew first",
    )
    practice_repeats: int = Field(
        default=25, ge=2, description="episodes on each training snapshot in later rounds"
    )
    workers: int = Field(default=2, ge=1, description="processes that play")
