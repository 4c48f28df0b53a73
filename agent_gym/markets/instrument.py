"""What is traded: symbol, kind and the venue's grid of prices and sizes."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from agent_gym.core.registry import Config

InstrumentKind: TypeAlias = Literal["spot", "perpetual", "prediction"]


class Instrument(Config):
    """One tradable thing; ``tick`` and ``lot`` of 0 mean that the venue sets no grid."""

    symbol: str = "BTC/USDT"
    exchange: str = "synthetic"
    kind: InstrumentKind = "spot"
    tick: float = Field(default=0.0, ge=0.0, description="price step in quote units")
    lot: float = Field(default=0.0, ge=0.0, description="size step in base units")
    min_notional: float = Field(default=0.0, ge=0.0, description="smallest trade in quote units")

    @property
    def base(self) -> str:
        """Return what is bought or sold."""
        return self.symbol.split("/")[0]

    @property
    def quote(self) -> str:
        """Return what it is paid in."""
        return self.symbol.partition("/")[2].split(":")[0]
