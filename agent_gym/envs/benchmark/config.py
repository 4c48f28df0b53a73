"""How a snapshot is played: the money, the costs, and what may be done with it."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from agent_gym.core.registry import Config
from agent_gym.exchange.costs import Costs

RULES_VERSION = "1"  # goes into the group of a trajectory: episodes under other rules do not mix


class BenchmarkWorldConfig(Config):
    """A snapshot and the rules of play; every market has an equal budget."""

    snapshot: Path = Field(description="public file of a snapshot")
    cash: float = Field(default=10_000.0, gt=0.0, le=1e9, description="opening balance")
    text: bool = Field(default=False, description="observations also in words")
    leverage: float = Field(
        default=3.0, ge=1.0, le=20.0, description="of a whole budget in a perpetual"
    )
    max_leverage: float = Field(default=5.0, ge=1.0, le=20.0, description="what the venue lends")
    maintenance_margin: float = Field(default=0.02, ge=0.0, lt=0.5)
    prediction_fee_bps: float = Field(default=50.0, ge=0.0, le=2_000.0)
    costs: Costs = Field(
        default=Costs(taker_bps=4.0, half_spread_bps=1.0, slippage_bps=0.5, participation=None),
        description="of a perpetual",
    )
    calls_per_tick: int = Field(
        default=50, ge=1, description="calls that one tick takes; more are invalid"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.leverage > self.max_leverage:
            raise ValueError("leverage is more than max_leverage")
        if self.maintenance_margin >= 1.0 / self.max_leverage:
            raise ValueError("maintenance_margin must lie below 1 / max_leverage")
        if self.costs.latency_bars:
            raise ValueError("a benchmark fills orders in the next tick; latency_bars must be 0")
        return self
