"""What a run of the loop is asked for; light to import, so that a wrong word is refused at once."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.pipeline.automation.kinds import ACTIVE, LANGUAGE, NEURAL

PolicyName: TypeAlias = Literal["network", "umc"]


class HarnessOptions(Config):
    """How large a run is, and who plays."""

    agents: int = Field(default=5, ge=1, le=1_000, description="agents that play")
    snapshots: int = Field(
        default=20, ge=1, le=100_000, description="snapshots to learn from, at least"
    )
    repeats: int = Field(
        default=10, ge=1, le=100_000, description="episodes of each agent on each snapshot"
    )
    rounds: int = Field(
        default=3, ge=1, le=50, description="rounds of training; later ones play anew first"
    )
    sealed: int = Field(
        default=40, ge=35, le=100_000, description="snapshots that only the gate plays, at least"
    )
    rehearsal: int = Field(
        default=20, ge=20, le=100_000, description="snapshots on which a rollout is watched"
    )
    seed: int = Field(default=0, ge=0, description="decides everything that is drawn")
    workers: int = Field(default=2, ge=1, le=256, description="processes that play")
    policy: PolicyName = Field(
        default="network",
        description="what plays and learns: a small network (by GRPO), or UMC (by prediction); "
        "each is a loop of its own (--folder)",
    )
    llm: str | None = Field(
        default=None,
        description="language models play, on this base: smollm2-135m, a folder or a hub id; slow "
        "without a GPU, and a loop of its own (--folder)",
    )
    train: bool = Field(default=True, description="train, judge and roll out")
    force: bool = Field(default=False, description="train although it is not ready")
    shuffle_rewards: bool = Field(
        default=False,
        description="a control: learn from the rewards of other trajectories (UMC: from the moves "
        "of other snapshots)",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.llm is not None and self.policy != "network":
            raise ValueError(f"llm and policy {self.policy} name two kinds of players; give one")
        return self

    @property
    def kind(self) -> str:
        """Return the kind of policy that plays."""
        if self.llm is not None:
            return LANGUAGE
        return ACTIVE if self.policy == "umc" else NEURAL
