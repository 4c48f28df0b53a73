"""Momentum: what has risen is held."""

from __future__ import annotations

from pydantic import Field

from agent_gym.agents.rules import memory, window
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule, RuleConfig
from agent_gym.agents.rules.window import ahead
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import register

LOOKBACK, THRESHOLD, LONG, SHORT, SEEN, CURSOR, RING = range(7)


class MomentumConfig(RuleConfig):
    """How far to look back and how much of a move counts."""

    lookback: int = Field(default=48, ge=1, description="bars over which the return is taken")
    threshold: float = Field(
        default=0.0, ge=0, lt=1, description="return below which there is no position"
    )


@inlined
def _momentum(state: int, close: float) -> float:
    lookback, cursor = count(state, LOOKBACK), count(state, CURSOR)
    seen = count(state, SEEN) + 1
    before = number(state, RING + cursor)
    set_number(state, RING + cursor, close)
    set_count(state, CURSOR, ahead(cursor, lookback))
    set_count(state, SEEN, seen)
    if seen <= lookback:
        return 0.0
    move, threshold = close / before - 1.0, number(state, THRESHOLD)
    if move > threshold:
        return number(state, LONG)
    if move < -threshold:
        return number(state, SHORT)
    return 0.0


@door("float64(int64, float64)", parts=(memory, window))
def momentum_step(state: int, close: float) -> float:
    """Take in one close."""
    return _momentum(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory, window))
def momentum_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Take in n closes; see Formula.run."""
    close = count(columns, 0)
    for i in range(n):
        set_number(out, i, _momentum(state + i * stride, number(close, i)))


@register("agent", "rules/momentum", MomentumConfig)
def momentum(config: MomentumConfig) -> Rule:
    """Be long after a rise over ``lookback`` bars; after a fall short, or out."""
    initial = template(
        RING + config.lookback,
        {THRESHOLD: config.threshold, LONG: config.size, SHORT: config.short},
        {LOOKBACK: config.lookback},
    )
    formula = Formula("rules/momentum", ("close",), initial, momentum_step, momentum_run)
    return Rule(formula)
