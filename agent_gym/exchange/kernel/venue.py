"""The order venue: many accounts, instruments and resting orders, one bar at a time.

Within a bar, for each instrument: (1) at the open, orders that trade there (market, target, stops
the market gapped past, limits it opened beyond); (2) stops that the bar touched; (3) limits that it
traded through; (4) stops of positions opened in (3). So where a bar touches both the stop and the
target of a position, the adverse one is taken. Orders of equal rank go by their number. Volume that
one order consumed is gone for the next.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.exchange.kernel import floor, layout, margin, memory, parts
from agent_gym.exchange.kernel.floor import (
    CANCELLED,
    EXPIRED,
    FILLED,
    FLOOR,
    HOLDING,
    LIMIT,
    MARKET,
    OPEN,
    ORDER,
    PURSE,
    STOP,
    TARGET,
    TRADE,
    note,
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
    load_terms,
    pay_funding,
    reach,
    set_want,
    size_target,
    taker_price,
    whole_lots,
)

PARTS = (parts, layout, memory, floor, margin)


@inlined
def meets(
    kind: int, buy: bool, p: float, o: float, h: float, lo: float, phase: int, touch: bool
) -> tuple[bool, float]:
    """Say whether an order trades in a phase of the bar, and at which reference price."""
    if kind in (TARGET, MARKET):
        return phase == 1, o
    if kind == STOP:
        if phase == 1:
            return (o >= p if buy else o <= p), o
        return (phase == 2 or phase == 4) and (h >= p if buy else lo <= p), p
    if phase == 1:
        return (o < p if buy else o > p) or (touch and o == p), o
    passed = (lo < p if buy else h > p) or (touch and (lo <= p if buy else h >= p))
    return phase == 3 and passed, min(p, o) if buy else max(p, o)


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
    orders = carray(pointer(ctx.orders), (n_o,), ORDER)
    trades = carray(pointer(ctx.trades), (4 * n_o + 2 * n_a * n_m,), TRADE)
    touch = ctx.touch == 1
    count = 0
    for m in range(n_m):
        bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
        for i in range(n_a):
            holding = holdings[i, m]
            put(purses[i], holding, pay_funding(take(purses[i], holding), bar[0], bar[5]))
    if ctx.margin == 1:
        count = call_margin(ctx, purses, holdings, orders, trades, rows, t, count, False)
    for m in range(n_m):
        terms = load_terms(ctx.terms + m * TERMS_BYTES)
        bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
        o, h, lo, volume = bar[0], bar[1], bar[2], bar[4]
        left, bought, sold = terms.cap * volume, 0.0, 0.0
        for phase in range(1, 5):
            for i in range(n_a):
                if phase == 3:
                    holdings[i, m].held = holdings[i, m].pos
            for k in range(n_o):
                order = orders[k]
                if order.instrument != m or order.status != OPEN or order.arrives > t:
                    continue
                i = order.account
                holding = holdings[i, m]
                kind, side = order.kind, math.copysign(1.0, order.qty)
                trades_now, ref = meets(kind, side > 0.0, order.price, o, h, lo, phase, touch)
                if phase == 4 and (order.reduce_only == 0 or abs(holding.pos) <= abs(holding.held)):
                    continue
                if not trades_now:
                    continue
                a = take(purses[i], holding)
                others = others_of(holdings, rows, i, m, t, terms.initial)
                if kind == TARGET:
                    newer = False
                    for other in range(n_o):
                        rival = orders[other]
                        newer |= (
                            rival.kind == TARGET
                            and rival.id > order.id
                            and rival.account == i
                            and rival.instrument == m
                            and rival.arrives <= t
                        )
                    if newer:
                        order.status = CANCELLED
                        continue
                    a = set_want(a, max(order.qty, terms.floor))
                    taken = bought if a.want > a.pos else sold
                    a, fill = reach(a, ref, left, taken, volume, bar[6], bar[7], others, terms)
                    maker, done, short = False, a.want == a.pos, False
                else:
                    fresh = order.arrives == t
                    if kind == LIMIT and phase == 1 and fresh and order.post_only == 1:
                        order.status = CANCELLED
                        continue
                    maker = kind == LIMIT and not (phase == 1 and fresh)
                    rate = terms.maker if maker else terms.taker
                    asked = abs(order.qty)
                    if order.reduce_only == 1:
                        asked = min(asked, reducible(a.pos, holding.held, side, phase))
                    if side < 0.0 and terms.floor == 0.0:
                        asked = min(asked, max(0.0, a.pos))
                    if asked == 0.0:  # nothing to reduce or to sell yet: only a resting order waits
                        order.status = CANCELLED if kind == MARKET else order.status
                        continue
                    if kind == STOP:  # a stop that was hit is a market order from then on
                        order.kind = MARKET
                    qty = min(asked, left)
                    if not qty * ref > terms.min_notional:
                        continue
                    price = ref
                    if not maker:
                        taken = bought if side > 0.0 else sold
                        price = taker_price(side, ref, qty, taken, volume, bar[6], bar[7], terms)
                        if kind == LIMIT and side * (price - order.price) > 0.0:
                            continue  # taking would cost more than the limit: it rests
                    fits = affordable_qty(a, side, qty, ref, price, rate, others, terms)
                    short = fits < qty
                    if fits != abs(order.qty):
                        fits = whole_lots(fits, terms)
                    if not fits * ref > terms.min_notional:
                        if short:
                            order.status = CANCELLED
                        continue
                    a, fill = book(a, a.pos + side * fits, price, ref, rate)
                    order.qty -= fill.qty
                    done = not abs(order.qty) * ref > terms.min_notional
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
                    put(purses[i], holding, a)
                    if order.group > 0:
                        for other in range(n_o):
                            rival = orders[other]
                            if other == k or rival.group != order.group or rival.account != i:
                                continue
                            rest = abs(rival.qty) - abs(fill.qty)
                            if rival.status != OPEN:
                                continue
                            if done or rival.kind == TARGET or rest * ref <= terms.min_notional:
                                rival.status = CANCELLED
                            else:
                                rival.qty = math.copysign(rest, rival.qty)
                if done:
                    order.status = FILLED
                elif short:
                    order.status = CANCELLED
        for k in range(n_o):
            order = orders[k]
            if order.instrument == m and order.immediate == 1 and order.arrives <= t:
                order.status = EXPIRED if order.status == OPEN else order.status
    if ctx.margin == 1:
        count = call_margin(ctx, purses, holdings, orders, trades, rows, t, count, True)
        cover_debts(purses, holdings, n_m)
    for i in range(n_a):
        equity = purses[i].cash
        for m in range(n_m):
            equity += holdings[i, m].pos * carray(pointer(rows[m] + t * 64), (8,), np.float64)[3]
        purses[i].eq = equity
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
