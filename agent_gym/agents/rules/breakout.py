"""Breakout of a price channel."""

from __future__ import annotations

import math
from typing import Self

from pydantic import Field, model_validator

from agent_gym.agents.rules import memory, window
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule, RuleConfig
from agent_gym.agents.rules.window import ahead, behind
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import register

ENTRY, EXIT, LONG, SHORT, SEEN, CURSOR, HELD = range(7)
ENTRY_TOP, ENTRY_FLOOR, EXIT_TOP, EXIT_FLOOR, RINGS = range(7, 12)  # highs first, then lows


class BreakoutConfig(RuleConfig):
    """How long the channels are."""

    entry_bars: int = Field(default=48, ge=2, description="bars of the channel that opens")
    exit_bars: int = Field(default=24, ge=1, description="bars of the channel that closes")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.exit_bars > self.entry_bars:
            raise ValueError(
                f"exit_bars ({self.exit_bars}) must not exceed entry_bars ({self.entry_bars})"
            )
        return self


@inlined
def _raise_top(state: int, edge: int, high: float, gone: float, bars: int) -> None:
    """Move the top of the channel of ``bars`` by one bar, after the ring has taken it in.

    The old top holds unless it has just left the channel, so the ring is seldom searched.
    """
    top, length, cursor = number(state, edge), count(state, ENTRY), count(state, CURSOR)
    if high >= top:
        top = high
    elif gone >= top:
        top = high
        for back in range(1, bars):
            top = max(top, number(state, RINGS + behind(cursor, back, length)))
    set_number(state, edge, top)


@inlined
def _lower_floor(state: int, edge: int, low: float, gone: float, bars: int) -> None:
    """Move the floor of the channel of ``bars`` by one bar, after the ring has taken it in."""
    floor, length, cursor = number(state, edge), count(state, ENTRY), count(state, CURSOR)
    if low <= floor:
        floor = low
    elif gone <= floor:
        floor = low
        for back in range(1, bars):
            floor = min(floor, number(state, RINGS + length + behind(cursor, back, length)))
    set_number(state, edge, floor)


@inlined
def _take_in(state: int, high: float, low: float) -> None:
    entry, leave, cursor = count(state, ENTRY), count(state, EXIT), count(state, CURSOR)
    highs, lows, recent = RINGS, RINGS + entry, behind(cursor, leave, entry)
    old_high, old_low = number(state, highs + cursor), number(state, lows + cursor)
    recent_high, recent_low = number(state, highs + recent), number(state, lows + recent)
    set_number(state, highs + cursor, high)
    set_number(state, lows + cursor, low)
    _raise_top(state, ENTRY_TOP, high, old_high, entry)
    _lower_floor(state, ENTRY_FLOOR, low, old_low, entry)
    _raise_top(state, EXIT_TOP, high, recent_high, leave)
    _lower_floor(state, EXIT_FLOOR, low, recent_low, leave)
    set_count(state, CURSOR, ahead(cursor, entry))


@inlined
def _breakout(state: int, high: float, low: float, close: float) -> float:
    seen, held = count(state, SEEN), number(state, HELD)
    if seen >= count(state, ENTRY):  # the channel is made of the bars before this one
        if close > number(state, ENTRY_TOP):
            held = number(state, LONG)
        elif close < number(state, ENTRY_FLOOR):
            held = number(state, SHORT)
        elif (held > 0.0 and close < number(state, EXIT_FLOOR)) or (
            held < 0.0 and close > number(state, EXIT_TOP)
        ):
            held = 0.0
    _take_in(state, high, low)
    set_count(state, SEEN, seen + 1)
    set_number(state, HELD, held)
    return held


@door("float64(int64, float64, float64, float64)", parts=(memory, window))
def breakout_step(state: int, high: float, low: float, close: float) -> float:
    """Take in one bar."""
    return _breakout(state, high, low, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory, window))
def breakout_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Take in n bars; see Formula.run."""
    high, low, close = count(columns, 0), count(columns, 1), count(columns, 2)
    for i in range(n):
        target = _breakout(state + i * stride, number(high, i), number(low, i), number(close, i))
        set_number(out, i, target)


@register("agent", "rules/breakout", BreakoutConfig)
def breakout(config: BreakoutConfig) -> Rule:
    """Buy a close above the highest high of ``entry_bars``; sell one below the lowest low.

    A position is closed when the close leaves the shorter channel of ``exit_bars`` against it.
    Out until ``entry_bars`` bars have been seen.
    """
    bars = config.entry_bars
    empty_highs = {RINGS + i: -math.inf for i in range(bars)}
    empty_lows = {RINGS + bars + i: math.inf for i in range(bars)}
    edges = {
        ENTRY_TOP: -math.inf,
        EXIT_TOP: -math.inf,
        ENTRY_FLOOR: math.inf,
        EXIT_FLOOR: math.inf,
    }
    initial = template(
        RINGS + 2 * bars,
        {LONG: config.size, SHORT: config.short} | edges | empty_highs | empty_lows,
        {ENTRY: bars, EXIT: config.exit_bars},
    )
    needs = ("high", "low", "close")
    return Rule(Formula("rules/breakout", needs, initial, breakout_step, breakout_run))
