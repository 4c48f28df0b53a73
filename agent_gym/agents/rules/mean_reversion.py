"""Mean reversion: what is far from its average is expected back."""

from __future__ import annotations

import math
from typing import Self

from pydantic import Field, model_validator

from agent_gym.agents.rules import memory, window
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule, RuleConfig
from agent_gym.agents.rules.window import ahead
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import register

WINDOW, ENTRY_Z, EXIT_Z, LONG, SHORT, SEEN, CURSOR, HELD, AGE = range(9)
ANCHOR, SUM, SQUARES, FRESH_ANCHOR, FRESH_SUM, FRESH_SQUARES, RING = range(9, 16)


class MeanReversionConfig(RuleConfig):
    """The window, and the distances at which to come in and go out."""

    window: int = Field(default=48, ge=2, description="bars of the average")
    entry_z: float = Field(default=2.0, gt=0, description="standard deviations to come in at")
    exit_z: float = Field(default=0.5, ge=0, description="standard deviations to go out at")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.exit_z >= self.entry_z:
            raise ValueError(f"exit_z ({self.exit_z}) must be below entry_z ({self.entry_z})")
        return self


@inlined
def _z_score(state: int, close: float, leaving: float, full: bool) -> float:
    """Move the window by one bar and return the distance from its mean, in its deviations.

    Sums of squared prices cancel badly, so prices are taken relative to an anchor from within the
    last two windows. A second pair of sums starts afresh every window, with a new anchor, and
    replaces the first when it covers the window; so errors do not pile up.
    """
    length, age = count(state, WINDOW), count(state, AGE) + 1
    anchor, fresh_anchor = number(state, ANCHOR), number(state, FRESH_ANCHOR)
    value = close / anchor - 1.0
    total, squares = number(state, SUM) + value, number(state, SQUARES) + value * value
    if full:
        gone = leaving / anchor - 1.0
        total -= gone
        squares -= gone * gone
    fresh = close / fresh_anchor - 1.0
    fresh_total = number(state, FRESH_SUM) + fresh
    fresh_squares = number(state, FRESH_SQUARES) + fresh * fresh
    if age == length:
        anchor, value, total, squares = fresh_anchor, fresh, fresh_total, fresh_squares
        fresh_anchor, fresh_total, fresh_squares, age = close, 0.0, 0.0, 0
    set_count(state, AGE, age)
    set_number(state, ANCHOR, anchor)
    set_number(state, SUM, total)
    set_number(state, SQUARES, squares)
    set_number(state, FRESH_ANCHOR, fresh_anchor)
    set_number(state, FRESH_SUM, fresh_total)
    set_number(state, FRESH_SQUARES, fresh_squares)
    # Where the price stands still, what rounding leaves in the deviation (1e-8 of the price) is
    # far larger than what it leaves in the distance (1e-16), so rounding alone never trades.
    mean = total / length
    deviation = math.sqrt(max(squares / length - mean * mean, 0.0))
    return (value - mean) / deviation if deviation > 0.0 else 0.0


@inlined
def _mean_reversion(state: int, close: float) -> float:
    length, cursor, seen = count(state, WINDOW), count(state, CURSOR), count(state, SEEN)
    if seen == 0:
        set_number(state, ANCHOR, close)
        set_number(state, FRESH_ANCHOR, close)
    z = _z_score(state, close, number(state, RING + cursor), seen >= length)
    set_number(state, RING + cursor, close)
    set_count(state, CURSOR, ahead(cursor, length))
    set_count(state, SEEN, seen + 1)
    if seen + 1 < length:
        return 0.0
    held, entry_z, exit_z = number(state, HELD), number(state, ENTRY_Z), number(state, EXIT_Z)
    if z < -entry_z:
        held = number(state, LONG)
    elif z > entry_z:
        held = number(state, SHORT)
    elif (held > 0.0 and z >= -exit_z) or (held < 0.0 and z <= exit_z):
        held = 0.0
    set_number(state, HELD, held)
    return held


@door("float64(int64, float64)", parts=(memory, window))
def mean_reversion_step(state: int, close: float) -> float:
    """Take in one close."""
    return _mean_reversion(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory, window))
def mean_reversion_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Take in n closes; see Formula.run."""
    close = count(columns, 0)
    for i in range(n):
        set_number(out, i, _mean_reversion(state + i * stride, number(close, i)))


@register("agent", "rules/mean-reversion", MeanReversionConfig)
def mean_reversion(config: MeanReversionConfig) -> Rule:
    """Buy ``entry_z`` deviations below the average, leave at ``exit_z``; above it the reverse.

    Out until ``window`` bars have been seen, and while the price stands still.
    """
    initial = template(
        RING + config.window,
        {
            ENTRY_Z: config.entry_z,
            EXIT_Z: config.exit_z,
            LONG: config.size,
            SHORT: config.short,
        },
        {WINDOW: config.window},
    )
    needs = ("close",)
    formula = Formula(
        "rules/mean-reversion", needs, initial, mean_reversion_step, mean_reversion_run
    )
    return Rule(formula)
