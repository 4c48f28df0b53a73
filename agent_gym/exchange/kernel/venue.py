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

from typing import Any

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.exchange.kernel import dealing, floor, layout, margin, memory, parts, triggers
from agent_gym.exchange.kernel.dealing import conclude, deal, write_fill
from agent_gym.exchange.kernel.floor import (
    BAR_OVER,
    CANCELLED,
    EXPIRED,
    FLOOR,
    HOLDING,
    OPEN,
    ORDER,
    PURSE,
    STOP_LIMIT,
    TAKE_LIMIT,
    TRADE,
    WITHDRAWN,
    Bar,
    Flow,
    note,
    note_start,
    others_of,
    put,
    take,
)
from agent_gym.exchange.kernel.layout import TERMS_BYTES, Terms
from agent_gym.exchange.kernel.margin import call_margin, cover_debts
from agent_gym.exchange.kernel.memory import pointer
from agent_gym.exchange.kernel.parts import load_terms, pay_funding, size_target
from agent_gym.exchange.kernel.triggers import (
    arm,
    end_partners,
    follow,
    meets,
    reached,
    shrink_partners,
)

PARTS = (parts, layout, memory, floor, margin, triggers, dealing)


@inlined
def read_bar(row: int, t: int) -> Bar:
    """Read bar t of an instrument, and the close before it, into registers."""
    bar = carray(pointer(row + t * 64), (8,), np.float64)
    before = carray(pointer(row + (t - 1) * 64), (8,), np.float64)
    return Bar(before[3], bar[0], bar[1], bar[2], bar[3], bar[4], bar[6], bar[7])


@inlined
def fund(purses: Any, holdings: Any, rows: Any, t: int) -> None:
    """Pay funding on what is held at the open, and begin the bar there."""
    for m in range(rows.size):
        bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
        for i in range(purses.size):
            holding = holdings[i, m]
            put(purses[i], holding, pay_funding(take(purses[i], holding), bar[0], bar[5]))
            holding.start = bar[0]


@inlined
def pick_due(orders: Any, live: Any, due: Any, m: int, t: int, bar: Bar, touch: bool) -> int:
    """List the orders of an instrument that a bar reaches, and return how many they are."""
    count = 0
    for k in range(live.size):
        order = orders[live[k]]
        if order.instrument != m or order.status != OPEN or order.arrives > t:
            continue
        if order.trail > 0.0 and order.armed == 0:
            arm(order, bar.open, bar.high, bar.low)
            if order.armed == 0:
                continue
        if reached(order, bar.high, bar.low, touch):
            due[count] = live[k]
            count += 1
    return count


@inlined
def play_phase(
    orders: Any,
    live: Any,
    due: Any,
    n_due: int,
    purses: Any,
    holdings: Any,
    rows: Any,
    trades: Any,
    m: int,
    t: int,
    phase: int,
    touch: bool,
    bar: Bar,
    terms: Terms,
    flow: Flow,
    count: int,
) -> tuple[Flow, int]:
    """Let the due orders trade that meet the market in a phase of the bar.

    Returns what is left of the bar's volume, and how many trades there are by then.
    """
    for k in range(n_due):
        order = orders[due[k]]
        if order.status != OPEN or order.arrives > t:
            continue
        i = order.account
        holding = holdings[i, m]
        trades_now, ref = meets(order, bar, holding.start, phase, touch)
        if phase == 4 and (order.reduce_only == 0 or abs(holding.pos) <= abs(holding.held)):
            continue
        if not trades_now:
            continue
        a, held = take(purses[i], holding), holding.held
        others = others_of(holdings, rows, i, m, t, terms.initial)
        made = deal(orders, live, order, a, held, ref, bar, flow, others, terms, t, phase, touch)
        if made.stays:
            continue
        fill = made.fill
        if fill.qty != 0.0:
            row = note(trades, count, order.id, t, i, m)
            row.maker, row.forced = made.maker, False
            row.qty, row.price, row.fee = fill.qty, fill.price, fill.fee
            count += 1
            took = 0.0 if made.maker else fill.qty
            flow = Flow(
                max(0.0, flow.left - abs(fill.qty)),
                flow.bought + max(0.0, took),
                flow.sold + max(0.0, -took),
            )
            write_fill(order, fill)
            purses[i].turnover += abs(fill.qty) * fill.price
            note_start(holding, made.a, made.ref)
            put(purses[i], holding, made.a)
            if order.exclusive == 1:
                end_partners(orders, live, order)
            elif order.group > 0:
                shrink_partners(
                    orders, live, order, fill.qty, made.done, made.ref, terms.min_notional
                )
        conclude(order, made)
    return flow, count


@inlined
def end_bar(orders: Any, live: Any, m: int, t: int, bar: Bar) -> None:
    """Let immediate orders of an instrument expire, and trailing stops follow its prices."""
    for k in range(live.size):
        order = orders[live[k]]
        arrived = order.instrument == m and (order.arrives <= t or order.hit == t)
        if not arrived or order.status != OPEN:
            continue
        if order.immediate == 1 and order.kind not in (STOP_LIMIT, TAKE_LIMIT):
            order.status, order.why = EXPIRED, BAR_OVER
        elif order.armed != 0 and order.hit == 0:
            follow(order, bar.high, bar.low)


@inlined
def mark_accounts(purses: Any, holdings: Any, rows: Any, t: int) -> None:
    """Mark every account at the closes."""
    for i in range(purses.size):
        equity = purses[i].cash
        for m in range(rows.size):
            equity += holdings[i, m].pos * carray(pointer(rows[m] + t * 64), (8,), np.float64)[3]
        purses[i].eq = equity


@door("int64(int64, int64)", parts=PARTS)
def advance(context: int, t: int) -> int:
    """Apply bar t, from 1, to every account and order; returns how many trades were made."""
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
    fund(purses, holdings, rows, t)
    if ctx.margin == 1:
        count = call_margin(ctx, purses, holdings, orders, live, trades, rows, t, count, False)
    for m in range(n_m):
        terms = load_terms(ctx.terms + m * TERMS_BYTES)
        bar = read_bar(rows[m], t)
        flow = Flow(terms.cap * bar.volume, 0.0, 0.0)
        n_due = pick_due(orders, live, due, m, t, bar, touch)
        for phase in range(1, 1 + ctx.phases):
            if phase == 3:
                for i in range(n_a):
                    holdings[i, m].held = holdings[i, m].pos
            flow, count = play_phase(
                orders, live, due, n_due, purses, holdings, rows, trades,
                m, t, phase, touch, bar, terms, flow, count,
            )  # fmt: skip
        end_bar(orders, live, m, t, bar)
    if ctx.margin == 1:
        count = call_margin(ctx, purses, holdings, orders, live, trades, rows, t, count, True)
        cover_debts(purses, holdings, n_m)
    mark_accounts(purses, holdings, rows, t)
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
