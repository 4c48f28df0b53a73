"""The doors: all echoes decide in one call, settle in another, and are replayed in a third."""

from __future__ import annotations

import math

from agent_gym.agents.echo import decisions, layout
from agent_gym.agents.echo.decisions import DEPTH_PER_CAPITAL, parameter, seen_at, wanted, within
from agent_gym.agents.echo.layout import (
    CAPITAL,
    CLOSE,
    COST,
    DEMAND_AT,
    DEPTH,
    ECHO_COUNT,
    ECHO_SLOTS,
    ECHOES_AT,
    FAMILY,
    FILL,
    FLOW,
    GROSS,
    GROWTH_AT,
    MARKET_MAKER,
    NET,
    POSITION,
    POSITION_AT,
    PREVIOUS,
    SEEN_AT,
    SEEN_MASK,
    SEEN_SLOTS,
)
from agent_gym.agents.rules import memory
from agent_gym.agents.rules.memory import count, number, set_number
from agent_gym.core.kernels import door, inlined

PARTS = (decisions, layout, memory)
ECHO_BYTES = 8 * ECHO_SLOTS
LARGEST_LOSS = 0.99  # of its capital in one bar; a score must stay a number


@inlined
def offer(own: int) -> float:
    """Return the depth that a maker offers: the tighter it quotes the more."""
    return DEPTH_PER_CAPITAL * number(own, CAPITAL) / parameter(own, 0)


@inlined
def absorb(own: int, flow: float, depth: float) -> None:
    """Let a maker take its share of the others' flow, as far as its limit goes."""
    capital = number(own, CAPITAL)
    if capital > 0.0:
        taken = flow * offer(own) / (1.0 + depth) / capital
        set_number(own, POSITION, within(number(own, POSITION) - taken, parameter(own, 2)))


@inlined
def decide(own: int, seen: int, mask: int, t: int) -> int:
    """Move one echo to what it wants after bar t; returns its family."""
    family = int(number(own, FAMILY))
    set_number(own, PREVIOUS, number(own, POSITION))
    set_number(own, POSITION, wanted(family, own, seen, mask, t))
    return family


@inlined
def grown(own: int, seen: int, mask: int, t: int, cost: float) -> float:
    """Return an echo's log growth through bar t; a maker pays no cost."""
    before = seen_at(seen, mask, t - 1, CLOSE)
    fill, close = seen_at(seen, mask, t, FILL), seen_at(seen, mask, t, CLOSE)
    held, holds = number(own, PREVIOUS), number(own, POSITION)
    rate = 0.0 if int(number(own, FAMILY)) == MARKET_MAKER else cost
    gain = held * math.expm1(fill - before) + holds * math.expm1(close - fill)
    return math.log1p(max(gain - rate * abs(holds - held), -LARGEST_LOSS))


@door("void(int64, int64)", parts=PARTS)
def decide_all(crowd: int, t: int) -> None:
    """Write the signed demand of every echo after bar t, in average daily volumes, and the sums.

    First those decide who take liquidity, then the makers absorb a share of what they ask for.
    """
    echoes, n = count(crowd, ECHOES_AT), count(crowd, ECHO_COUNT)
    seen, mask = count(crowd, SEEN_AT), count(crowd, SEEN_MASK)
    out = count(crowd, DEMAND_AT)
    flow, depth = 0.0, 0.0
    for i in range(n):
        own = echoes + i * ECHO_BYTES
        if decide(own, seen, mask, t) == MARKET_MAKER:
            depth += offer(own)
        else:
            moved = number(own, POSITION) - number(own, PREVIOUS)
            flow += moved * number(own, CAPITAL)
    row = seen + (t & mask) * SEEN_SLOTS * 8
    set_number(row, FLOW, flow)
    set_number(row, DEPTH, depth)
    net, gross = 0.0, 0.0
    for i in range(n):
        own = echoes + i * ECHO_BYTES
        if int(number(own, FAMILY)) == MARKET_MAKER:
            absorb(own, flow, depth)
        asked = (number(own, POSITION) - number(own, PREVIOUS)) * number(own, CAPITAL)
        set_number(out, i, asked)
        net += asked
        gross += abs(asked)
    set_number(crowd, NET, net)
    set_number(crowd, GROSS, gross)


@door("void(int64, int64)", parts=PARTS)
def settle_all(crowd: int, t: int) -> None:
    """Write the log growth of every echo through bar t."""
    echoes, n = count(crowd, ECHOES_AT), count(crowd, ECHO_COUNT)
    seen, mask = count(crowd, SEEN_AT), count(crowd, SEEN_MASK)
    cost, out = number(crowd, COST), count(crowd, GROWTH_AT)
    for i in range(n):
        set_number(out, i, grown(echoes + i * ECHO_BYTES, seen, mask, t, cost))


@door("void(int64, int64, int64)", parts=PARTS)
def replay(crowd: int, first: int, bars: int) -> None:
    """Play newcomers through bars that have been, without moving a price.

    They decide after bars first .. first + bars - 1; growth and position are written one row a bar.
    """
    echoes, n = count(crowd, ECHOES_AT), count(crowd, ECHO_COUNT)
    seen, mask = count(crowd, SEEN_AT), count(crowd, SEEN_MASK)
    cost, growth = number(crowd, COST), count(crowd, GROWTH_AT)
    position = count(crowd, POSITION_AT)
    for j in range(bars):
        t = first + j
        flow, depth = seen_at(seen, mask, t, FLOW), seen_at(seen, mask, t, DEPTH)
        for i in range(n):
            own = echoes + i * ECHO_BYTES
            if decide(own, seen, mask, t) == MARKET_MAKER:
                absorb(own, flow, depth + offer(own))
            set_number(growth, j * n + i, grown(own, seen, mask, t + 1, cost))
            set_number(position, j * n + i, number(own, POSITION))
