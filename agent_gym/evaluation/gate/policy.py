"""How strict the gate is: seeds, error rates and the effect that must be seen."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from agent_gym.core.registry import Config

Null: TypeAlias = Literal["no_loss", "tolerance"]


class GatePolicy(Config):
    """What the gate promises and what it may spend on it.

    Attributes:
        n_screen: Seeds of the first look; both sides play the same.
        n_confirm: Fresh seeds of a confirmation at the design noise.
        max_confirm: Most fresh seeds of one confirmation where the noise asks for more.
        repeat: Whether a confirmed change must hold once more, on as many other fresh seeds.
        screen_p: One-sided p-value up to which a metric is confirmed.
        alpha: Error rate of a confirmation over all metrics of one side (Holm).
        null: What must be disproved: "no_loss", with the mean beyond both tolerances; or
            "tolerance", the loss being no more than is tolerated (stricter, and sees less).
        required_effect: Loss, as a share of the baseline, that must be seen with ``power``.
        power: How surely.
        change_nights: Nights looked back on for change points.
        change_segment: Fewest nights on either side of a change point.
        change_alpha: Error rate of a whole series of nights.
        change_superiority: How often a night after must beat a night before (or the other way).
        change_recent: Change points older than this many nights are not told again.
        noise_nights: Nights that say how noisy a metric usually is.
        quarantine_nights: Nights in which false alarms are counted.
        quarantine_alarms: False alarms in them that put a metric into quarantine.
        quarantine_noise: Growth of the noise that puts a metric into quarantine.
        quarantine_days: Days until an entry ends.
        quarantine_share: Share of metrics in quarantine beyond which a suite is degraded.
    """

    n_screen: int = Field(default=24, ge=2)
    n_confirm: int = Field(default=64, ge=2)
    max_confirm: int = Field(default=256, ge=2)
    repeat: bool = True
    screen_p: float = Field(default=0.10, gt=0.0, lt=1.0)
    alpha: float = Field(default=0.01, gt=0.0, lt=1.0)
    null: Null = "no_loss"
    required_effect: float = Field(default=0.05, gt=0.0)
    power: float = Field(default=0.95, gt=0.5, lt=1.0)
    change_nights: int = Field(default=60, ge=2)
    change_segment: int = Field(default=5, ge=2)
    change_alpha: float = Field(default=0.001, gt=0.0, lt=1.0)
    change_superiority: float = Field(default=0.8, ge=0.5, le=1.0)
    change_recent: int = Field(default=14, ge=1)
    noise_nights: int = Field(default=14, ge=1)
    quarantine_nights: int = Field(default=20, ge=1)
    quarantine_alarms: int = Field(default=2, ge=1)
    quarantine_noise: float = Field(default=3.0, gt=1.0)
    quarantine_days: int = Field(default=14, ge=1)
    quarantine_share: float = Field(default=0.10, ge=0.0, le=1.0)

    @model_validator(mode="after")
    def _room(self) -> GatePolicy:
        if self.max_confirm < self.n_confirm:
            raise ValueError("max_confirm cannot be below n_confirm")
        return self
