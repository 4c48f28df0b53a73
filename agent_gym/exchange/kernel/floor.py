"""The records of the order venue and how they are read and written: the trading floor."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray

from agent_gym.core.kernels import inlined
from agent_gym.exchange.kernel.layout import Account, Fill, Others
from agent_gym.exchange.kernel.memory import pointer

TARGET, MARKET, LIMIT, STOP, TAKE, STOP_LIMIT, TAKE_LIMIT = range(7)
OPEN, FILLED, CANCELLED, EXPIRED, PARTIAL = range(5)
(
    NO_REASON,
    WITHDRAWN,
    REPLACED,
    UNAFFORDABLE,
    NO_SHORTS,
    TOO_SMALL,
    PARTNER_FILLED,
    WOULD_TAKE,
    NOTHING_TO_REDUCE,
    BAR_OVER,
    LIQUIDATED,
) = range(11)

PURSE = np.dtype(
    [(name, "f8") for name in ("cash", "real", "fees", "slip", "fund", "ins", "eq", "turnover")],
    align=True,
)
HOLDING = np.dtype(
    [
        ("pos", "f8"),
        ("avg", "f8"),
        ("held", "f8"),  # the position before the limits of this bar
        ("start", "f8"),  # the first price of this bar that the position, as large as it is, saw
    ],
    align=True,
)
ORDER = np.dtype(
    [
        ("id", "i8"),
        ("group", "i8"),
        ("account", "i4"),
        ("instrument", "i4"),
        ("kind", "i4"),
        ("status", "i4"),
        ("reduce_only", "i4"),
        ("post_only", "i4"),
        ("immediate", "i4"),
        ("arrives", "i4"),
        ("cancels", "i4"),  # the bar in which its cancel arrives, 0 without one
        ("why", "i4"),  # why it ended with less than it asked for
        ("reduced", "i4"),  # 1 once the fill of a partner took from its quantity
        ("exclusive", "i4"),  # 1 if a hit or any fill ends its partners
        ("hit", "i4"),  # the bar that hit its trigger, 0 before
        ("armed", "i4"),  # not 0 once a trailing order follows the price
        ("qty", "f8"),  # still to trade, signed; for a target the position wanted
        ("price", "f8"),  # of a limit or a stop
        ("trigger", "f8"),  # where it is hit; of a trailing order not armed, where it is armed
        ("trail", "f8"),  # how far a trailing stop stays behind, as a share
        ("filled", "f8"),
        ("paid", "f8"),  # sum of quantity x price, signed
        ("fee", "f8"),
    ],
    align=True,
)
TRADE = np.dtype(
    [
        ("order", "i8"),
        ("bar", "i4"),
        ("account", "i4"),
        ("instrument", "i4"),
        ("maker", "?"),
        ("forced", "?"),
        ("qty", "f8"),
        ("price", "f8"),
        ("fee", "f8"),
    ],
    align=True,
)
FLOOR = np.dtype(
    [
        (name, "i8")
        for name in (
            "rows",
            "terms",
            "purses",
            "holdings",
            "orders",
            "live",  # rows of the orders that can still trade, oldest first
            "due",  # room for the rows of those that a bar reaches
            "trades",
            "n_bars",
            "n_instruments",
            "n_accounts",
            "n_orders",  # live ones
            "n_records",
            "touch",
            "margin",
            "phases",  # how much of a bar is played: 1 is its open, 4 is all of it
        )
    ],
    align=True,
)


class Bar(NamedTuple):
    """One bar of one instrument in registers, and the close of the bar before."""

    before: float
    open: float
    high: float
    low: float
    close: float
    volume: float
    sigma: float
    half: float


class Flow(NamedTuple):
    """What may still trade of a bar's volume, and what was taken on either side of it."""

    left: float
    bought: float
    sold: float


class Deal(NamedTuple):
    """What came of an order at its moment in a bar; ``stays`` if nothing did.

    ``done``: nothing is left to trade. ``whole``: nor was anything lost on the way, else ``lost``
    says why. ``short``: the account could not trade all of it, and ``lacking`` says why.
    """

    a: Account
    fill: Fill
    ref: float
    stays: bool
    maker: bool
    done: bool
    whole: bool
    lost: int
    short: bool
    lacking: int


@inlined
def others_of(
    holdings: Any, rows: Any, account: int, instrument: int, t: int, share: float
) -> Others:
    """Return value and locked margin of an account's other positions, at this bar's opens."""
    value, margin = 0.0, 0.0
    for m in range(rows.size):
        if m != instrument:
            row = carray(pointer(rows[m] + t * 64), (8,), np.float64)
            worth = holdings[account, m].pos * row[0]
            value += worth
            margin += share * abs(worth)
    return Others(value, margin)


@inlined
def take(purse: Any, holding: Any) -> Account:
    """Read an account and one of its holdings into registers."""
    return Account(
        purse.cash,
        holding.pos,
        holding.avg,
        purse.real,
        purse.fees,
        purse.slip,
        purse.fund,
        purse.ins,
        purse.eq,
        holding.pos,
    )


@inlined
def put(purse: Any, holding: Any, a: Account) -> None:
    """Write an account and one of its holdings back."""
    purse.cash, purse.real, purse.fees = a.cash, a.real, a.fees
    purse.slip, purse.fund, purse.ins = a.slip, a.fund, a.ins
    holding.pos, holding.avg = a.pos, a.avg


@inlined
def note_start(holding: Any, a: Account, ref: float) -> None:
    """Note the price of a fill, before it is put away, if it opened, turned or enlarged a position.

    No price of the bar before that one can liquidate it.
    """
    if abs(a.pos) > abs(holding.pos) or a.pos * holding.pos < 0.0:
        holding.start = ref


@inlined
def drop(order: Any, why: int) -> None:
    """End an order whose rest the venue drops, and say why."""
    order.status = PARTIAL if order.filled > 0.0 else CANCELLED
    order.why = why


@inlined
def note(trades: Any, count: int, order: int, bar: int, account: int, instrument: int) -> Any:
    """Open a row of the trade log and return it."""
    row = trades[count]
    row.order, row.bar, row.account, row.instrument = order, bar, account, instrument
    return row
