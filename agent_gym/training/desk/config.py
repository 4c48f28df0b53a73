"""How the desk learns: what a label is, how much data it takes, when one model replaces another."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agent_gym.core.registry import Config
from agent_gym.exchange.costs import Costs

DAY_S = 86_400.0


class PaperConfig(Config):
    """How a signal that was not traded is settled on paper."""

    barrier_sigmas: float = Field(
        default=1.5, gt=0.0, description="take and stop, in deviations of a return over the horizon"
    )
    volatility_bars: int = Field(
        default=48, ge=3, description="closed bars that tell the deviation"
    )
    least_coverage: float = Field(
        default=0.9, gt=0.0, le=1.0, description="share of the horizon's bars that must be there"
    )
    costs: Costs = Field(default_factory=Costs)


class TrainingConfig(Config):
    """What the acceptor is trained on and how."""

    paper: PaperConfig = Field(default_factory=PaperConfig)
    window_days: float = Field(default=90.0, gt=0.0, description="older signals are left out")
    half_life_days: float = Field(default=30.0, gt=0.0, description="of a row's weight in the fit")
    counterfactual_weight: float = Field(default=0.5, gt=0.0, le=1.0)
    least_rows: int = Field(default=200, ge=20)
    least_of_a_class: int = Field(default=30, ge=2)
    max_iter: int = Field(default=300, ge=1, le=300)
    max_leaf_nodes: int = Field(default=15, ge=2)
    learning_rate: float = Field(default=0.05, gt=0.0, le=1.0)
    l2: float = Field(default=1.0, ge=0.0)
    min_samples_leaf: int = Field(default=40, ge=1)
    monotonic: dict[str, Literal[-1, 1]] = Field(
        default={"confidence": 1, "spread_bp": -1},
        description="features whose direction is known",
    )
    calibration: Literal["auto", "sigmoid", "isotonic"] = Field(
        default="auto", description="isotonic takes 1000 rows; auto takes the smaller loss of both"
    )
    conformal_alpha: float | None = Field(
        default=None, gt=0.0, lt=1.0, description="hold where the conformal set is empty or both"
    )
    stability_folds: int = Field(default=3, ge=0, le=10)
    slice_rows: int = Field(default=50, ge=2, description="a slice below is not judged")
    bootstrap_reps: int = Field(default=2000, ge=100)


class DriftConfig(Config):
    """When the world is said to have changed."""

    adwin_delta: float = Field(default=0.002, gt=0.0, lt=1.0)
    adwin_clock: int = Field(default=16, ge=1, description="labelled signals between two looks")
    loss_cap: float = Field(default=2.0, gt=0.0, description="a log loss above counts as this")
    window: int = Field(default=200, ge=50, description="signals compared with the reference")
    check_every: int = Field(default=100, ge=1)
    psi_limit: float = Field(default=0.2, gt=0.0)
    psi_features: int = Field(default=2, ge=1, description="features that must be over the limit")
    ignored: tuple[str, ...] = Field(
        default=("hour_sin", "hour_cos", "weekday", "log_results"),
        description="features that move by themselves and say nothing of drift",
    )
    ks_alpha: float = Field(default=1e-4, gt=0.0, lt=1.0, description="after Benjamini-Hochberg")
    ece_limit: float = Field(default=0.08, gt=0.0)
    ece_window: int = Field(default=400, ge=100)
    ece_alpha: float = Field(
        default=1e-3, gt=0.0, lt=1.0, description="chance by which a calibrated model may look so"
    )


class PromotionConfig(Config):
    """The rule by which a challenger replaces the champion."""

    brier_slack: float = Field(default=0.002, ge=0.0)
    slice_loss: float = Field(
        default=0.1, ge=0.0, description="loss of a slice, as a share of the mean size of a payoff"
    )
    shadow_signals: int = Field(default=200, ge=1)
    shadow_days: float = Field(default=7.0, gt=0.0)
    shadow_max_days: float = Field(
        default=60.0, gt=0.0, description="a shadow without enough signals ends after this"
    )
    level: float = Field(default=0.95, gt=0.5, lt=1.0)


class RetrainingConfig(Config):
    """When to train again, and within which bounds."""

    every_days: float = Field(default=7.0, gt=0.0)
    new_labels: int = Field(default=200, ge=1)
    cool_down_hours: float = Field(default=24.0, ge=0.0)
    budget_s: float = Field(default=60.0, gt=0.0)
    hold_on_drift: bool = Field(
        default=False,
        description="after drift the champion holds every signal until it is replaced",
    )
    horizon: str = "24h"
    drift: DriftConfig = Field(default_factory=DriftConfig)
    promotion: PromotionConfig = Field(default_factory=PromotionConfig)
