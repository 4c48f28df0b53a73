"""How large a run of the loop is, and what it came to."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.pipeline.automation.job import JobOutcome
from agent_gym.pipeline.automation.kinds import ACTIVE, LANGUAGE, NEURAL
from agent_gym.training.grpo.config import AdamConfig, AlarmLimits, EntropySchedule, GRPOConfig
from agent_gym.training.grpo.loss_config import ClipSurrogate, LossConfig

LEARNING = GRPOConfig(
    updates=1,
    epochs=8,
    minibatches=4,
    credit="reward_to_go",
    discount=0.9,
    adam=AdamConfig(learning_rate=0.03),
    alarms=AlarmLimits(max_kl=1.0),
    loss=LossConfig(surrogate=ClipSurrogate(low=0.75, high=3.0, dual=None)),
    entropy=EntropySchedule(start=0.0),
)
"""Chosen on snapshots of seed 100; those of the harness had no part in it.

What pays is drawn seldom at first, because the first champion keeps what it holds; the usual limit
of a fifth would let its chance grow by a fifth in a round, so the ratio may go further here.
"""


READING = LEARNING.model_copy(update={"adam": AdamConfig(learning_rate=0.001)})
"""For language models, whose adapters learn at a smaller rate."""

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


class HarnessOutcome(Config):
    """What a run came to; ``answered`` names the model behind each agent's tick at the end.

    ``cut_off`` says that it was begun by an earlier process, and only finished by this one.
    """

    run_id: str
    cut_off: bool = False
    snapshots: dict[str, int]
    trajectories: dict[str, int]
    steps: int
    played: list[dict[str, Any]]
    champion_before: str
    readiness_before: dict[str, Any]
    readiness_after: dict[str, Any]
    job: JobOutcome | None
    answered: dict[str, str | None]
    rollout_verified: bool
    rollout_words: str
    report: str

    @property
    def promoted(self) -> bool:
        """Return whether another model serves now."""
        return self.job is not None and self.job.ending == "promoted"
