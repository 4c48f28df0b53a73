"""What the features are made with, and what they are called."""

from __future__ import annotations

from pydantic import Field, model_validator

from agent_gym.core.registry import Config

Horizons = tuple[int, int, int, int]


class FeatureConfig(Config):
    """Half-lives, horizons and bounds of the 18 features; half-lives count bars if not said.

    Example:
        >>> FeatureConfig(momentum_horizons=(2, 4, 8, 16)).names[1:5]
        ('momentum_2', 'momentum_4', 'momentum_8', 'momentum_16')
    """

    volatility_half_life: float = Field(default=48.0, gt=0.0, le=1e6)
    volatility_floor: float = Field(
        default=1e-6, ge=1e-12, description="smallest volatility of one bar's log return"
    )
    return_clip: float = Field(default=8.0, gt=0.0)
    momentum_horizons: Horizons = Field(default=(4, 24, 72, 168), description="bars, rising")
    momentum_clip: float = Field(default=5.0, gt=0.0)
    fast_half_life: float = Field(default=24.0, gt=0.0, le=1e6)
    slow_half_life: float = Field(default=168.0, gt=0.0, le=1e6)
    volume_half_life: float = Field(default=168.0, gt=0.0, le=1e6)
    order_flow_half_life: float = Field(default=168.0, gt=0.0, le=1e6)
    spread_half_life: float = Field(default=168.0, gt=0.0, le=1e6)
    funding_half_life: float = Field(
        default=21.0, gt=0.0, le=1e6, description="in settlements; 21 are a week of 8-hour funding"
    )
    warm_up_half_lives: float = Field(
        default=1.0, gt=0.0, le=20.0, description="an average is masked until it has seen this many"
    )

    @model_validator(mode="after")
    def _check_order(self) -> FeatureConfig:
        first, *later = self.momentum_horizons
        if first < 1 or any(b <= a for a, b in zip((first, *later), later, strict=False)):
            raise ValueError("momentum horizons are at least 1 bar and rise strictly")
        if self.momentum_horizons[-1] > 1_000_000:
            raise ValueError("a momentum horizon is at most 1,000,000 bars")
        if self.fast_half_life >= self.slow_half_life:
            raise ValueError("fast_half_life must be shorter than slow_half_life")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Return the feature names in column order; a momentum is named after its horizon."""
        return (
            "return_z",
            *(f"momentum_{horizon}" for horizon in self.momentum_horizons),
            "volatility_ratio",
            "range_z",
            "close_location",
            "volume_z",
            "taker_imbalance",
            "book_imbalance",
            "order_flow",
            "spread_ratio",
            "funding_z",
            "hour_sin",
            "hour_cos",
            "weekday_sin",
            "weekday_cos",
        )


FEATURES: tuple[str, ...] = FeatureConfig().names
