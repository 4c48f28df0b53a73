"""Crossing of two moving averages."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from agent_gym.agents.rules import memory, window
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule, RuleConfig
from agent_gym.agents.rules.window import SUM_SLOTS, ahead, behind, slid, slide
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import register

FAST, SLOW, ROOM, LONG, SHORT, SEEN, CURSOR, HELD, FAST_SUM = range(9)
SLOW_SUM = FAST_SUM + SUM_SLOTS
RING = SLOW_SUM + SUM_SLOTS

# Two averages of the same price differ by rounding alone; nearer than this they are equal.
TIE = 1e-12


class SmaCrossConfig(RuleConfig):
    """The two windows and how far apart the averages must be."""

    fast: int = Field(default=20, ge=1, description="bars in the fast average")
    slow: int = Field(default=50, ge=2, description="bars in the slow average")
    band: float = Field(
        default=0.0, ge=0, lt=1, description="relative gap below which the position is kept"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.fast >= self.slow:
            raise ValueError(f"fast ({self.fast}) must be smaller than slow ({self.slow})")
        return self


@inlined
def _side(gap: float, room: float, held: float, long: float, short: float) -> float:
    if gap > room:
        return long
    return short if gap < -room else held


@inlined
def _sma_cross(state: int, close: float) -> float:
    fast, slow = count(state, FAST), count(state, SLOW)
    cursor, seen = count(state, CURSOR), count(state, SEEN) + 1
    left_fast = number(state, RING + behind(cursor, fast, slow))
    left_slow = number(state, RING + cursor)
    set_number(state, RING + cursor, close)
    set_count(state, CURSOR, ahead(cursor, slow))
    set_count(state, SEEN, seen)
    fast_sum = slide(state, FAST_SUM, close, left_fast, fast)
    slow_sum = slide(state, SLOW_SUM, close, left_slow, slow)
    if seen < slow:
        return 0.0
    held = _side(
        fast_sum * slow - slow_sum * fast,
        number(state, ROOM) * (slow_sum * fast),
        number(state, HELD),
        number(state, LONG),
        number(state, SHORT),
    )
    set_number(state, HELD, held)
    return held


@inlined
def _whole_series(state: int, n: int, out: int, close: int) -> None:
    """Do what a fresh state does n times, in registers: the closes themselves are the ring."""
    fast, slow = count(state, FAST), count(state, SLOW)
    share, long, short = number(state, ROOM), number(state, LONG), number(state, SHORT)
    fast_sum = fast_fresh = slow_sum = slow_fresh = held = 0.0
    fast_age = slow_age = 0
    for i in range(min(slow - 1, n)):
        entering = number(close, i)
        left = number(close, i - fast) if i >= fast else 0.0
        fast_sum, fast_fresh, fast_age = slid(fast_sum, fast_fresh, fast_age, entering, left, fast)
        slow_sum, slow_fresh, slow_age = slid(slow_sum, slow_fresh, slow_age, entering, 0.0, slow)
        set_number(out, i, 0.0)
    for i in range(slow - 1, n):
        entering = number(close, i)
        left = number(close, i - fast)
        fast_sum, fast_fresh, fast_age = slid(fast_sum, fast_fresh, fast_age, entering, left, fast)
        left = number(close, i - slow) if i >= slow else 0.0
        slow_sum, slow_fresh, slow_age = slid(slow_sum, slow_fresh, slow_age, entering, left, slow)
        gap = fast_sum * slow - slow_sum * fast
        held = _side(gap, share * (slow_sum * fast), held, long, short)
        set_number(out, i, held)


@door("float64(int64, float64)", parts=(memory, window))
def sma_cross_step(state: int, close: float) -> float:
    """Take in one close."""
    return _sma_cross(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory, window))
def sma_cross_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Take in n closes; see Formula.run."""
    close = count(columns, 0)
    if stride == 0:
        _whole_series(state, n, out, close)
    else:
        for i in range(n):
            set_number(out, i, _sma_cross(state + i * stride, number(close, i)))


@register("agent", "rules/sma-cross", SmaCrossConfig)
def sma_cross(config: SmaCrossConfig) -> Rule:
    """Be long while the fast average is above the slow one; below it short, or out.

    Out until ``slow`` bars have been seen; inside the band the position stays.
    """
    initial = template(
        RING + config.slow,
        {ROOM: max(config.band, TIE), LONG: config.size, SHORT: config.short},
        {FAST: config.fast, SLOW: config.slow},
    )
    formula = Formula("rules/sma-cross", ("close",), initial, sma_cross_step, sma_cross_run)
    return Rule(formula)
