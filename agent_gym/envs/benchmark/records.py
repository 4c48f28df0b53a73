"""What a player did and what it holds: actions and positions, numbered by a counter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

ActionType: TypeAlias = Literal[
    "query_state",
    "buy_prediction",
    "sell_prediction",
    "open_perp",
    "close_perp",
    "create_post",
    "join_group",
    "set_targets",
]


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """One thing that was tried; ``sentiment`` is what the player had read about the market by then.

    ``price`` is the price of the market before the action. Whether the action was right is for the
    scorer to say, after the episode, from the sealed truth.
    """

    number: int
    tick: int
    type: ActionType
    market: str | None = None
    side: str | None = None
    amount: float = 0.0
    price: float | None = None
    sentiment: float = 0.0
    success: bool = True
    error: str | None = None


@dataclass(slots=True)
class Position:
    """A holding from its first trade to its last; ``flow`` is the money that came out of it."""

    id: str
    market: str
    side: str
    opened_tick: int
    size: float = 0.0
    flow: float = 0.0
    fees: float = 0.0
    paid: float = 0.0
    bought: float = 0.0
    closed_tick: int | None = None
    liquidated: bool = False

    @property
    def entry_price(self) -> float | None:
        """Return what a unit cost on average, before fees; None while nothing has traded."""
        return self.paid / self.bought if self.bought else None

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "positionId": self.id,
            "marketId": self.market,
            "side": self.side,
            "size": self.size,
            "entryPrice": self.entry_price,
            "openedTick": self.opened_tick,
            "closedTick": self.closed_tick,
            "pnl": self.flow if self.closed_tick is not None else None,
            "fees": self.fees,
            "liquidated": self.liquidated,
        }


@dataclass(slots=True)
class PositionBook:
    """All positions of a player; a number is given once."""

    open: dict[tuple[str, str], Position] = field(default_factory=dict)
    closed: list[Position] = field(default_factory=list)
    count: int = 0

    def position(self, market: str, side: str, tick: int) -> Position:
        """Return the open position of a market and side; a new one if there is none."""
        found = self.open.get((market, side))
        if found is None:
            self.count += 1
            found = self.open[market, side] = Position(f"pos-{self.count}", market, side, tick)
        return found

    def enlarge(self, where: Position, size: float, price: float, fee: float) -> None:
        """Write down a purchase, or a sale that opens a short position."""
        where.size += size
        where.bought += size
        where.paid += size * price
        signed = -1.0 if where.side != "SHORT" else 1.0
        where.flow += signed * size * price - fee
        where.fees += fee

    def reduce(self, where: Position, size: float, price: float, fee: float, tick: int) -> None:
        """Write down a sale, a purchase that covers a short position, or a payout."""
        whole = size >= where.size * (1.0 - 1e-9)
        where.size = 0.0 if whole else where.size - size
        signed = 1.0 if where.side != "SHORT" else -1.0
        where.flow += signed * size * price - fee
        where.fees += fee
        if whole:
            self.close(where, tick)

    def close(self, where: Position, tick: int) -> None:
        """End a position."""
        where.size, where.closed_tick = 0.0, tick
        del self.open[where.market, where.side]
        self.closed.append(where)

    def forget_unfilled(self) -> None:
        """Drop positions that were ordered and never traded."""
        for key in [key for key, where in self.open.items() if where.bought == 0.0]:
            del self.open[key]

    def by_id(self, name: str) -> Position | None:
        """Return an open position by its id."""
        return next((one for one in self.open.values() if one.id == name), None)
