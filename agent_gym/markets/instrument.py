"""What is traded: symbol, kind and the venue's grid of prices and sizes."""

from __future__ import annotations

import math
from typing import Literal, Self, TypeAlias

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

    def as_spot(self) -> Self:
        """Return the thing itself instead of a contract on it.

        Example:
            >>> Instrument(symbol="BTC/USDT:USDT", kind="perpetual").as_spot().symbol
            'BTC/USDT'
        """
        return self.model_copy(update={"kind": "spot", "symbol": self.symbol.partition(":")[0]})

    def with_grid(self, price: float) -> Self:
        """Return the same with steps where it has none, as an exchange sets them at a price.

        Example:
            >>> made = Instrument().with_grid(64_000.0)
            >>> made.tick, made.lot
            (0.01, 1e-05)
        """
        size = math.floor(math.log10(price))
        tick = self.tick or float(f"1e{max(size - 6, -8)}")
        lot = self.lot or float(f"1e{max(-size - 1, -8)}")
        return self.model_copy(update={"tick": tick, "lot": lot})
