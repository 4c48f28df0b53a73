"""What the loss is made of; each part is explained where it is computed, in ``loss``."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from agent_gym.core.registry import Config


class ClipSurrogate(Config):
    """The clipped ratio of PPO; ``dual`` bounds what a bad action can cost."""

    kind: Literal["clip"] = "clip"
    low: float = Field(default=0.2, gt=0, lt=1, description="how far a ratio may fall below 1")
    high: float = Field(default=0.2, gt=0, description="how far it may rise above 1")
    dual: float | None = Field(
        default=3.0, gt=1, description="largest ratio that counts against a bad action"
    )


class CispoSurrogate(Config):
    """The ratio, cut and without a gradient, as the weight of the log-probability."""

    kind: Literal["cispo"] = "cispo"
    maximum: float = Field(default=5.0, gt=0, description="where the weight is cut")


class ImportanceConfig(Config):
    """How what an older policy recorded is weighted for the policy an update begins with."""

    level: Literal["token", "sequence"] = Field(
        default="token", description="one weight a decision, or one a trajectory"
    )
    cap: float = Field(default=2.0, ge=1, description="largest weight")
    band: float | None = Field(
        default=None,
        gt=1,
        description="leave out trajectories whose mean ratio is outside of 1/band to band",
    )


class LossConfig(Config):
    """The loss of one batch."""

    surrogate: Annotated[ClipSurrogate | CispoSurrogate, Field(discriminator="kind")] = Field(
        default_factory=ClipSurrogate
    )
    level: Literal["token", "sequence"] = Field(
        default="token", description="ratio of a decision, or (GSPO) of a whole trajectory"
    )
    aggregation: Literal["grpo", "bnpo", "dapo", "dr_grpo", "luspo"] = Field(
        default="dr_grpo", description="how decisions become one number"
    )
    length: int | None = Field(
        default=None,
        ge=1,
        description="constant length of dr_grpo; without it, the width of the batch",
    )
    kl: float = Field(default=0.0, ge=0, description="weight of the distance to the reference")
    kl_times_ratio: bool = Field(
        default=True, description="weight the sampled distance by the ratio: unbiased off-policy"
    )
    importance: ImportanceConfig = Field(default_factory=ImportanceConfig)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.length is not None and self.aggregation != "dr_grpo":
            raise ValueError(f"length is that of dr_grpo; {self.aggregation} has none")
        if not self.kl_times_ratio and self.kl == 0:
            raise ValueError("kl_times_ratio changes nothing while kl is 0")
        return self
