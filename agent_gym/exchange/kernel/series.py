"""Door 1: a whole series at once, arrays in and arrays out.

``series_*`` writes equity, position and cash of every bar and a row for every fill; ``summary_*``
keeps scalars only, for sweeps. Spot builds carry no funding and no margin code.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.exchange.kernel import layout, memory, parts
from agent_gym.exchange.kernel.memory import pointer
from agent_gym.exchange.kernel.parts import (
    apply_bar,
    decide,
    load_terms,
    open_account,
    set_want,
)

FILL_COLUMNS = ("bar", "qty", "price", "fee", "forced")
TOTALS = (
    "equity",
    "fees",
    "slippage",
    "funding",
    "insurance",
    "realised",
    "fills",
    "max_drawdown",
)
PARTS = (parts, layout, memory)
SIGNATURE = "int64(int64, int64, int64, int64, float64, int64, int64, int64, int64, int64, int64)"


@inlined
def _run(
    bars: int,
    n: int,
    targets: int,
    terms_at: int,
    cash: float,
    latency: int,
    units: int,
    out: int,
    fills: int,
    capacity: int,
    totals: int,
    margin: bool,
    keep: bool,
) -> int:
    terms = load_terms(terms_at)
    row = carray(pointer(bars), (n, 8), np.float64)
    wish = carray(pointer(targets), (n,), np.float64)
    curve = carray(pointer(out), (3, n), np.float64)
    log = carray(pointer(fills), (capacity, 5), np.float64)
    depth = latency + 1
    queue = np.full(depth, np.nan)
    a = open_account(cash)
    peak, deepest, drawdown, count, last, asked = cash, cash, 0.0, 0, 0.0, 0.0
    if keep:
        curve[0, 0] = cash
        curve[1, 0] = 0.0
        curve[2, 0] = cash
    for i in range(1, n):
        target = wish[i - 1]
        changed = target != last
        if changed:
            last = target
            asked = decide(a.eq, target, row[i - 1, 3], row[i - 1, 7], units == 1, terms)
        if latency == 0:
            if changed:
                a = set_want(a, asked)
        else:
            queue[i % depth] = asked if changed else np.nan
            due = queue[(i + 1) % depth]
            if due == due:
                a = set_want(a, due)
        a, fill, forced = apply_bar(
            a,
            row[i, 0],
            row[i, 1],
            row[i, 2],
            row[i, 3],
            row[i, 4],
            row[i, 5],
            row[i, 6],
            row[i, 7],
            terms,
            margin,
        )
        if fill.qty != 0.0:
            if keep and count < capacity:
                log[count, 0] = i
                log[count, 1] = fill.qty
                log[count, 2] = fill.price
                log[count, 3] = fill.fee
                log[count, 4] = 0.0
            count += 1
        if margin and forced.qty != 0.0:
            if keep and count < capacity:
                log[count, 0] = i
                log[count, 1] = forced.qty
                log[count, 2] = forced.price
                log[count, 3] = forced.fee
                log[count, 4] = 1.0
            count += 1
        if keep:
            curve[0, i] = a.eq
            curve[1, i] = a.pos
            curve[2, i] = a.cash
        else:
            if a.eq > peak:
                peak = a.eq
                deepest = peak * (1.0 - drawdown)
            elif a.eq < deepest:
                drawdown = 1.0 - a.eq / peak
                deepest = a.eq
    total = carray(pointer(totals), (8,), np.float64)
    total[0] = a.eq
    total[1] = a.fees
    total[2] = a.slip
    total[3] = a.fund
    total[4] = a.ins
    total[5] = a.real
    total[6] = count
    total[7] = drawdown
    return count


@door(SIGNATURE, parts=PARTS)
def series_spot(
    bars: int,
    n: int,
    targets: int,
    terms: int,
    cash: float,
    latency: int,
    units: int,
    out: int,
    fills: int,
    capacity: int,
    totals: int,
) -> int:
    """Run a series without margin; returns the number of fills."""
    return _run(
        bars, n, targets, terms, cash, latency, units, out, fills, capacity, totals, False, True
    )


@door(SIGNATURE, parts=PARTS)
def series_margin(
    bars: int,
    n: int,
    targets: int,
    terms: int,
    cash: float,
    latency: int,
    units: int,
    out: int,
    fills: int,
    capacity: int,
    totals: int,
) -> int:
    """Run a series with funding, margin and liquidation; returns the number of fills."""
    return _run(
        bars, n, targets, terms, cash, latency, units, out, fills, capacity, totals, True, True
    )


@door(SIGNATURE, parts=PARTS)
def summary_spot(
    bars: int,
    n: int,
    targets: int,
    terms: int,
    cash: float,
    latency: int,
    units: int,
    out: int,
    fills: int,
    capacity: int,
    totals: int,
) -> int:
    """Run a series without margin and keep the totals only."""
    return _run(
        bars, n, targets, terms, cash, latency, units, out, fills, capacity, totals, False, False
    )


@door(SIGNATURE, parts=PARTS)
def summary_margin(
    bars: int,
    n: int,
    targets: int,
    terms: int,
    cash: float,
    latency: int,
    units: int,
    out: int,
    fills: int,
    capacity: int,
    totals: int,
) -> int:
    """Run a series with margin and keep the totals only."""
    return _run(
        bars, n, targets, terms, cash, latency, units, out, fills, capacity, totals, True, False
    )
