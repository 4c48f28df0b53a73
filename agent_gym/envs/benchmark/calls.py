"""The calls of the A2A interface: names, parameters, and what can be wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from agent_gym.core.registry import Config

UNKNOWN_METHOD, WRONG_PARAMETERS, REFUSED, TOO_MANY, OVER = -32601, -32602, -32000, -32001, -32002
MALFORMED = -32600
Amount = Annotated[float, Field(gt=0.0, le=1e12)]
Name = Annotated[str, Field(min_length=1, max_length=100)]


class NoParameters(Config):
    """A call without parameters."""


class BuyShares(Config):
    """Spend an amount of money on shares of a question, fee included."""

    marketId: Name
    outcome: Literal["YES", "NO"]
    amount: Amount


class SellShares(Config):
    """Sell shares of a question; without a number, all of them."""

    marketId: Name
    shares: Amount | None = None
    outcome: Literal["YES", "NO"] | None = Field(
        default=None, description="needed only by those who hold both"
    )


class OpenPosition(Config):
    """Buy or sell a perpetual: ``size`` is the money put up, ``leverage`` how often it counts."""

    ticker: Name
    side: Literal["LONG", "SHORT"]
    size: Amount
    leverage: float = Field(default=1.0, ge=1.0, le=100.0)


class ClosePosition(Config):
    """Close a position by its id."""

    positionId: Name


class CreatePost(Config):
    """Write something; it moves nobody."""

    content: str = Field(min_length=1, max_length=2_000)
    marketId: Name | None = None


class JoinGroup(Config):
    """Join a chat."""

    groupId: Name


METHODS: dict[str, type[Config]] = {
    "a2a.getPredictions": NoParameters,
    "a2a.buyShares": BuyShares,
    "a2a.sellShares": SellShares,
    "a2a.getPerpetuals": NoParameters,
    "a2a.openPosition": OpenPosition,
    "a2a.closePosition": ClosePosition,
    "a2a.getFeed": NoParameters,
    "a2a.createPost": CreatePost,
    "a2a.getChats": NoParameters,
    "a2a.joinGroup": JoinGroup,
    "a2a.getBalance": NoParameters,
    "a2a.getPortfolio": NoParameters,
    "a2a.getPositions": NoParameters,
    "a2a.getDashboard": NoParameters,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call gave back: a result, or a code and what was wrong."""

    result: dict[str, Any] | None = None
    code: int | None = None
    error: str | None = None

    @property
    def ok(self) -> bool:
        """Say whether the call was carried out."""
        return self.code is None

    def as_json_rpc(self, request_id: Any) -> dict[str, Any]:
        """Return the reply as JSON-RPC 2.0 wants it."""
        head: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        if self.ok:
            return head | {"result": self.result}
        return head | {"error": {"code": self.code, "message": self.error}}
