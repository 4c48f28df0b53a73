"""The size of the actor and how it is trained."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config


class ActorConfig(Config):
    """What the actor is made of and how long it learns; the defaults suit a year of hours.

    A step takes ``sequences`` sequences of ``sequence_bars`` bars for each member, and there is a
    step for every one of ``steps``: how much is learned from does not hang on the size of a batch.
    """

    width: int = Field(default=32, ge=1, description="hidden units of a layer")
    layers: int = Field(default=2, ge=1, description="hidden layers")
    members: int = Field(default=3, ge=1, description="actors whose chances are averaged")
    steps: int = Field(default=1_500, ge=1, description="steps of a fit from scratch")
    warm_steps: int = Field(default=400, ge=1, description="steps of a fit from earlier weights")
    sequences: int = Field(default=8, ge=1, description="sequences of one step, for each member")
    sequence_bars: int = Field(default=128, ge=2, description="bars of one sequence")
    learning_rate: float = Field(default=3e-3, gt=0, description="learning rate at the start")
    last_learning_rate: float = Field(default=3e-4, gt=0, description="learning rate at the end")
    precision: float = Field(
        default=8.0, gt=0, description="how sharply chances follow expected free energy"
    )
    efe_weight_first: float = Field(
        default=1.0, ge=0, description="weight of expected free energy at the start"
    )
    efe_weight_last: float = Field(
        default=0.3, ge=0, description="weight of expected free energy at the end"
    )
    reinforcement_weight_first: float = Field(
        default=0.3, ge=0, description="weight of realised growth at the start"
    )
    reinforcement_weight_last: float = Field(
        default=1.0, ge=0, description="weight of realised growth at the end"
    )
    trust: float = Field(
        default=0.1, ge=0, description="weight of the divergence from the policy of the last look"
    )
    look_every: int = Field(default=100, ge=1, description="steps between looks at held-out bars")
    patience_looks: int = Field(default=5, ge=1, description="looks without more growth")
    held_out_share: float = Field(
        default=0.2,
        gt=0,
        lt=0.9,
        description="share of the past, its tail, that decides between actor and planner, and of "
        "what is left before it, that stops the fit",
    )
