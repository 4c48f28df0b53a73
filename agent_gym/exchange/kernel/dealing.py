"""What one order does at its moment in a bar: how much of it trades, at which price, as what.

Orders take or rest. One takes if it finds the market at a better price than its own: when it
arrives, and at every open at which what is left of it still stands beyond the market. If taking
would cost more than its limit it rests, and gets its limit.
"""

from __future__ import annotations

import math
from typing import Any

from agent_gym.core.kernels import inlined
from agent_gym.exchange.kernel.floor import (
    CANCELLED,
    FILLED,
    LIMIT,
    MARKET,
    NO_SHORTS,
    NOTHING_TO_REDUCE,
    PARTIAL,
    PARTNER_FILLED,
    REPLACED,
    STOP,
    STOP_LIMIT,
    TAKE_LIMIT,
    TARGET,
    TOO_SMALL,
    UNAFFORDABLE,
    WOULD_TAKE,
    Bar,
    Deal,
    Flow,
    drop,
)
from agent_gym.exchange.kernel.layout import Account, Fill, Others, Terms
from agent_gym.exchange.kernel.parts import (
    affordable_qty,
    book,
    enough,
    least_worth,
    reach,
    set_want,
    taker_price,
    whole_lots,
)
from agent_gym.exchange.kernel.triggers import (
    ROUNDING,
    came_to,
    comes_back,
    end_partners,
    resting_price,
)


@inlined
def nothing(a: Account, ref: float) -> Deal:
    """Return a deal that did not come about; the order stays as it is, or has been ended."""
    fill = Fill(0.0, ref, 0.0)
    return Deal(a, fill, ref, True, False, False, False, TOO_SMALL, False, UNAFFORDABLE)


@inlined
def is_replaced(orders: Any, live: Any, order: Any, t: int) -> bool:
    """Say whether a newer target of the same account and instrument has arrived."""
    newer = False
    for other in range(live.size):
        rival = orders[live[other]]
        newer |= (
            rival.kind == TARGET
            and rival.id > order.id
            and rival.account == order.account
            and rival.instrument == order.instrument
            and rival.arrives <= t
        )
    return newer


@inlined
def deal_target(
    order: Any, a: Account, ref: float, bar: Bar, flow: Flow, others: Others, terms: Terms
) -> Deal:
    """Trade towards a target at the open."""
    want = max(order.qty, terms.floor)
    a = set_want(a, want)
    taken = flow.bought if a.want > a.pos else flow.sold
    large = enough(abs(want - a.pos) * ref, least_worth(want, terms))
    lacking = UNAFFORDABLE if large else TOO_SMALL
    a, fill = reach(a, ref, flow.left, taken, bar.volume, bar.sigma, bar.half, others, terms)
    done, short = a.want == a.pos, a.want != want
    return Deal(a, fill, ref, False, False, done, a.pos == order.qty, NO_SHORTS, short, lacking)


@inlined
def reducible(pos: float, held: float, side: float, phase: int) -> float:
    """Return how much a reduce-only order may trade; a limit never closes what this bar opened."""
    now = max(0.0, -pos * side)
    return min(now, max(0.0, -held * side)) if phase == 3 else now


@inlined
def asked_of(order: Any, pos: float, held: float, phase: int, terms: Terms) -> tuple[float, bool]:
    """Return how much an order may trade, and whether that closes the position."""
    side = math.copysign(1.0, order.qty)
    asked, closes = abs(order.qty), False
    if order.reduce_only == 1:
        asked = min(asked, reducible(pos, held, side, phase))
        closes = asked > 0.0 and asked >= abs(pos) * (1.0 - ROUNDING)
        asked = abs(pos) if closes else asked
    if side < 0.0 and terms.floor == 0.0:
        asked = min(asked, max(0.0, pos))
    return asked, closes


@inlined
def hit(orders: Any, live: Any, order: Any, limited: bool, t: int, phase: int) -> None:
    """Turn an order whose price was hit into the market or limit order that it is from then on."""
    order.hit, order.kind = t, LIMIT if limited else MARKET
    if limited:  # the prices of this bar were before it, unless it opened there
        order.arrives = t if phase == 1 else t + 1
    if order.exclusive == 1:
        end_partners(orders, live, order)


@inlined
def deal_order(
    orders: Any,
    live: Any,
    order: Any,
    a: Account,
    held: float,
    ref: float,
    bar: Bar,
    flow: Flow,
    others: Others,
    terms: Terms,
    t: int,
    phase: int,
    touch: bool,
) -> Deal:
    """Trade what can be traded of any other order than a target."""
    kind, side = order.kind, math.copysign(1.0, order.qty)
    limited = kind in (LIMIT, STOP_LIMIT, TAKE_LIMIT)
    maker = kind == LIMIT and (phase == 3 or came_to(order, bar.before, t, touch))
    if order.post_only == 1 and not maker:
        if order.arrives == t:
            order.status, order.why = CANCELLED, WOULD_TAKE
        return nothing(a, ref)
    asked, closes = asked_of(order, a.pos, held, phase, terms)
    if asked == 0.0:  # nothing to reduce or to sell yet: only a resting order waits
        if kind == MARKET:
            drop(order, NOTHING_TO_REDUCE if order.reduce_only == 1 else NO_SHORTS)
        return nothing(a, ref)
    if kind >= STOP:
        hit(orders, live, order, limited, t, phase)
    qty = min(asked, flow.left)
    least = 0.0 if closes else terms.min_notional
    unit = max(ref, order.price) if limited else ref  # as when it was taken
    if not enough(qty * unit, least):
        if not limited and not enough(asked * unit, least):
            drop(order, TOO_SMALL)
        return nothing(a, ref)
    price = ref
    if not maker:
        taken = flow.bought if side > 0.0 else flow.sold
        price = taker_price(side, ref, qty, taken, bar.volume, bar.sigma, bar.half, terms)
        if limited and side * (price - order.price) > 0.0:
            # Taking would cost more than the limit: it rests.
            if kind == LIMIT or phase == 1 or order.immediate == 1:
                return nothing(a, ref)
            if not comes_back(kind, order, bar, touch):
                return nothing(a, ref)
            maker, price = True, resting_price(side > 0.0, order.price, bar.high, bar.low)
            ref = price
    rate = terms.maker if maker else terms.taker
    fits = affordable_qty(a, side, qty, ref, price, rate, others, terms)
    short = fits < qty
    if fits != abs(order.qty) and not (closes and fits == asked):
        fits = whole_lots(fits, terms)
    if not enough(fits * unit, least):
        if short:
            drop(order, UNAFFORDABLE)
        return nothing(a, ref)
    whole = fits >= abs(order.qty)
    new_pos = a.pos + side * fits
    if abs(new_pos) <= ROUNDING * fits:  # sums of slices are not exact
        new_pos = 0.0
    a, fill = book(a, new_pos, price, ref, rate)
    order.qty -= fill.qty
    least = terms.min_notional if a.pos == 0.0 else least
    done = whole or not enough(abs(order.qty) * unit, least)
    return Deal(a, fill, ref, False, maker, done, whole, TOO_SMALL, short, UNAFFORDABLE)


@inlined
def deal(
    orders: Any,
    live: Any,
    order: Any,
    a: Account,
    held: float,
    ref: float,
    bar: Bar,
    flow: Flow,
    others: Others,
    terms: Terms,
    t: int,
    phase: int,
    touch: bool,
) -> Deal:
    """Let an order that meets the market trade."""
    if order.kind != TARGET:
        return deal_order(
            orders, live, order, a, held, ref, bar, flow, others, terms, t, phase, touch
        )
    if is_replaced(orders, live, order, t):
        order.status, order.why = CANCELLED, REPLACED
        return nothing(a, ref)
    return deal_target(order, a, ref, bar, flow, others, terms)


@inlined
def write_fill(order: Any, fill: Fill) -> None:
    """Write a fill into its order."""
    order.filled += abs(fill.qty)
    order.paid += fill.qty * fill.price
    order.fee += fill.fee


@inlined
def conclude(order: Any, made: Deal) -> None:
    """Say where an order stands after a deal."""
    if made.done and made.whole and order.reduced == 1:
        order.status, order.why = PARTIAL, PARTNER_FILLED
    elif made.done and made.whole:
        order.status = FILLED
    elif made.short:
        drop(order, made.lacking)
    elif made.done:
        drop(order, made.lost)
