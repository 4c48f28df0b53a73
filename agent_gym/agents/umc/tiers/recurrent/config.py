"""The size of the recurrent model and how it is trained."""

from __future__ import annotations

from pydantic import Field

from agent_gym.core.registry import Config


class RecurrentConfig(Config):
    """What the network is made of and how long it learns; the defaults suit a year of hours."""

    embedding: int = Field(default=32, ge=1, description="numbers an observation is turned into")
    memory: int = Field(default=64, ge=1, description="numbers of the deterministic memory")
    latent: int = Field(default=8, ge=1, description="numbers of the hidden state")
    heads: int = Field(default=5, ge=1, description="models fitted on resampled pasts")
    head_width: int = Field(default=32, ge=1, description="hidden units of each head")
    width: int = Field(default=64, ge=1, description="hidden units of posterior and emission")
    components: int = Field(default=3, ge=1, description="Gaussians in the forecast of a return")
    shortcut: bool = Field(
        default=True, description="add what is linear in the observation to each head's mean"
    )
    horizon_bars: int = Field(default=6, ge=1, description="how far ahead returns are learned")
    sequence_bars: int = Field(default=64, ge=2, description="bars of one training sequence")
    batch_sequences: int = Field(default=32, ge=1, description="sequences of one step")
    steps: int = Field(default=2_500, ge=1, description="steps of a fit from scratch")
    warm_steps: int = Field(default=600, ge=1, description="steps of a fit from earlier weights")
    look_every: int = Field(default=100, ge=1, description="steps between looks at held-out bars")
    patience_looks: int = Field(default=5, ge=1, description="looks without a better score")
    held_out_share: float = Field(
        default=0.15, gt=0, lt=0.9, description="share of the past, its tail, that stops the fit"
    )
    learning_rate: float = Field(default=1e-3, gt=0, description="learning rate at the start")
    last_learning_rate: float = Field(default=1e-4, gt=0, description="learning rate at the end")
    gradient_clip: float = Field(default=10.0, gt=0, description="largest norm of a gradient")
    kl_weight: float = Field(default=1.0, ge=0, description="weight of prior against posterior")
    kl_balance: float = Field(
        default=0.8, ge=0, lt=1, description="share of the divergence's pull that is on the priors"
    )
    free_nats: float = Field(
        default=0.5, ge=0, description="divergence of a bar that costs nothing"
    )
    return_weight: float = Field(default=0.5, gt=0, description="weight of the returns ahead")
