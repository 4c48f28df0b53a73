"""Volatility targeting: hold less when the market shakes more."""

from __future__ import annotations

import math

from pydantic import Field

from agent_gym.agents.rules import memory
from agent_gym.agents.rules.memory import count, number, set_count, set_number, template
from agent_gym.agents.rules.rule import Formula, Rule
from agent_gym.core.clock import DAY_NS
from agent_gym.core.errors import AgentError
from agent_gym.core.kernels import door, inlined
from agent_gym.core.registry import Config, register
from agent_gym.core.types import EpisodeStart

WARMUP, DECAY, BAR_VOL, BAND, MAX_SIZE, SEEN, PREVIOUS, SQUARES, WEIGHT, HELD = range(10)
VOL_TARGET_SLOTS = 10
YEAR_NS = 365 * DAY_NS  # crypto trades every day


class VolTargetConfig(Config):
    """The volatility to hold, and how it is measured."""

    target_vol: float = Field(default=0.4, gt=0, description="yearly volatility to hold")
    bars_per_year: float | None = Field(
        default=None, gt=0, description="null: from the world's period, in a year of 365 days"
    )
    half_life_bars: float = Field(default=48.0, gt=0, description="half-life of the estimate")
    warmup_bars: int = Field(default=24, ge=1, description="returns to see before the first trade")
    band: float = Field(default=0.1, ge=0, lt=1, description="change of target not worth a trade")
    max_size: float = Field(default=1.0, gt=0, le=1, description="largest fraction of equity")


@inlined
def _vol_target(state: int, close: float) -> float:
    returns, warmup = count(state, SEEN), count(state, WARMUP)
    change = close / number(state, PREVIOUS) - 1.0 if returns > 0 else 0.0
    set_count(state, SEEN, returns + 1)
    set_number(state, PREVIOUS, close)
    if returns == 0:
        return 0.0
    decay = number(state, DECAY)
    squares = decay * number(state, SQUARES) + change * change
    weight = decay * number(state, WEIGHT) + 1.0
    set_number(state, SQUARES, squares)
    set_number(state, WEIGHT, weight)
    if returns < warmup:
        return 0.0
    held, most = number(state, HELD), number(state, MAX_SIZE)
    deviation = math.sqrt(squares / weight)
    wanted = most
    if deviation * most > number(state, BAR_VOL):  # so a still market cannot divide by zero
        wanted = number(state, BAR_VOL) / deviation
    if returns == warmup or abs(wanted - held) > number(state, BAND):
        held = wanted
        set_number(state, HELD, held)
    return held


@door("float64(int64, float64)", parts=(memory,))
def vol_target_step(state: int, close: float) -> float:
    """Take in one close."""
    return _vol_target(state, close)


@door("void(int64, int64, int64, int64, int64)", parts=(memory,))
def vol_target_run(state: int, stride: int, n: int, out: int, columns: int) -> None:
    """Take in n closes; see Formula.run."""
    close = count(columns, 0)
    for i in range(n):
        set_number(out, i, _vol_target(state + i * stride, number(close, i)))


@register("agent", "rules/vol-target", VolTargetConfig)
def vol_target(config: VolTargetConfig) -> Rule:
    """Hold the market so that its exponentially weighted volatility meets the target.

    Long only. Inside the band the position stays, so that it does not trade at every bar. The
    half-life and the warm-up count bars; the volatility is yearly, whatever the bars' period.
    """

    def told(start: EpisodeStart) -> dict[int, float]:
        return {BAR_VOL: config.target_vol / math.sqrt(_bars_per_year(config, start))}

    initial = template(
        VOL_TARGET_SLOTS,
        {
            DECAY: 0.5 ** (1.0 / config.half_life_bars),
            BAND: config.band,
            MAX_SIZE: config.max_size,
        },
        {WARMUP: config.warmup_bars},
    )
    doors = vol_target_step, vol_target_run
    return Rule(Formula("rules/vol-target", ("close",), initial, *doors, told=told))


def _bars_per_year(config: VolTargetConfig, start: EpisodeStart) -> float:
    if config.bars_per_year is not None:
        return config.bars_per_year
    if start.period_ns is None or start.period_ns <= 0:
        raise AgentError(
            "a yearly volatility needs the time between two bars",
            where="rules/vol-target",
            found=f"period_ns {start.period_ns}, and no bars_per_year",
            expected="a world that tells its period in EpisodeStart.period_ns",
            remedy="Set the parameter bars_per_year, such as 8760 for hours or 525600 for minutes",
        )
    return YEAR_NS / start.period_ns
