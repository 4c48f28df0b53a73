"""The agents that every other one must beat: flat, buy and hold, and random."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from agent_gym.agents.rules import memory
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule, RuleConfig
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import Config, register

SIZE = 0
CONSTANT_SLOTS = 1


class FlatConfig(Config):
    """Nothing to set: the flat agent never holds anything."""


class BuyHoldConfig(Config):
    """How much to buy."""

    size: float = Field(
        default=1.0, gt=0, le=1, description="position from the first bar, fraction of equity"
    )


class RandomConfig(RuleConfig):
    """How long to keep what was drawn."""

    hold_bars: int = Field(default=24, ge=1, description="bars between two draws")


@inlined
def _constant(state: int, close: float) -> float:
    return number(state, SIZE)


@door("float64(int64, float64)", parts=(memory,))
def constant_step(state: int, close: float) -> float:
    """Return the same target at every bar."""
    return _constant(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory,))
def constant_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Run the constant rule over n bars; see Formula.run."""
    close = count(columns, 0)
    for i in range(n):
        set_number(out, i, _constant(state + i * stride, number(close, i)))


@register("agent", "rules/flat", FlatConfig)
def flat(config: FlatConfig) -> Rule:
    """Hold nothing, ever: what it costs to stay out."""
    initial = template(CONSTANT_SLOTS, {SIZE: 0.0}, {})
    return Rule(Formula("rules/flat", ("close",), initial, constant_step, constant_run))


@register("agent", "rules/buy-hold", BuyHoldConfig)
def buy_hold(config: BuyHoldConfig) -> Rule:
    """Buy at the first bar and keep it: what the market itself paid."""
    initial = template(CONSTANT_SLOTS, {SIZE: config.size}, {})
    return Rule(Formula("rules/buy-hold", ("close",), initial, constant_step, constant_run))


KEY, HOLD_BARS, BAR, HELD, LONG, SHORT = range(6)
RANDOM_SLOTS = 6
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
S27, S30, S31, S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
THREE, TWO = np.uint64(3), np.uint64(2)


@inlined
def _draw(key: int, turn: int, short: float, long: float) -> float:
    """Return short, flat or long (flat or long if short is 0), from a hash of key and turn."""
    word = np.uint64(key) + (np.uint64(turn) + np.uint64(1)) * GOLDEN
    word = (word ^ (word >> S30)) * MIX_1
    word = (word ^ (word >> S27)) * MIX_2
    word = (word ^ (word >> S31)) >> S32
    sides = THREE if short < 0.0 else TWO
    side = (word * sides) >> S32  # 32 random bits times the number of sides: even to 1e-9
    if side == np.uint64(0):
        return 0.0
    return long if side == np.uint64(1) else short


@inlined
def _random(state: int, close: float) -> float:
    bar = count(state, BAR)
    hold_bars = count(state, HOLD_BARS)
    if bar % hold_bars == 0:
        drawn = _draw(
            count(state, KEY), bar // hold_bars, number(state, SHORT), number(state, LONG)
        )
        set_number(state, HELD, drawn)
    set_count(state, BAR, bar + 1)
    return number(state, HELD)


@door("float64(int64, float64)", parts=(memory,))
def random_step(state: int, close: float) -> float:
    """Return what was drawn for this bar."""
    return _random(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory,))
def random_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Run the random rule over n bars; see Formula.run."""
    close = count(columns, 0)
    for i in range(n):
        set_number(out, i, _random(state + i * stride, number(close, i)))


@register("agent", "rules/random", RandomConfig)
def random(config: RandomConfig) -> Rule:
    """Throw dice every ``hold_bars`` bars: what luck and costs alone give.

    A draw is a hash of the seed and the turn, so no generator has to be carried along.
    """
    initial = template(
        RANDOM_SLOTS, {LONG: config.size, SHORT: config.short}, {HOLD_BARS: config.hold_bars}
    )
    formula = Formula("rules/random", ("close",), initial, random_step, random_run, KEY)
    return Rule(formula)
