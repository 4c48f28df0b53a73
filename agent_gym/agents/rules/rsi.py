"""The relative strength index, with Wilder's smoothing."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from agent_gym.agents.rules import memory
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule, RuleConfig
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import register

PERIOD, OVERSOLD, OVERBOUGHT, LONG, SHORT, SEEN, PREVIOUS, GAIN, LOSS, HELD = range(10)
RSI_SLOTS = 10

NEUTRAL = 50.0


class RsiConfig(RuleConfig):
    """The period of the index and the levels that count as extremes."""

    period: int = Field(default=14, ge=2, description="bars of the smoothing")
    oversold: float = Field(default=30.0, gt=0, lt=100, description="buy below this index")
    overbought: float = Field(default=70.0, gt=0, lt=100, description="sell above this index")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.oversold >= self.overbought:
            raise ValueError(
                f"oversold ({self.oversold}) must be below overbought ({self.overbought})"
            )
        return self


@inlined
def _smooth(state: int, slot: int, value: float, moves: int) -> float:
    """Move one average: plain over the first ``period`` moves, then Wilder's."""
    period, average = count(state, PERIOD), number(state, slot)
    average = average + value if moves <= period else average * (period - 1) + value
    if moves >= period:
        average /= period
    set_number(state, slot, average)
    return average


@inlined
def _rsi(state: int, close: float) -> float:
    moves, period = count(state, SEEN), count(state, PERIOD)
    move = close - number(state, PREVIOUS)
    set_count(state, SEEN, moves + 1)
    set_number(state, PREVIOUS, close)
    if moves == 0:
        return 0.0
    gain = _smooth(state, GAIN, max(move, 0.0), moves)
    loss = _smooth(state, LOSS, max(-move, 0.0), moves)
    if moves < period:
        return 0.0
    index = 100.0 * gain / (gain + loss) if gain + loss > 0.0 else NEUTRAL
    held = number(state, HELD)
    if index < number(state, OVERSOLD):
        held = number(state, LONG)
    elif index > number(state, OVERBOUGHT):
        held = number(state, SHORT)
    set_number(state, HELD, held)
    return held


@door("float64(int64, float64)", parts=(memory,))
def rsi_step(state: int, close: float) -> float:
    """Take in one close."""
    return _rsi(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory,))
def rsi_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Take in n closes; see Formula.run."""
    close = count(columns, 0)
    for i in range(n):
        set_number(out, i, _rsi(state + i * stride, number(close, i)))


@register("agent", "rules/rsi", RsiConfig)
def rsi(config: RsiConfig) -> Rule:
    """Buy when the index is oversold and keep it until overbought; then short, or out.

    Out until ``period`` moves have been seen; a price that stands still has an index of 50.
    """
    initial = template(
        RSI_SLOTS,
        {
            OVERSOLD: config.oversold,
            OVERBOUGHT: config.overbought,
            LONG: config.size,
            SHORT: config.short,
        },
        {PERIOD: config.period},
    )
    return Rule(Formula("rules/rsi", ("close",), initial, rsi_step, rsi_run))
