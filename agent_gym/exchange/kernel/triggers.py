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
)
from agent_gym.exchange.kernel.parts import enough

ARMED, ARMED_LATE = 1, 2  # a trailing order follows since before this bar or its open; since later
ROUNDING = 1e-12  # what is left of a quantity below this share is rounding, not a quantity


@inlined
def passed(buy: bool, p: float, h: float, lo: float, touch: bool) -> bool:
    """Say whether prices went through a limit, or touched it where that is enough."""
    return (lo < p if buy else h > p) or (touch and (lo <= p if buy else h >= p))


@inlined
def meets(
    kind: int,
    buy: bool,
    p: float,
    trigger: float,
    trail: float,
    o: float,
    h: float,
    lo: float,
    phase: int,
    touch: bool,
) -> tuple[bool, float]:
    """Say whether an order trades or is hit in a phase of the bar, and at which reference price.

    A trailing stop counts as hit if the bar is wide enough for it, whichever of its high and low
    came first; it trades at the worst price that it can have had: its level before the bar, or the
    far end of the bar where that is nearer.
    """
    if kind in (TARGET, MARKET):
        return phase == 1, o
    if kind in (STOP, STOP_LIMIT):
        if phase == 1:
            return (o >= trigger if buy else o <= trigger), o
        at, edge = trigger, trigger
        if trail > 0.0 and buy:
            at, edge = min(trigger, h), min(trigger, lo * (1.0 + trail))
        elif trail > 0.0:
            at, edge = max(trigger, lo), max(trigger, h * (1.0 - trail))
        return (phase == 2 or phase == 4) and (h >= edge if buy else lo <= edge), at
    if kind in (TAKE, TAKE_LIMIT):
        if phase == 1:
            return (o <= trigger if buy else o >= trigger), o
        return phase == 3 and passed(buy, trigger, h, lo, touch), trigger
    if phase == 1:
        return passed(buy, p, o, o, touch), o
    return phase == 3 and passed(buy, p, h, lo, touch), min(p, o) if buy else max(p, o)


@inlined
def reached(
    kind: int, buy: bool, p: float, trigger: float, trail: float, h: float, lo: float, touch: bool
) -> bool:
    """Say whether the prices of a bar reach an order, in whichever phase."""
    if kind in (TARGET, MARKET) or trail > 0.0:
        return True
    if kind in (STOP, STOP_LIMIT):
        return h >= trigger if buy else lo <= trigger
    if kind in (TAKE, TAKE_LIMIT):
        return lo <= trigger if buy else h >= trigger
    return passed(buy, p, h, lo, touch)


@inlined
def comes_back(
    kind: int, buy: bool, p: float, trigger: float, h: float, lo: float, c: float, touch: bool
) -> bool:
    """Say whether a limit that rests since it was hit inside a bar has surely traded in that bar.

    Its close came later. So did the far end of the bar, if the limit lies beyond the trigger of an
    order that takes a profit.
    """
    if passed(buy, p, c, c, touch):
        return True
    beyond = p < trigger if buy else p > trigger
    return kind == TAKE_LIMIT and beyond and passed(buy, p, h, lo, touch)


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
