"""Door 1: a whole series at once, arrays in and arrays out.

``series_*`` writes the equity of every bar, a page of the ledger (bar, position, cash) for every
bar that changed either, and a row for every fill; ``summary_*`` keeps scalars only, for sweeps.
Spot builds carry no funding and no margin code.

A bar on which something may happen goes through ``apply_bar``, as in the other doors. The quiet
stretch after it, up to the next new target, only marks the account: it reads the closes alone,
an eighth of the memory, in a loop without branches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray

from agent_gym.core.kernels import door, inlined
from agent_gym.exchange.kernel import layout, memory, parts
from agent_gym.exchange.kernel.layout import Fill, Terms
from agent_gym.exchange.kernel.memory import pointer, prefetch
from agent_gym.exchange.kernel.parts import (
    apply_bar,
    decide,
    idle,
    load_terms,
    mark,
    open_account,
    set_want,
)

PAGE_COLUMNS = ("bar", "position", "cash")
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
    "pages",
)
BAR_BYTES = 8 * layout.BAR_WIDTH
PARTS = (parts, layout, memory)
SIGNATURE = "int64(int64)"

# Where a run finds everything: addresses first, then numbers.
RUN = np.dtype(
    [
        ("bars", "i8"),
        ("closes", "i8"),
        ("targets", "i8"),
        ("terms", "i8"),
        ("equity", "i8"),
        ("ledger", "i8"),
        ("fills", "i8"),
        ("totals", "i8"),
        ("n", "i8"),
        ("fill_room", "i8"),
        ("latency", "i8"),
        ("units", "i8"),
        ("cash", "f8"),
    ]
)


@inlined
def _find_turns(n: int, wish: Any, turns: Any) -> None:
    """Write the bars at which a new target arrives, then ``n`` three times, without a branch."""
    last, count = 0.0, 0
    for i in range(1, n):
        target = wish[i - 1]
        turns[count] = i
        count += target != last
        last = target
    turns[count : count + 3] = n


@inlined
def _unharmed_end(i: int, end: int, row: Any, cash: float, pos: float, terms: Terms) -> int:
    """Return the first bar from ``i`` on that does more to a position on margin than mark it."""
    while i < end and idle(cash, pos, pos, row[i, 1], row[i, 2], row[i, 5], terms, True):
        i += 1
    return i


@inlined
def _write_fill(log: Any, count: int, i: int, fill: Fill, forced: float) -> int:
    """Add a fill to the log, if there was one and the log has room; return the new count."""
    if fill.qty == 0.0:
        return count
    if count < log.shape[0]:
        log[count, 0] = i
        log[count, 1] = fill.qty
        log[count, 2] = fill.price
        log[count, 3] = fill.fee
        log[count, 4] = forced
    return count + 1


@inlined
def _run(address: int, margin: bool, keep: bool) -> int:
    run = carray(pointer(address), (1,), RUN)[0]
    n, bars, latency, units, cash = run.n, run.bars, run.latency, run.units, run.cash
    terms = load_terms(run.terms)
    row = carray(pointer(bars), (n, 8), np.float64)
    close = carray(pointer(run.closes), (n,), np.float64)
    wish = carray(pointer(run.targets), (n,), np.float64)
    equity = carray(pointer(run.equity), (n,), np.float64)
    book = carray(pointer(run.ledger), (n, 3), np.float64)
    log = carray(pointer(run.fills), (run.fill_room, 5), np.float64)
    turns = np.empty(n + 3, np.int64)
    _find_turns(n, wish, turns)
    depth = latency + 1
    queue = np.full(depth, np.nan)
    a = open_account(cash)
    peak, deepest, drawdown, count, asked = cash, cash, 0.0, 0, 0.0
    held, owned, pages = 0.0, cash, 1
    if keep:
        equity[0] = cash
        book[0, 0] = 0.0
        book[0, 1] = 0.0
        book[0, 2] = cash
    i, turn, turned = 1, 0, 0
    while i < n:
        changed = i == turns[turn]
        if changed:
            turn, turned, target = turn + 1, i, wish[i - 1]
            if target - target != 0.0:
                return -i
            ahead = bars + BAR_BYTES * turns[turn + 1]
            prefetch(ahead - BAR_BYTES)
            prefetch(ahead)
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
        if keep:
            count = _write_fill(log, count, i, fill, 0.0)
            if margin:
                count = _write_fill(log, count, i, forced, 1.0)
            if a.pos != held or a.cash != owned:
                held, owned = a.pos, a.cash
                book[pages, 0] = i
                book[pages, 1] = held
                book[pages, 2] = owned
                pages += 1
        else:
            count += fill.qty != 0.0
            if margin:
                count += forced.qty != 0.0
        first = i
        i += 1
        if a.want == a.pos and (latency == 0 or first - turned > latency):
            i = turns[turn]
            if margin and a.pos != 0.0:
                i = _unharmed_end(first + 1, i, row, a.cash, a.pos, terms)
        if keep:
            for k in range(first, i):
                equity[k] = a.cash + a.pos * close[k]
        else:
            for k in range(first, i):
                worth = a.cash + a.pos * close[k]
                if worth > peak:
                    peak = worth
                    deepest = peak * (1.0 - drawdown)
                elif worth < deepest:
                    drawdown = 1.0 - worth / peak
                    deepest = worth
        a = mark(a, close[i - 1])
    total = carray(pointer(run.totals), (9,), np.float64)
    total[0] = a.eq
    total[1] = a.fees
    total[2] = a.slip
    total[3] = a.fund
    total[4] = a.ins
    total[5] = a.real
    total[6] = count
    total[7] = drawdown
    total[8] = pages
    return count


@door(SIGNATURE, parts=PARTS)
def series_spot(run: int) -> int:
    """Run a series without margin; returns the number of fills, or -i for a bad target i - 1."""
    return _run(run, False, True)


@door(SIGNATURE, parts=PARTS)
def series_margin(run: int) -> int:
    """Do the same with funding, margin and liquidation."""
    return _run(run, True, True)


@door(SIGNATURE, parts=PARTS)
def summary_spot(run: int) -> int:
    """Run a series without margin and keep the totals only."""
    return _run(run, False, False)


@door(SIGNATURE, parts=PARTS)
def summary_margin(run: int) -> int:
    """Run a series with margin and keep the totals only."""
    return _run(run, True, False)
