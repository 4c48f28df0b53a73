"""How strict the promotion gate is: error rates, the pairs it asks for, and absolute limits."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from agent_gym.core.registry import Config

SliceRule: TypeAlias = Literal["no_harm_shown", "shown"]


class Limits(Config):
    """What a challenger must keep whatever it earns; a limit that is None is not asked for.

    A limit whose figure was not measured fails: nobody can say that it was kept.

    Attributes:
        max_drawdown: Largest fall from a peak in any sealed episode, as a share of equity.
        max_ruined: Sealed episodes that ended without equity.
        max_invalid_rate: Share of actions that were not valid.
        max_latency_ms: 99th percentile of the time a decision took.
        min_entropy: Mean entropy of a decision in nats; a collapsed policy has none left.
        max_kl: Mean Kullback-Leibler distance to the champion, in nats a decision.
    """

    max_drawdown: float | None = Field(default=0.35, gt=0.0, le=1.0)
    max_ruined: int | None = Field(default=0, ge=0)
    max_invalid_rate: float | None = Field(default=0.01, ge=0.0, le=1.0)
    max_latency_ms: float | None = Field(default=1_000.0, gt=0.0)
    min_entropy: float | None = Field(default=0.01, ge=0.0)
    max_kl: float | None = Field(default=5.0, gt=0.0)


class PromotionPolicy(Config):
    """What the gate promises and what it asks for.

    Attributes:
        alpha: Chance that any of all candidates of one sealed set is promoted without being better.
        min_pairs: Fewest sealed snapshots that both sides have played.
        slice_rule: "no_harm_shown": a slice blocks when it is shown to be worse than the margin;
            "shown": every slice must be shown to be no worse than it.
        slice_alpha: Error rate over all slices together (Holm).
        slice_margin: Return of an episode that a slice may lose.
        limits: What must be kept whatever is earned.
        level: Probability of the intervals that are told.
        reps: Resamples of an interval.
    """

    alpha: float = Field(default=0.05, gt=0.0, lt=1.0)
    min_pairs: int = Field(default=20, ge=5)
    slice_rule: SliceRule = "no_harm_shown"
    slice_alpha: float = Field(default=0.05, gt=0.0, lt=1.0)
    slice_margin: float = Field(default=0.001, ge=0.0)
    limits: Limits = Limits()
    level: float = Field(default=0.95, gt=0.0, lt=1.0)
    reps: int = Field(default=2_000, ge=1)

    @model_validator(mode="after")
    def _margin(self) -> PromotionPolicy:
        if self.slice_rule == "shown" and self.slice_margin == 0.0:
            raise ValueError("to show that a slice is no worse takes a margin above 0")
        return self
