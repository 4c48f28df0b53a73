"""Settings of the training."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.training.grpo.loss_config import LossConfig


class EntropySchedule(Config):
    """Weight of the entropy: it falls in a straight line, then stays.

    A large weight that falls keeps a policy from settling on the first safe thing it finds; about
    the average cost of a decision is a good start.

    Example:
        >>> EntropySchedule(start=0.3, end=0.1, updates=4).at(2)
        0.2
    """

    start: float = Field(default=0.01, ge=0)
    end: float = Field(default=0.0, ge=0)
    updates: int = Field(default=60, ge=1, description="update at which it has reached its end")

    def at(self, update: int) -> float:
        """Return the weight at an update, counted from 0."""
        done = min(update / self.updates, 1.0)
        return self.start + done * (self.end - self.start)


class AlarmLimits(Config):
    """Figures at which the rest of an update is left out; None switches one off."""

    max_kl: float | None = Field(default=0.1, gt=0, description="distance from the update's start")
    max_clip_share: float | None = Field(default=0.5, gt=0, le=1)
    min_entropy: float | None = Field(
        default=None, gt=0, description="below it the policy explores no more"
    )


class AdamConfig(Config):
    """The optimiser: Adam, without weight decay."""

    learning_rate: float = Field(default=0.003, gt=0)
    max_grad_norm: float = Field(default=1.0, gt=0, description="where the gradient is cut")


class GRPOConfig(Config):
    """How a policy learns from groups of trajectories."""

    seed: int = Field(default=0, ge=0, description="decides the order of minibatches")
    updates: int = Field(default=1, ge=1, description="batches that are asked for")
    epochs: int = Field(default=2, ge=1, description="times each batch is gone through")
    minibatches: int = Field(default=1, ge=1, description="parts of a batch, by whole groups")
    reward: Literal["return", "judge"] = Field(
        default="return", description="what is compared: sums of rewards, or scores of a judge"
    )
    credit: Literal["trajectory", "reward_to_go"] = Field(
        default="trajectory", description="one advantage a trajectory, or one a tick"
    )
    discount: float = Field(
        default=1.0, gt=0, le=1, description="of rewards ahead, for reward_to_go"
    )
    scaling: Literal["std", "none", "batch"] = "std"
    advantage_eps: float = Field(default=1e-6, ge=0, description="added to the standard deviation")
    min_group_size: int = Field(default=2, ge=2)
    equal_groups: Literal["drop", "regularise"] = Field(
        default="drop",
        description="groups that are all equal: left out, or kept for entropy and distance, which "
        "else watch only the prompts that still differ",
    )
    max_staleness: int = Field(
        default=1, ge=0, description="how many versions old the recording policy may be"
    )
    min_ess: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="least effective share of trajectories; below it a batch is refused",
    )
    loss: LossConfig = Field(default_factory=LossConfig)
    entropy: EntropySchedule = Field(default_factory=EntropySchedule)
    alarms: AlarmLimits = Field(default_factory=AlarmLimits)
    adam: AdamConfig = Field(default_factory=AdamConfig)
    checkpoint_every: int = Field(default=10, ge=1, description="updates between checkpoints")
    threads: int = Field(
        default=1, ge=1, le=1024, description="of torch; another number gives other last bits"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.discount != 1 and self.credit == "trajectory":
            raise ValueError("discount changes nothing while credit is that of a trajectory")
        if self.reward == "judge" and self.credit != "trajectory":
            raise ValueError("a judge gives one score a trajectory; set credit to trajectory")
        unweighted = self.entropy.start == self.entropy.end == self.loss.kl == 0
        if self.equal_groups == "regularise" and unweighted:
            raise ValueError("equal groups change nothing while entropy and kl weigh 0")
        return self
