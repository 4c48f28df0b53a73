"""What a user says about a market whose truth is known; every unit stands in the name."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from agent_gym.core.clock import HOUR_NS
from agent_gym.core.registry import Config, Ref
from agent_gym.markets.periods import YEAR_NS

START_NS = 1_704_067_200_000_000_000  # 2024-01-01 UTC
PERIOD_NS = HOUR_NS
PCT, BP = 1e-2, 1e-4
TWO_YEARS = 2 * YEAR_NS // PERIOD_NS
MOST_BARS = 10_000_000


class KnownMarketConfig(Config):
    """How long the market is; bars are hours."""

    n_bars: int = Field(default=TWO_YEARS, ge=2, le=MOST_BARS, description="bars of an hour")


class HiddenDriftConfig(KnownMarketConfig):
    """M1: a bar's return is plus or minus the drift and noise; the sign is hidden and seldom turns.

    Example:
        >>> round(HiddenDriftConfig(drift_bp=6).mean, 6)
        0.0006
    """

    drift_bp: float = Field(default=6.0, ge=0.0, le=100.0, description="size of the hidden drift")
    sigma_pct: float = Field(default=0.6, gt=0.0, le=5.0, description="noise of a bar's return")
    stay: float = Field(
        default=0.995, ge=0.5, le=0.9999, description="chance that the sign stays for another bar"
    )

    @property
    def mean(self) -> float:
        """Return the size of the drift as a fraction."""
        return self.drift_bp * BP

    @property
    def sigma(self) -> float:
        """Return the noise as a fraction."""
        return self.sigma_pct * PCT


class BreakConfig(HiddenDriftConfig):
    """B1: M1 until its drift ends for good."""

    break_at: float = Field(
        default=0.5, ge=0.0, le=1.0, description="where the drift ends, as a share of the series"
    )

    @property
    def break_bar(self) -> int:
        """Return the first bar without drift."""
        return round(self.break_at * self.n_bars)


class MispricingConfig(KnownMarketConfig):
    """M2: the price is a walk and a mispricing that goes back to zero."""

    reversion: float = Field(
        default=0.02, gt=0.0, lt=1.0, description="share of the mispricing that goes in a bar"
    )
    shock_pct: float = Field(default=0.2, gt=0.0, le=5.0, description="noise of the mispricing")
    sigma_pct: float = Field(default=0.5, gt=0.0, le=5.0, description="noise of the fair price")

    @property
    def memory(self) -> float:
        """Return the share of the mispricing that stays for another bar."""
        return 1.0 - self.reversion

    @property
    def shock(self) -> float:
        """Return the noise of the mispricing as a fraction."""
        return self.shock_pct * PCT

    @property
    def deviation(self) -> float:
        """Return the usual size of the mispricing as a fraction."""
        return float(self.shock / (1.0 - self.memory**2) ** 0.5)

    @property
    def sigma(self) -> float:
        """Return the noise of the fair price as a fraction."""
        return self.sigma_pct * PCT


class RegimesConfig(KnownMarketConfig):
    """M3: a hidden regime says whether a return is followed by its like or its opposite."""

    autocorrelation: float = Field(
        default=0.08, ge=0.0, lt=0.9, description="share of a return that comes again, or goes back"
    )
    sigma_pct: float = Field(default=0.6, gt=0.0, le=5.0, description="noise of a bar's return")
    stay: float = Field(
        default=0.998, ge=0.5, le=0.9995, description="chance that the regime stays another bar"
    )

    @property
    def sigma(self) -> float:
        """Return the noise as a fraction."""
        return self.sigma_pct * PCT


class SignalConfig(KnownMarketConfig):
    """M4: one of many signals leads the price, the others are like it and say nothing."""

    correlation: float = Field(
        default=0.05, ge=0.0, lt=0.9, description="of the signal with the next return"
    )
    memory: float = Field(default=0.9, ge=0.0, le=0.999, description="of every signal")
    sigma_pct: float = Field(default=0.6, gt=0.0, le=5.0, description="deviation of a return")
    decoys: int = Field(default=10, ge=0, le=98, description="signals that say nothing")
    place: int = Field(default=4, ge=1, description="which of the signals leads, from 1")

    @model_validator(mode="after")
    def _in_place(self) -> Self:
        if self.place > self.decoys + 1:
            raise ValueError(f"place {self.place} is beyond the {self.decoys + 1} signals")
        return self

    @property
    def slope(self) -> float:
        """Return the expected return that one unit of the signal stands for."""
        return self.correlation * self.sigma_pct * PCT

    @property
    def noise(self) -> float:
        """Return the deviation of a return whose signal is known."""
        return float(self.sigma_pct * PCT * (1.0 - self.correlation**2) ** 0.5)


class VolatilityConfig(KnownMarketConfig):
    """M5: calm and wild times; the direction cannot be known."""

    calm_sigma_pct: float = Field(default=0.3, gt=0.0, le=5.0, description="noise in calm times")
    wild_sigma_pct: float = Field(default=0.9, gt=0.0, le=5.0, description="noise in wild times")
    stay: float = Field(
        default=0.99, ge=0.5, le=0.9999, description="chance that the times stay another bar"
    )
    drift_bp: float = Field(
        default=0.0, ge=-100.0, le=100.0, description="the same expected return at every bar"
    )


class WalkConfig(KnownMarketConfig):
    """N1: a Gaussian walk. N4: another one, with volume and order flow that look alive."""

    sigma_pct: float = Field(default=0.6, gt=0.0, le=5.0, description="noise of a bar's return")


class GarchConfig(WalkConfig):
    """N2: volatility that clusters (GARCH) under heavy tails; the direction is fair."""

    reaction: float = Field(
        default=0.1, ge=0.0, lt=1.0, description="weight of the last squared return"
    )
    persistence: float = Field(
        default=0.88, ge=0.0, lt=1.0, description="weight of the last variance"
    )
    freedom: float = Field(
        default=4.0, gt=2.0, le=200.0, description="degrees of freedom of Student's t"
    )

    @model_validator(mode="after")
    def _stationary(self) -> Self:
        if self.reaction + self.persistence >= 1.0:
            raise ValueError("reaction and persistence must add up to less than 1")
        return self


class ResampledConfig(KnownMarketConfig):
    """N3: returns of another market in blocks of random length (stationary bootstrap), demeaned."""

    source: Ref = Field(
        default=Ref(use="synthetic/btc-1h", params={"n_bars": 20_000}),
        description="the market whose returns are drawn; for real ones {use: file, params: ...}",
    )
    block_bars: float = Field(
        default=48.0, ge=1.0, le=10_000.0, description="mean length of a block"
    )
    flip_signs: bool = Field(
        default=True,
        description="draw every sign anew: the size of returns still clusters, but what the "
        "direction of one says of the next is gone; else it survives inside a block",
    )
