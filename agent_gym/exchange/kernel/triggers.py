"""When an order of the venue trades: the phases of a bar, triggers, trailing stops, partners.

What limits a loss (a stop) is hit by a touch, in phase 2; what takes a profit must be traded
through, in phase 3. A bar does not say which of two prices came first, so wherever it leaves a
choice the worse one for the owner of the order is taken.
"""

from __future__ import annotations

import math
from typing import Any

from agent_gym.core.kernels import inlined
from agent_gym.exchange.kernel.floor import (
    CANCELLED,
    LIMIT,
    MARKET,
    OPEN,
    PARTNER_FILLED,
    STOP,
    STOP_LIMIT,
    TAKE,
    TAKE_LIMIT,
    TARGET,
    Bar,
)
from agent_gym.exchange.kernel.parts import enough

ARMED, ARMED_LATE = 1, 2  # a trailing order follows since before this bar or its open; since later
ROUNDING = 1e-12  # what is left of a quantity below this share is rounding, not a quantity


@inlined
def passed(buy: bool, p: float, h: float, lo: float, touch: bool) -> bool:
    """Say whether prices went through a limit, or touched it where that is enough."""
    return (lo < p if buy else h > p) or (touch and (lo <= p if buy else h >= p))


@inlined
def came_to(order: Any, before: float, t: int, touch: bool) -> bool:
    """Say whether the market comes to a limit, and not the limit to the market.

    It rested, and the last close was not beyond it. A limit that has just arrived, or what is left
    of one beyond the market, finds a price that is better than its own: it takes.
    """
    return order.arrives < t and not passed(order.qty > 0.0, order.price, before, before, touch)


@inlined
def resting_price(buy: bool, p: float, h: float, lo: float) -> float:
    """Return what a resting limit gets inside a bar: its own price, or the nearest there is."""
    return min(p, h) if buy else max(p, lo)


@inlined
def meets(order: Any, bar: Bar, start: float, phase: int, touch: bool) -> tuple[bool, float]:
    """Say whether an order trades or is hit in a phase of the bar, and at which reference price.

    That is the price it waits for, if the market has yet to get there, else where the market stands
    when it can first act: at the open, or where its position began (``start``), if that was later.
    So it never lies outside the bar.

    A trailing stop counts as hit if the bar is wide enough for it, whichever of its high and low
    came first; it trades at the worst price that it can have had: its level before the bar, or the
    far end of the bar where that is nearer.
    """
    kind, buy, trigger, trail = order.kind, order.qty > 0.0, order.trigger, order.trail
    o, h, lo = bar.open, bar.high, bar.low
    if kind in (TARGET, MARKET):
        return phase == 1, o
    if kind in (STOP, STOP_LIMIT):
        late = order.armed == ARMED_LATE
        if phase == 1:
            return (o >= trigger if buy else o <= trigger) and not late, o
        at, edge = trigger, trigger
        if trail > 0.0 and buy:
            at, edge = min(trigger, h), min(trigger, lo * (1.0 + trail))
        elif trail > 0.0:
            at, edge = max(trigger, lo), max(trigger, h * (1.0 - trail))
        stands = start if phase == 4 else (at if late else o)
        at = max(at, stands) if buy else min(at, stands)
        return (phase == 2 or phase == 4) and (h >= edge if buy else lo <= edge), at
    if kind in (TAKE, TAKE_LIMIT):
        if phase == 1:
            return (o <= trigger if buy else o >= trigger), o
        at = min(trigger, o) if buy else max(trigger, o)
        return phase == 3 and passed(buy, trigger, h, lo, touch), at
    p = order.price
    if phase == 1:
        return passed(buy, p, o, o, touch), o
    return phase == 3 and passed(buy, p, h, lo, touch), resting_price(buy, p, h, lo)


@inlined
def reached(order: Any, h: float, lo: float, touch: bool) -> bool:
    """Say whether the prices of a bar reach an order, in whichever phase."""
    trigger: float = order.trigger
    kind, buy = order.kind, order.qty > 0.0
    if kind in (TARGET, MARKET) or order.trail > 0.0:
        return True
    if kind in (STOP, STOP_LIMIT):
        return h >= trigger if buy else lo <= trigger
    if kind in (TAKE, TAKE_LIMIT):
        return lo <= trigger if buy else h >= trigger
    return passed(buy, order.price, h, lo, touch)


@inlined
def comes_back(kind: int, order: Any, bar: Bar, touch: bool) -> bool:
    """Say whether a limit that rests since it was hit inside a bar has surely traded in that bar.

    Its close came later. So did the far end of the bar, if the limit lies beyond the trigger of an
    order that takes a profit.
    """
    buy, p = order.qty > 0.0, order.price
    if passed(buy, p, bar.close, bar.close, touch):
        return True
    beyond = p < order.trigger if buy else p > order.trigger
    return kind == TAKE_LIMIT and beyond and passed(buy, p, bar.high, bar.low, touch)


@inlined
def arm(order: Any, o: float, h: float, lo: float) -> None:
    """Let a trailing order begin to follow the price: at its first open, or at a price it names.

    From then on it is a stop, whatever it was called.
    """
    buy, takes = order.qty > 0.0, order.kind in (TAKE, TAKE_LIMIT)
    rises = buy != takes  # the way in which the price has to go to get there
    start, named = o, order.trigger
    if named > 0.0:
        if not (h >= named if rises else lo <= named):
            return
        start = max(named, o) if rises else min(named, o)
    order.armed = ARMED if start == o else ARMED_LATE
    order.trigger = start * (1.0 + order.trail) if buy else start * (1.0 - order.trail)
    if order.kind == TAKE:
        order.kind = STOP
    elif order.kind == TAKE_LIMIT:
        order.kind = STOP_LIMIT


@inlined
def follow(order: Any, h: float, lo: float) -> None:
    """Move the level of a trailing stop after a bar that did not hit it."""
    order.armed = ARMED
    if order.qty > 0.0:
        order.trigger = min(order.trigger, lo * (1.0 + order.trail))
    else:
        order.trigger = max(order.trigger, h * (1.0 - order.trail))


@inlined
def end_partners(orders: Any, live: Any, order: Any) -> None:
    """Cancel the open orders of a group but one."""
    for k in range(live.size):
        rival = orders[live[k]]
        mate = rival.group == order.group and rival.account == order.account
        if mate and rival.id != order.id and rival.status == OPEN:
            rival.status, rival.why = CANCELLED, PARTNER_FILLED


@inlined
def shrink_partners(
    orders: Any, live: Any, order: Any, traded: float, done: bool, ref: float, smallest: float
) -> None:
    """Take a fill off the other orders of its group; they end if it is done or little is left."""
    for k in range(live.size):
        rival = orders[live[k]]
        if rival.group != order.group or rival.account != order.account:
            continue
        if rival.id == order.id or rival.status != OPEN:
            continue
        rest = abs(rival.qty) - abs(traded)
        priced = rival.kind >= LIMIT and rival.price > 0.0
        unit = rival.price if priced else ref
        least = smallest
        if rival.reduce_only == 1:  # it may still be what closes the position
            least = ROUNDING * abs(rival.qty) * unit
        if done or rival.kind == TARGET or not enough(rest * unit, least):
            rival.status, rival.why = CANCELLED, PARTNER_FILLED
        else:
            rival.qty, rival.reduced = math.copysign(rest, rival.qty), 1
