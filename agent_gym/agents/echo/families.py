"""The families of echo traders, what each is told by, and between which bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from agent_gym.core.types import FloatArray

SHORTEST_BARS, LONGEST_BARS = 4.0, 240.0
MOST_PARAMETERS = 4


class StrategyType(StrEnum):
    """What an echo does; the order is that of the mixture weights and of a genome."""

    MOMENTUM = "momentum"
    MEAN_REVERSION = "mean_reversion"
    BREAKOUT = "breakout"
    MARKET_MAKER = "market_maker"
    TREND_VOL_TARGET = "trend_vol_target"
    VALUE = "value"
    NOISE = "noise"
    STOP_CASCADE = "stop_cascade"


class Parameter(NamedTuple):
    """One number that tells an echo what to do; ``even_in_log`` if its logarithm is searched."""

    name: str
    low: float
    high: float
    even_in_log: bool = False


LOOKBACK = Parameter("lookback_bars", SHORTEST_BARS, LONGEST_BARS, even_in_log=True)

FAMILIES: Mapping[StrategyType, tuple[Parameter, ...]] = {
    StrategyType.MOMENTUM: (
        LOOKBACK,
        Parameter("threshold", 0.0, 2.0),
        Parameter("size", 0.05, 1.0),
    ),
    StrategyType.MEAN_REVERSION: (
        LOOKBACK,
        Parameter("z_in", 0.5, 3.0),
        Parameter("z_out", 0.0, 0.5),
        Parameter("stop", 3.0, 8.0),
    ),
    StrategyType.BREAKOUT: (LOOKBACK, Parameter("atr_mult", 0.5, 5.0)),
    StrategyType.MARKET_MAKER: (
        Parameter("half_spread", 0.25, 4.0, even_in_log=True),
        Parameter("inventory_skew", 0.02, 0.5),
        Parameter("limit", 0.1, 1.0),
    ),
    StrategyType.TREND_VOL_TARGET: (
        LOOKBACK,
        Parameter("target_sigma", 0.001, 0.02, even_in_log=True),
    ),
    StrategyType.VALUE: (Parameter("anchor_gap", 0.002, 0.1, even_in_log=True),),
    StrategyType.NOISE: (Parameter("intensity", 0.05, 1.0),),
    StrategyType.STOP_CASCADE: (
        Parameter("leverage", 1.0, 5.0),
        Parameter("stop_distance", 0.005, 0.1, even_in_log=True),
    ),
}
ORDER: tuple[StrategyType, ...] = tuple(StrategyType)
GENOME_SIZE = sum(len(parameters) for parameters in FAMILIES.values())


def dimension(family: StrategyType) -> int:
    """Return how many parameters a family has."""
    return len(FAMILIES[family])


def natural(family: StrategyType, unit: FloatArray) -> FloatArray:
    """Return parameters in their own units from points of the unit cube, one row an echo.

    Example:
        >>> natural(StrategyType.MOMENTUM, np.array([[0.0, 0.5, 1.0]])).round(6).tolist()
        [[4.0, 1.0, 1.0]]
    """
    values = np.empty_like(unit)
    for j, (_, low, high, even_in_log) in enumerate(FAMILIES[family]):
        share = np.clip(unit[:, j], 0.0, 1.0)
        if even_in_log:
            values[:, j] = np.exp(math.log(low) + share * math.log(high / low))
        else:
            values[:, j] = low + share * (high - low)
        values[:, j] = np.clip(values[:, j], low, high)
    return values


def genome_parts(genome: FloatArray) -> dict[StrategyType, FloatArray]:
    """Cut one number for each parameter of each family into the families' own parts."""
    parts, start = {}, 0
    for family in ORDER:
        stop = start + dimension(family)
        parts[family] = genome[start:stop]
        start = stop
    return parts
