"""The margin call of the order venue: who ran dry within a bar, and at which prices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from agent_gym.core.kernels import inlined
from agent_gym.exchange.kernel.floor import CANCELLED, LIQUIDATED, OPEN, note, put, take
from agent_gym.exchange.kernel.layout import TERMS_BYTES, Fill
from agent_gym.exchange.kernel.memory import pointer
from agent_gym.exchange.kernel.parts import book, liquidate, load_terms, under_margin


@inlined
def spare_margin(
    holdings: Any, rows: Any, cash: float, i: int, t: int, worst: bool, share: float
) -> float:
    """Return equity less maintenance margin of an account at the starts, or the worst prices."""
    spare = cash
    for m in range(rows.size):
        bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
        pos = holdings[i, m].pos
        price = holdings[i, m].start if not worst else (bar[2] if pos > 0.0 else bar[1])
        spare += pos * price - share * abs(pos) * price
    return spare


@inlined
def call_margin(
    ctx: Any,
    purses: Any,
    holdings: Any,
    orders: Any,
    live: Any,
    trades: Any,
    rows: Any,
    t: int,
    count: int,
    worst: bool,
) -> int:
    """Liquidate the accounts that ran out of margin at the open, or within the bar (``worst``).

    One position is closed exactly where its margin ran out. Several are closed together at the
    point of the straight way from their starts to the worst prices where the account runs dry; the
    fee takes at most what is left of all of them. A position starts at the open, or where an order
    of this bar last enlarged it. Returns the trades made so far.
    """
    for i in range(purses.size):
        n_held, only = 0, 0
        for m in range(rows.size):
            if holdings[i, m].pos != 0.0:
                n_held, only = n_held + 1, m
        if n_held == 0:
            continue
        share = load_terms(ctx.terms + only * TERMS_BYTES).maintenance
        cash, way = purses[i].cash, 0.0
        if n_held == 1:
            bar = carray(pointer(rows[only] + t * 64), (8,), np.float64)
            pos = holdings[i, only].pos
            edge = bar[0] if not worst else (bar[2] if pos > 0.0 else bar[1])
            if not under_margin(cash, pos, edge, share):
                continue
        else:
            end = spare_margin(holdings, rows, cash, i, t, worst, share)
            if end >= 0.0:
                continue
            begin = max(0.0, spare_margin(holdings, rows, cash, i, t, False, share))
            way = begin / (begin - end)
        first, asked = count, 0.0
        for m in range(rows.size):
            holding = holdings[i, m]
            if holding.pos == 0.0:
                continue
            terms = load_terms(ctx.terms + m * TERMS_BYTES)
            bar = carray(pointer(rows[m] + t * 64), (8,), np.float64)
            edge = bar[0] if not worst else (bar[2] if holding.pos > 0.0 else bar[1])
            a = take(purses[i], holding)
            if n_held == 1:
                a, fill = liquidate(a, holding.start, edge, terms)
            else:
                price = holding.start + way * (edge - holding.start)
                a, fill = book(a, 0.0, price, price, 0.0)
                fill = Fill(fill.qty, price, abs(fill.qty) * price * terms.liquidation)
                asked += fill.fee
            put(purses[i], holding, a)
            purses[i].turnover += abs(fill.qty) * fill.price
            row = note(trades, count, 0, t, i, m)
            row.maker, row.forced = False, True
            row.qty, row.price, row.fee = fill.qty, fill.price, fill.fee
            count += 1
        if n_held > 1:
            paid = min(asked, max(0.0, purses[i].cash))
            purses[i].cash -= paid
            purses[i].fees += paid
            for k in range(first, count):
                trades[k].fee *= paid / asked if asked > 0.0 else 0.0
        for k in range(live.size):
            order = orders[live[k]]  # an order still on its way reaches the venue after all
            if order.account == i and order.status == OPEN and order.arrives <= t:
                order.status, order.why = CANCELLED, LIQUIDATED
    return count


@inlined
def cover_debts(purses: Any, holdings: Any, n_instruments: int) -> None:
    """Let the insurance account pay what flat accounts owe."""
    for i in range(purses.size):
        flat = True
        for m in range(n_instruments):
            flat = flat and holdings[i, m].pos == 0.0
        if flat and purses[i].cash < 0.0:
            purses[i].ins -= purses[i].cash
            purses[i].cash = 0.0
