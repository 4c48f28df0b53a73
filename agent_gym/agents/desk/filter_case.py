"""One signal before the rules: everything that more than one rule needs, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, nan
from typing import NamedTuple

from agent_gym.agents.desk.context import RecentContext
from agent_gym.agents.desk.filter_config import FilterConfig
from agent_gym.agents.desk.rejections import RejectCode
from agent_gym.agents.desk.schemas import Signal, Stage
from agent_gym.agents.desk.view import DeskView, is_closing


class Case:
    """A signal with the market and the account it meets.

    ``price`` is the mid, None while there is no usable quote; then no rule that needs a price
    judges, and the market rules refuse the signal. ``added`` is the notional by which the
    position in the symbol would grow, 0 for a trade that does not make it larger. ``opens`` is
    False for a trade that only closes. ``equity`` is NaN unless it is a number above 0.
    """

    __slots__ = (
        "added",
        "config",
        "context",
        "equity",
        "notional",
        "opens",
        "position",
        "price",
        "quote",
        "signal",
        "symbol",
        "view",
    )

    def __init__(
        self, signal: Signal, view: DeskView, context: RecentContext, config: FilterConfig
    ) -> None:
        self.signal = signal
        self.view = view
        self.context = context
        self.config = config
        self.symbol = symbol = signal.symbol
        self.quote = quote = view.quotes.get(symbol)
        price: float | None = None
        if quote is not None and quote.bid > 0.0 and quote.ask >= quote.bid:
            mid = quote.mid
            price = mid if isfinite(mid) else None
        self.price = price
        equity = view.holdings.equity
        self.equity = equity if 0.0 < equity < inf else nan
        amount = signal.params.amount
        self.position = held = view.holdings.positions.get(symbol, 0.0)
        traded = amount if signal.params.side == "buy" else -amount
        self.opens = not is_closing(held, traded)
        grows = abs(held + traded) - abs(held)
        self.added = grows * price if price is not None and grows > 0.0 else 0.0
        self.notional = amount * price if price is not None else 0.0


class FilterRule(NamedTuple):
    """A reason to refuse: ``check`` returns what is wrong in words, None if nothing is."""

    code: RejectCode
    stage: Stage
    check: Callable[[Case], str | None]
