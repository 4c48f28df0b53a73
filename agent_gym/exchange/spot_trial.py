"""What a spot floor asks of an order before it takes it, and of a market before it opens."""

from __future__ import annotations

from collections.abc import Sequence

from agent_gym.core.errors import ConfigError
from agent_gym.exchange.costs import Costs
from agent_gym.exchange.order_ledger import Placed
from agent_gym.exchange.orders import DropReason, Order, OrderKind, OrderStatus
from agent_gym.exchange.spot_records import Refusal, Refused, Wish
from agent_gym.markets.bars import Bars

ROUNDING = 1e-9
_REFUSALS = {
    DropReason.UNAFFORDABLE: Refusal.BALANCE,
    DropReason.NO_SHORTS: Refusal.BALANCE,
    DropReason.NOTHING_TO_REDUCE: Refusal.BALANCE,
    DropReason.TOO_SMALL: Refusal.TOO_SMALL,
    DropReason.WOULD_TAKE: Refusal.WOULD_TAKE,
}


def stands(placed: Placed, wish: Wish) -> bool:
    """Say whether an order stands after the open it was tried at; False for all or nothing.

    Raises:
        Refused: An exchange would not have taken it.
    """
    whole = is_whole(placed)
    if placed.reason in _REFUSALS and not whole:
        raise Refused(_REFUSALS[placed.reason], wish.symbol)
    if wish.kind.waits:
        if placed.hit_bar is not None:
            raise Refused(Refusal.TRIGGERS, wish.symbol)
        return True
    if wish.validity == "fok" and not whole:
        return False
    if wish.kind is OrderKind.MARKET and not placed.filled:
        raise Refused(Refusal.NO_LIQUIDITY, wish.symbol)
    return wish.validity != "ioc" or placed.filled > 0.0


def is_whole(placed: Placed) -> bool:
    """Say whether all of an order has traded; sums of sizes are not exact."""
    whole = placed.filled >= abs(placed.order.qty) * (1.0 - ROUNDING)
    return placed.status is OrderStatus.FILLED or whole


def to_order(wish: Wish, group: int = 0) -> Order:
    """Return the order of the venue for a wish; those of a group cancel one another."""
    if wish.kind.waits and wish.validity != "gtc":
        raise Refused(Refusal.UNSUPPORTED, wish.symbol)
    return Order(
        wish.symbol,
        wish.kind,
        wish.qty,
        wish.price,
        post_only=wish.post_only,
        immediate=wish.kind is OrderKind.MARKET or wish.validity != "gtc",
        group=group,
        trigger=wish.trigger,
        trail_bps=wish.trail_bps,
        exclusive=group > 0,
    )


def check_markets(markets: Sequence[Bars], costs: Costs, history: int) -> None:
    """Refuse what a spot floor cannot trade."""
    if costs.latency_bars:
        raise ConfigError("a spot floor answers at once", where="latency_bars", expected=0)
    for bars in markets:
        kind = bars.instrument.kind
        if kind != "spot":
            raise ConfigError("this floor trades spot", where=bars.instrument.symbol, found=kind)
    quotes = {bars.instrument.quote for bars in markets}
    if len(quotes) > 1:
        raise ConfigError("the instruments are paid in different money", found=sorted(quotes))
    if markets and len(markets[0]) < history + 1:
        raise ConfigError(
            "the series is over before the session begins",
            found=f"{len(markets[0]):,} bars",
            expected=f"{history:,} of history and one to trade in, or more",
            remedy="Take a longer series or less history",
        )
