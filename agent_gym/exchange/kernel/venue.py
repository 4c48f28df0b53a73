"""The order venue: many accounts, instruments and resting orders, one bar at a time.

Within a bar, for each instrument: (1) at the open, orders that trade there (market, target, stops
the market gapped past, limits it opened beyond); (2) stops that the bar touched; (3) limits and
profit-takers that it traded through; (4) stops of positions opened in (3). So where a bar touches
both the stop and the target of a position, the adverse one is taken. Orders of equal rank go by
their number. Volume that one order consumed is gone for the next. A cancel acts at the open of the
bar that it arrives in, before anything else happens there.

Records of orders stay where they are. ``live`` lists the rows of those that can still trade; each
bar picks from it, once for an instrument, the few that its prices reach.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.exchange.kernel import floor, layout, margin, memory, parts, triggers
from agent_gym.exchange.kernel.floor import (
    BAR_OVER,
    CANCELLED,
    EXPIRED,
    FILLED,
    FLOOR,
    HOLDING,
    LIMIT,
    MARKET,
    NO_SHORTS,
    NOTHING_TO_REDUCE,
    OPEN,
    ORDER,
    PARTIAL,
    PARTNER_FILLED,
    PURSE,
    REPLACED,
    STOP,
    STOP_LIMIT,
    TAKE_LIMIT,
    TARGET,
    TOO_SMALL,
    TRADE,
    UNAFFORDABLE,
    WITHDRAWN,
    WOULD_TAKE,
    drop,
    note,
    note_start,
    others_of,
    put,
    take,
)
from agent_gym.exchange.kernel.layout import TERMS_BYTES
from agent_gym.exchange.kernel.margin import call_margin, cover_debts
from agent_gym.exchange.kernel.memory import pointer
from agent_gym.exchange.kernel.parts import (
    affordable_qty,
    book,
    enough,
    least_worth,
    load_terms,
    pay_funding,
    reach,
    set_want,
    size_target,
    taker_price,
    whole_lots,
)
from agent_gym.exchange.kernel.triggers import (
    ARMED_LATE,
    ROUNDING,
    arm,
    comes_back,
    end_partners,
    follow,
    meets,
    reached,
    shrink_partners,
)

PARTS = (parts, layout, memory, floor, margin, triggers)


@inlined
def reducible(pos: float, held: float, side: float, phase: int) -> float:
    """Return how much a reduce-only order may trade; a limit never closes what this bar opened."""
    now = max(0.0, -pos * side)
    return min(now, max(0.0, -held * side)) if phase == 3 else now


@inlined
def settle(order: Any, traded: float, price: float, fee: float) -> None:
    """Write a fill into its order."""
    order.filled += abs(traded)
    order.paid += traded * price
    order.fee += fee


@door("int64(int64, int64)", parts=PARTS)
def advance(context: int, t: int) -> int:
    """Apply bar t to every account and order; returns how many trades were made."""
    ctx = carray(pointer(context), (1,), FLOOR)[0]
    n_m, n_a, n_o = ctx.n_instruments, ctx.n_accounts, ctx.n_orders
    rows = carray(pointer(ctx.rows), (n_m,), np.int64)
    purses = carray(pointer(ctx.purses), (n_a,), PURSE)
    holdings = carray(pointer(ctx.holdings), (n_a, n_m), HOLDING)
    orders = carray(pointer(ctx.orders), (ctx.n_records,), ORDER)
    live = carray(pointer(ctx.live), (n_o,), np.int64)
    due = carray(pointer(ctx.due), (n_o,), np.int64)
    trades = carray(pointer(ctx.trades), (4 * n_o + 2 * n_a * n_m,), TRADE)
    touch = ctx.touch == 1
    count = 0
    for m in range(n_m):
        bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
        for i in range(n_a):
            holding = holdings[i, m]
            put(purses[i], holding, pay_funding(take(purses[i], holding), bar[0], bar[5]))
            holding.start = bar[0]
    if ctx.margin == 1:
        count = call_margin(ctx, purses, holdings, orders, live, trades, rows, t, count, False)
    for m in range(n_m):
        terms = load_terms(ctx.terms + m * TERMS_BYTES)
        bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
        o, h, lo, c, volume = bar[0], bar[1], bar[2], bar[3], bar[4]
        left, bought, sold = terms.cap * volume, 0.0, 0.0
        n_due = 0
        for k in range(n_o):
            order = orders[live[k]]
            if order.instrument != m or order.status != OPEN or order.arrives > t:
                continue
            if order.trail > 0.0 and order.armed == 0:
                arm(order, o, h, lo)
                if order.armed == 0:
                    continue
            buy, p, trigger = order.qty > 0.0, order.price, order.trigger
            if reached(order.kind, buy, p, trigger, order.trail, h, lo, touch):
                due[n_due] = live[k]
                n_due += 1
        for phase in range(1, 1 + ctx.phases):
            for i in range(n_a):
                if phase == 3:
                    holdings[i, m].held = holdings[i, m].pos
            for k in range(n_due):
                order = orders[due[k]]
                if order.status != OPEN or order.arrives > t:
                    continue
                i = order.account
                holding = holdings[i, m]
                kind, side = order.kind, math.copysign(1.0, order.qty)
                limited = kind in (LIMIT, STOP_LIMIT, TAKE_LIMIT)
                trigger, trail = order.trigger, order.trail
                trades_now, ref = meets(
                    kind, side > 0.0, order.price, trigger, trail, o, h, lo, phase, touch
                )
                if phase == 4 and (order.reduce_only == 0 or abs(holding.pos) <= abs(holding.held)):
                    continue
                if phase == 1 and order.armed == ARMED_LATE:
                    continue
                if not trades_now:
                    continue
                a = take(purses[i], holding)
                others = others_of(holdings, rows, i, m, t, terms.initial)
                if kind == TARGET:
                    newer = False
                    for other in range(n_o):
                        rival = orders[live[other]]
                        newer |= (
                            rival.kind == TARGET
                            and rival.id > order.id
                            and rival.account == i
                            and rival.instrument == m
                            and rival.arrives <= t
                        )
                    if newer:
                        order.status, order.why = CANCELLED, REPLACED
                        continue
                    want = max(order.qty, terms.floor)
                    a = set_want(a, want)
                    taken = bought if a.want > a.pos else sold
                    large = enough(abs(want - a.pos) * ref, least_worth(want, terms))
                    lacking = UNAFFORDABLE if large else TOO_SMALL
                    a, fill = reach(a, ref, left, taken, volume, bar[6], bar[7], others, terms)
                    maker, done, short = False, a.want == a.pos, a.want != want
                    whole, lost = a.pos == order.qty, NO_SHORTS
                else:
                    fresh = order.arrives == t
                    if kind == LIMIT and phase == 1 and fresh and order.post_only == 1:
                        order.status, order.why = CANCELLED, WOULD_TAKE
                        continue
                    maker, lacking = kind == LIMIT and not (phase == 1 and fresh), UNAFFORDABLE
                    rate = terms.maker if maker else terms.taker
                    asked, closes = abs(order.qty), False
                    if order.reduce_only == 1:
                        asked = min(asked, reducible(a.pos, holding.held, side, phase))
                        closes = asked > 0.0 and asked >= abs(a.pos) * (1.0 - ROUNDING)
                        asked = abs(a.pos) if closes else asked
                    if side < 0.0 and terms.floor == 0.0:
                        asked = min(asked, max(0.0, a.pos))
                    if asked == 0.0:  # nothing to reduce or to sell yet: only a resting order waits
                        if kind == MARKET:
                            drop(order, NOTHING_TO_REDUCE if order.reduce_only == 1 else NO_SHORTS)
                        continue
                    if kind >= STOP:  # it was hit: from then on it is a market or a limit order
                        order.hit, order.kind = t, LIMIT if limited else MARKET
                        if limited:  # the prices of this bar were before it, unless it opened there
                            order.arrives = t if phase == 1 else t + 1
                        if order.exclusive == 1:
                            end_partners(orders, live, order)
                    qty = min(asked, left)
                    least = 0.0 if closes else terms.min_notional
                    unit = max(ref, order.price) if limited else ref  # as when it was taken
                    if not enough(qty * unit, least):
                        if not limited and not enough(asked * unit, least):
                            drop(order, TOO_SMALL)
                        continue
                    price = ref
                    if not maker:
                        taken = bought if side > 0.0 else sold
                        price = taker_price(side, ref, qty, taken, volume, bar[6], bar[7], terms)
                        if limited and side * (price - order.price) > 0.0:
                            # Taking would cost more than the limit: it rests.
                            p, buy = order.price, side > 0.0
                            if kind == LIMIT or phase == 1 or order.immediate == 1:
                                continue
                            if not comes_back(kind, buy, p, trigger, h, lo, c, touch):
                                continue
                            maker, rate, ref, price = True, terms.maker, p, p
                    fits = affordable_qty(a, side, qty, ref, price, rate, others, terms)
                    short = fits < qty
                    if fits != abs(order.qty) and not (closes and fits == asked):
                        fits = whole_lots(fits, terms)
                    if not enough(fits * unit, least):
                        if short:
                            drop(order, UNAFFORDABLE)
                        continue
                    whole, lost = fits >= abs(order.qty), TOO_SMALL
                    new_pos = a.pos + side * fits
                    if abs(new_pos) <= ROUNDING * fits:  # sums of slices are not exact
                        new_pos = 0.0
                    a, fill = book(a, new_pos, price, ref, rate)
                    order.qty -= fill.qty
                    least = terms.min_notional if a.pos == 0.0 else least
                    done = whole or not enough(abs(order.qty) * unit, least)
                if fill.qty != 0.0:
                    row = note(trades, count, order.id, t, i, m)
                    row.maker, row.forced = maker, False
                    row.qty, row.price, row.fee = fill.qty, fill.price, fill.fee
                    count += 1
                    left = max(0.0, left - abs(fill.qty))
                    if not maker:
                        bought += max(0.0, fill.qty)
                        sold += max(0.0, -fill.qty)
                    settle(order, fill.qty, fill.price, fill.fee)
                    purses[i].turnover += abs(fill.qty) * fill.price
                    note_start(holding, a, ref)
                    put(purses[i], holding, a)
                    if order.exclusive == 1:
                        end_partners(orders, live, order)
                    elif order.group > 0:
                        smallest = terms.min_notional
                        shrink_partners(orders, live, order, fill.qty, done, ref, smallest)
                if done and whole and order.reduced == 1:
                    order.status, order.why = PARTIAL, PARTNER_FILLED
                elif done and whole:
                    order.status = FILLED
                elif short:
                    drop(order, lacking)
                elif done:
                    drop(order, lost)
        for k in range(n_o):
            order = orders[live[k]]
            arrived = order.instrument == m and (order.arrives <= t or order.hit == t)
            if not arrived or order.status != OPEN:
                continue
            waits = order.kind in (STOP_LIMIT, TAKE_LIMIT)
            if order.immediate == 1 and not waits:
                order.status, order.why = EXPIRED, BAR_OVER
            elif order.armed != 0 and order.hit == 0:
                follow(order, h, lo)
    if ctx.margin == 1:
        count = call_margin(ctx, purses, holdings, orders, live, trades, rows, t, count, True)
        cover_debts(purses, holdings, n_m)
    for i in range(n_a):
        equity = purses[i].cash
        for m in range(n_m):
            equity += holdings[i, m].pos * carray(pointer(rows[m] + t * 64), (8,), np.float64)[3]
        purses[i].eq = equity
    return count


@door("int64(int64, int64)", parts=PARTS)
def step(context: int, t: int) -> int:
    """Let the cancels that arrive act, apply bar t, and strike what is done off the live orders."""
    ctx = carray(pointer(context), (1,), FLOOR)[0]
    orders = carray(pointer(ctx.orders), (ctx.n_records,), ORDER)
    live = carray(pointer(ctx.live), (ctx.n_orders,), np.int64)
    kept = 0
    for k in range(live.size):
        order = orders[live[k]]
        if 0 < order.cancels <= t:
            order.status, order.why = CANCELLED, WITHDRAWN
        else:
            live[kept] = live[k]
            kept += 1
    ctx.n_orders = kept
    count = advance(context, t)
    kept = 0
    for k in range(ctx.n_orders):
        if orders[live[k]].status == OPEN:
            live[kept] = live[k]
            kept += 1
    ctx.n_orders = kept
    return count


@door("int64(int64, int64, int64, int64, int64, int64)", parts=PARTS)
def run_targets(context: int, targets: int, latency: int, curves: int, log: int, room: int) -> int:
    """Play one account through all bars by target fractions; returns the number of trades.

    Each instrument owns ``latency + 2`` order slots: for those on their way, the one that arrives
    and the one that is being worked, so one of them is always free.
    """
    ctx = carray(pointer(context), (1,), FLOOR)[0]
    n, n_m = ctx.n_bars, ctx.n_instruments
    rows = carray(pointer(ctx.rows), (n_m,), np.int64)
    purse = carray(pointer(ctx.purses), (1,), PURSE)[0]
    holdings = carray(pointer(ctx.holdings), (n_m,), HOLDING)
    orders = carray(pointer(ctx.orders), (ctx.n_orders,), ORDER)
    trades = carray(pointer(ctx.trades), (4 * ctx.n_orders + 2 * n_m,), TRADE)
    book_of_all = carray(pointer(log), (room,), TRADE)
    wish = carray(pointer(targets), (n, n_m), np.float64)
    curve = carray(pointer(curves), (n, 2 + n_m), np.float64)
    curve[0, 0] = curve[0, 1] = purse.cash
    depth, total, number = latency + 2, 0, 0
    for t in range(1, n):
        for m in range(n_m):
            target = wish[t - 1, m]
            if target != (wish[t - 2, m] if t > 1 else 0.0):
                terms = load_terms(ctx.terms + m * TERMS_BYTES)
                bar = carray(pointer(rows[m] + (t - 1) * 64), (8,), np.float64)
                slot = m * depth
                while orders[slot].status == OPEN:
                    slot += 1
                order = orders[slot]
                number += 1
                order.id, order.status, order.arrives = number, OPEN, t + latency
                order.qty = size_target(target, purse.eq, bar[3], bar[7], terms)
        count = advance(context, t)
        for k in range(count):
            if total < room:
                book_of_all[total] = trades[k]
                total += 1
        curve[t, 0], curve[t, 1] = purse.eq, purse.cash
        for m in range(n_m):
            curve[t, 2 + m] = holdings[m].pos
    return total
