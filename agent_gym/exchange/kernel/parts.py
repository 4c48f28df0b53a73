"""What a trade does: the only implementation of fills, costs, funding, margin and marking.

Every function takes and returns scalars (or tuples of them) and is inlined into the doors. Order
within a bar: funding on the position held at the open, the margin test at the open, then orders,
then the margin test on the worst price of the bar, then the mark at the close. A decision made at
the close of bar t arrives in bar t + 1 at the earliest.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray

from agent_gym.core.kernels import inlined
from agent_gym.exchange.kernel.layout import Account, Fill, Others, Terms
from agent_gym.exchange.kernel.memory import pointer

MAX_COST = 0.9  # a price never moves against a taker by more than this share, however thin the bar
NEAR = 0.07  # half the relative change up to which the short series holds to the last digit
LOT_SLACK = 1.0 + 1e-12  # 0.3 / 0.1 is a hair less than 3 in floating point


@inlined
def near_log(x: float) -> float:
    """Return 2 atanh(x) for x up to NEAR: the series in pairs, a short chain for the processor."""
    y = x * x
    y2 = y * y
    low = (1.0 + y * (1.0 / 3.0)) + y2 * (1.0 / 5.0 + y * (1.0 / 7.0))
    high = (1.0 / 9.0 + y * (1.0 / 11.0)) + y2 * (1.0 / 13.0)
    return 2.0 * x * (low + y2 * y2 * high)


@inlined
def log_ratio(after: float, before: float) -> float:
    """Return log(after / before): 2 atanh of the relative change, libm's log beyond 15 %."""
    x = (after - before) / (after + before)
    return math.log(after / before) if abs(x) > NEAR else near_log(x)


@inlined
def load_terms(address: int) -> Terms:
    """Read the terms from memory into registers."""
    k = carray(pointer(address), (12,), np.float64)
    return Terms(k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7], k[8], k[9], k[10], k[11])


@inlined
def open_account(cash: float) -> Account:
    """Return an account that holds cash and nothing else."""
    return Account(cash, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, cash, 0.0)


@inlined
def whole_lots(qty: float, terms: Terms) -> float:
    """Return the quantity cut down to whole lots; a lot of 0 means that any size will do."""
    return terms.lot * np.trunc(qty * terms.per_lot * LOT_SLACK) if terms.lot > 0.0 else qty


@inlined
def size_target(
    frac: float, equity: float, close: float, half_spread: float, terms: Terms
) -> float:
    """Return the units that a fraction of equity buys, leaving room for what the trade costs."""
    cost = half_spread + terms.slip + terms.taker
    units = max(frac, terms.floor) * equity / (close * (1.0 + cost))
    return whole_lots(units, terms)


@inlined
def decide(
    equity: float, target: float, close: float, half: float, units: bool, terms: Terms
) -> float:
    """Turn a target into wanted units with what is known at the close of the deciding bar."""
    if units:
        return whole_lots(max(target, terms.floor), terms)
    return size_target(target, equity, close, half, terms)


@inlined
def taker_price(
    side: float,
    ref: float,
    qty: float,
    taken: float,
    volume: float,
    sigma: float,
    half: float,
    terms: Terms,
) -> float:
    """Return what a taker pays: the reference price moved by spread, slippage and impact.

    ``taken`` is what has been taken on this side of the bar before: cutting an order into slices
    saves nothing.
    """
    cost = half + terms.slip
    if terms.impact > 0.0:
        share = math.sqrt(qty / volume)
        if taken > 0.0:
            whole = taken + qty
            before = taken * math.sqrt(taken / volume)
            share = (whole * math.sqrt(whole / volume) - before) / qty
        cost += terms.impact * sigma * share
    return ref * (1.0 + side * min(cost, MAX_COST))


@inlined
def affordable_qty(
    a: Account,
    side: float,
    qty: float,
    ref: float,
    price: float,
    rate: float,
    others: Others,
    terms: Terms,
) -> float:
    """Return how much of ``qty`` an account can afford: reducing is free, adding needs margin.

    ``others`` is what it holds elsewhere. The common case, that all of it fits, is answered
    without a division.
    """
    closing = max(0.0, -a.pos * side)
    base = max(0.0, a.pos * side)
    cost = abs(price - ref) + price * rate
    equity = a.cash + a.pos * ref + others.value
    free = equity - others.margin - closing * cost - terms.initial * base * ref
    opening = max(0.0, qty - closing)
    unit = terms.initial * ref + cost
    if opening * unit <= max(free, 0.0):
        return qty
    return closing + max(0.0, free / unit)


@inlined
def book(a: Account, new_pos: float, price: float, ref: float, rate: float) -> tuple[Account, Fill]:
    """Move the money of one fill; the only place where cash and position change together."""
    qty = new_pos - a.pos
    size = abs(qty)
    fee = size * price * rate
    same = a.pos * math.copysign(1.0, qty)
    closed = min(size, max(0.0, -same))
    opened = size - closed
    kept = max(0.0, same)
    real = a.real + math.copysign(closed, a.pos) * (price - a.avg)
    avg = price if opened > 0.0 else a.avg
    if kept * opened > 0.0:
        avg = (a.avg * kept + price * opened) / (kept + opened)
    avg = avg if new_pos != 0.0 else 0.0
    after = Account(
        a.cash - (qty * price + fee),
        new_pos,
        avg,
        real,
        a.fees + fee,
        a.slip + abs(qty * (price - ref)),
        a.fund,
        a.ins,
        a.eq,
        a.want,
    )
    return after, Fill(qty, price, fee)


@inlined
def least_worth(want: float, terms: Terms) -> float:
    """Return the smallest trade on the way to a position; going for flat has none."""
    return terms.min_notional if want != 0.0 else 0.0


@inlined
def enough(worth: float, least: float) -> bool:
    """Say whether a trade is worth making: nothing never is, not even where there is no minimum."""
    return worth >= least and worth > 0.0


@inlined
def reach(
    a: Account,
    ref: float,
    available: float,
    taken: float,
    volume: float,
    sigma: float,
    half: float,
    others: Others,
    terms: Terms,
) -> tuple[Account, Fill]:
    """Trade towards ``want`` as a taker at ``ref``.

    What the participation cap leaves over stays wanted; what the account cannot afford does not, or
    it would buy dust on every later bar. Nor does what is too little to trade, whatever the volume:
    it would trade when the price has risen, long after the decision. The smallest trade does not
    bind one that goes for flat: however little a position is worth, it can be closed.
    """
    delta = a.want - a.pos
    asked = abs(delta)
    side = math.copysign(1.0, delta)
    least = least_worth(a.want, terms)
    qty = min(asked, available)
    if not enough(qty * ref, least):
        return drop_want(a, not enough(asked * ref, least)), Fill(0.0, ref, 0.0)
    price = taker_price(side, ref, qty, taken, volume, sigma, half, terms)
    fits = affordable_qty(a, side, qty, ref, price, terms.taker, others, terms)
    short = fits < qty
    if fits != asked:
        fits = whole_lots(fits, terms)
    if not enough(fits * ref, least):
        return drop_want(a, short), Fill(0.0, ref, 0.0)
    new_pos = a.want if fits == asked else a.pos + side * fits
    after, fill = book(a, new_pos, price, ref, terms.taker)
    return drop_want(after, short), fill


@inlined
def drop_want(a: Account, drop: bool) -> Account:
    """Return the account content with what it holds, if ``drop``."""
    want = a.pos if drop else a.want
    return Account(a.cash, a.pos, a.avg, a.real, a.fees, a.slip, a.fund, a.ins, a.eq, want)


@inlined
def set_want(a: Account, want: float) -> Account:
    """Return the account with a new wanted position."""
    return Account(a.cash, a.pos, a.avg, a.real, a.fees, a.slip, a.fund, a.ins, a.eq, want)


@inlined
def pay_funding(a: Account, price: float, rate: float) -> Account:
    """Settle funding on the position held: longs pay a positive rate, shorts receive it."""
    due = a.pos * price * rate
    return Account(
        a.cash - due,
        a.pos,
        a.avg,
        a.real,
        a.fees,
        a.slip,
        a.fund + due,
        a.ins,
        a.eq,
        a.want,
    )


@inlined
def pay_fee(a: Account, fee: float) -> Account:
    """Charge a fee that belongs to no fill price."""
    return Account(
        a.cash - fee,
        a.pos,
        a.avg,
        a.real,
        a.fees + fee,
        a.slip,
        a.fund,
        a.ins,
        a.eq,
        a.want,
    )


@inlined
def liquidation_price(cash: float, pos: float, maintenance: float) -> float:
    """Return the mark at which equity equals the maintenance margin."""
    return -cash / (pos - maintenance * abs(pos))


@inlined
def under_margin(cash: float, pos: float, mark: float, maintenance: float) -> bool:
    """Say whether an account falls short of its maintenance margin at a mark."""
    return pos != 0.0 and cash + pos * mark < maintenance * abs(pos) * mark


@inlined
def liquidate(a: Account, start: float, worst: float, terms: Terms) -> tuple[Account, Fill]:
    """Close the position where the margin ran out, or at the start if the market gapped past it.

    ``start`` is the first price of the bar that the position has seen: the open, unless an order
    opened or enlarged it later.

    The fee takes at most what is left. What is lost beyond zero is paid by the insurance account,
    so no money is made or lost unseen.
    """
    trigger = liquidation_price(a.cash, a.pos, terms.maintenance)
    inside = max(min(trigger, start), worst) if a.pos > 0.0 else min(max(trigger, start), worst)
    after, fill = book(a, 0.0, inside, inside, 0.0)
    gift = max(0.0, -after.cash)
    fee = min(abs(fill.qty) * inside * terms.liquidation, max(0.0, after.cash))
    closed = Account(
        after.cash + gift,
        0.0,
        0.0,
        after.real,
        after.fees,
        after.slip,
        after.fund,
        after.ins + gift,
        after.eq,
        0.0,
    )
    return pay_fee(closed, fee), Fill(fill.qty, fill.price, fee)


@inlined
def cover(a: Account) -> Account:
    """Let the insurance account pay what a flat account owes, after a close that cost too much."""
    gift = max(0.0, -a.cash) if a.pos == 0.0 else 0.0
    return Account(
        a.cash + gift,
        a.pos,
        a.avg,
        a.real,
        a.fees,
        a.slip,
        a.fund,
        a.ins + gift,
        a.eq,
        a.want,
    )


@inlined
def mark(a: Account, price: float) -> Account:
    """Value the account at a price."""
    eq = a.cash + a.pos * price
    return Account(a.cash, a.pos, a.avg, a.real, a.fees, a.slip, a.fund, a.ins, eq, a.want)


@inlined
def idle(
    cash: float,
    pos: float,
    want: float,
    h: float,
    lo: float,
    funding: float,
    terms: Terms,
    margin: bool,
) -> bool:
    """Say whether a bar does nothing to an account but mark it."""
    if want != pos:
        return False
    if margin and pos != 0.0:
        worst = lo if pos > 0.0 else h
        return funding == 0.0 and not under_margin(cash, pos, worst, terms.maintenance)
    return True


@inlined
def apply_bar(
    a: Account,
    o: float,
    h: float,
    lo: float,
    c: float,
    volume: float,
    funding: float,
    sigma: float,
    half: float,
    terms: Terms,
    margin: bool,
) -> tuple[Account, Fill, Fill]:
    """Apply one bar to an account that works towards a target; returns the fill and a liquidation.

    ``margin`` is a literal at every call, so the spot build carries no funding and no margin code.
    """
    fill, forced = Fill(0.0, o, 0.0), Fill(0.0, o, 0.0)
    if margin:
        a = pay_funding(a, o, funding)
        if under_margin(a.cash, a.pos, o, terms.maintenance):
            a, forced = liquidate(a, o, o, terms)
    if a.want != a.pos:
        none = Others(0.0, 0.0)
        a, fill = reach(a, o, terms.cap * volume, 0.0, volume, sigma, half, none, terms)
    if margin:
        worst = lo if a.pos > 0.0 else h
        if under_margin(a.cash, a.pos, worst, terms.maintenance):
            a, forced = liquidate(a, o, worst, terms)
        a = cover(a)
    return mark(a, c), fill, forced
