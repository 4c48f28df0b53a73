"""What a sandbox is told when it starts."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from agent_gym.core.registry import Config
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.exchange.costs import AccountRules, Costs

STEP = "step"
_COSTS, _RULES = Costs(), AccountRules()


class SandboxSettings(Config):
    """Money, costs and clock of a sandbox."""

    speed: str = Field(
        default="60",
        description=f"simulated seconds a second; 1: real time, {STEP}: moves when it is told to",
    )
    history: int = Field(default=100, ge=1, description="bars that are past when it begins")
    rebase: bool = Field(
        default=False, description="move the bars in time so that the session begins now"
    )
    together: bool = Field(
        default=False, description="a step waits until every account has asked for it"
    )
    capital: float = Field(
        default=_RULES.cash, gt=0.0, le=1e15, description="cash of each account in quote units"
    )
    maker_bps: float = Field(
        default=_COSTS.maker_bps, ge=0.0, lt=10_000.0, description="fee of a resting fill"
    )
    taker_bps: float = Field(
        default=_COSTS.taker_bps, ge=0.0, lt=10_000.0, description="fee of a taking fill"
    )
    slippage_bps: float = Field(
        default=_COSTS.slippage_bps, ge=0.0, lt=5_000.0, description="price lost by taking"
    )
    half_spread_bps: float = Field(
        default=_COSTS.half_spread_bps,
        ge=0.0,
        lt=5_000.0,
        description="half the spread, where the data hold none",
    )
    impact: float = Field(
        default=_COSTS.impact,
        ge=0.0,
        description="price moves by impact x bar volatility x sqrt(quantity / bar volume)",
    )
    participation: float | None = Field(
        default=_COSTS.participation,
        gt=0.0,
        le=1.0,
        description="largest share of a bar's volume; null: no limit",
    )
    weight: int = Field(
        default=6_000, ge=1, description="request weight of a client in a simulated minute"
    )

    @field_validator("speed", mode="before")
    @classmethod
    def _known_speed(cls, value: Any) -> str:
        said = str(value)
        if said != STEP and not _is_speed(said):
            raise ValueError(f"a number from 0.001 to 1,000,000, or {STEP}")
        return said

    def pace(self) -> float | None:
        """Return simulated seconds a second, None for a clock that is stepped."""
        return None if self.speed == STEP else float(self.speed)

    def costs(self) -> Costs:
        """Return what trading costs."""
        return Costs(
            maker_bps=self.maker_bps,
            taker_bps=self.taker_bps,
            slippage_bps=self.slippage_bps,
            half_spread_bps=self.half_spread_bps,
            impact=self.impact,
            participation=self.participation,
        )

    def backtest(self) -> BacktestConfig:
        """Return the same for backtests, which take and never rest."""
        return BacktestConfig(
            capital=self.capital,
            taker_bps=self.taker_bps,
            slippage_bps=self.slippage_bps,
            half_spread_bps=self.half_spread_bps,
            impact=self.impact,
            participation=self.participation,
        )


def _is_speed(text: str) -> bool:
    try:
        return 1e-3 <= float(text) <= 1e6
    except ValueError:
        return False
