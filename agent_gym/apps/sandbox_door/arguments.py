"""The arguments of the calls, under the names that the exchange gives them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from agent_gym.core.registry import Config

Amount: TypeAlias = Annotated[Decimal, Field(max_digits=40, decimal_places=20)]
Side: TypeAlias = Literal["BUY", "SELL"]
Kind: TypeAlias = Literal[
    "MARKET",
    "LIMIT",
    "LIMIT_MAKER",
    "STOP_LOSS",
    "STOP_LOSS_LIMIT",
    "TAKE_PROFIT",
    "TAKE_PROFIT_LIMIT",
]
Name: TypeAlias = Annotated[
    str, Field(max_length=64, description="as exchange_info writes it, such as BTCUSDT")
]


PairKind: TypeAlias = Literal[
    "LIMIT_MAKER", "STOP_LOSS", "STOP_LOSS_LIMIT", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT"
]


class Of(Config):
    """A symbol."""

    symbol: Name


class OfAny(Config):
    """A symbol, or all of them."""

    symbol: Name | None = None


class BarsOf(Of):
    """Which bars, and how many."""

    interval: str | None = Field(
        default=None, max_length=8, description="such as 1h; default: that of the session"
    )
    limit: int = Field(default=50, ge=1, le=1000, description="bars, the newest last")


class BookOf(Of):
    """How deep a book."""

    limit: int = Field(default=5, ge=1, le=100, description="levels of each side")


class FillsOf(Of):
    """How many fills, the newest last."""

    limit: int = Field(default=50, ge=1, le=1000)


class OrderOf(Of):
    """One order."""

    orderId: int = Field(ge=0)


class Place(Of):
    """A new order; what each type needs is what the exchange wants for it."""

    side: Side
    type: Kind = "MARKET"
    quantity: Amount | None = Field(default=None, description="in the base asset")
    quoteOrderQty: Amount | None = Field(
        default=None, description="MARKET alone: money to spend or to get, in place of quantity"
    )
    price: Amount | None = Field(default=None, description="the limit, of types with LIMIT")
    stopPrice: Amount | None = Field(
        default=None, description="where STOP_LOSS and TAKE_PROFIT types begin to trade"
    )
    trailingDelta: int | None = Field(
        default=None, ge=0, description="basis points, for a stop that follows the price"
    )
    timeInForce: Literal["GTC", "IOC", "FOK"] | None = Field(
        default=None, description="of types with a limit; GTC if it is left out"
    )

    def params(self) -> dict[str, Any]:
        """Return the request; a limit order rests until it is cancelled unless it says else."""
        rests = self.type in ("LIMIT", "STOP_LOSS_LIMIT", "TAKE_PROFIT_LIMIT")
        lasts = {"timeInForce": "GTC"} if rests else {}
        return lasts | request_of(self) | {"newOrderRespType": "FULL"}


class PlacePair(Of):
    """Two orders of which one cancels the other: the one above the price, and the one below."""

    side: Side
    quantity: Amount = Field(description="of each, in the base asset")
    aboveType: PairKind = Field(description="a SELL takes its profit above, a BUY stops there")
    abovePrice: Amount | None = Field(default=None, description="the limit, of types with LIMIT")
    aboveStopPrice: Amount | None = Field(default=None, description="where it begins to trade")
    belowType: PairKind = Field(description="a SELL stops below, a BUY takes its profit there")
    belowPrice: Amount | None = Field(default=None, description="the limit, of types with LIMIT")
    belowStopPrice: Amount | None = Field(default=None, description="where it begins to trade")

    def params(self) -> dict[str, Any]:
        """Return the request; what rests does so until it is cancelled."""
        waits = {"above": self.aboveType, "below": self.belowType}
        lasts = {
            f"{place}TimeInForce": "GTC"
            for place, kind in waits.items()
            if kind in ("STOP_LOSS_LIMIT", "TAKE_PROFIT_LIMIT")
        }
        return lasts | request_of(self)


class StepBy(Config):
    """How many bars pass."""

    bars: int = Field(default=1, ge=1, le=100_000)


def request_of(asked: Config) -> dict[str, Any]:
    """Return arguments as the exchange reads them: plain decimals, nothing that is left out."""
    return {
        name: format(value, "f") if isinstance(value, Decimal) else value
        for name, value in asked.model_dump(exclude_none=True).items()
    }
