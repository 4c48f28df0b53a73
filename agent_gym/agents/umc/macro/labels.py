"""Names for states: what drift, volatility and volume they have, and what they come after.

A template is a range for each trait; the distance of a state from it is the mean squared gap to
these ranges. All states get their names together, at the least total distance; a state that is too
far from every template left for it stays unlabeled. The same parameters always give the same names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.optimize import linear_sum_assignment

from agent_gym.agents.umc.macro.config import MacroConfig
from agent_gym.agents.umc.macro.model import Hmm
from agent_gym.core.types import FloatArray

LEAST_SPREAD = 0.25  # states that differ less, in deviations of the input, are taken as alike


class Regime(StrEnum):
    """What a macrostate is called."""

    TREND_UP = "TREND_UP"
    TREND_DOWN = "TREND_DOWN"
    BREAKOUT = "BREAKOUT"
    CAPITULATION = "CAPITULATION"
    ACCUMULATION = "ACCUMULATION"
    DISTRIBUTION = "DISTRIBUTION"
    RANGE = "RANGE"
    UNLABELED = "UNLABELED"


@dataclass(frozen=True, slots=True)
class Label:
    """The name of a state.

    Attributes:
        state: Number of the state.
        regime: Its name.
        confidence: By how much the name is nearer than the next one, from 0 (not at all) to 1.
    """

    state: int
    regime: Regime
    confidence: float


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """Traits of the states as scores, NaN where there is no input for one.

    Attributes:
        drift: Against no drift, so that the weaker of two rises is not called a fall.
        volatility: Against the mean of the states.
        volume: Against the mean of the states.
        preceding: Drift of the states from which a state is entered.
    """

    drift: FloatArray
    volatility: FloatArray
    volume: FloatArray
    preceding: FloatArray


Band = tuple[float, float]
ANY: Band = (-math.inf, math.inf)
NONE: Band = (-0.5, 0.5)
UP: Band = (0.75, math.inf)
DOWN: Band = (-math.inf, -0.75)
# Where one state of three is calm the two others are at 0.71: that alone makes them no breakout.
ORDINARY: Band = (-0.75, 0.75)
HIGH: Band = (0.75, 1.25)
EXTREME: Band = (1.25, math.inf)
LOW: Band = (-math.inf, -0.5)
NOT_HIGH: Band = (-math.inf, 0.5)

# Drift, volatility, volume, preceding drift. A breakout goes either way: see _distances.
TEMPLATES: dict[Regime, tuple[Band, Band, Band, Band]] = {
    Regime.TREND_UP: (UP, ORDINARY, ANY, ANY),
    Regime.TREND_DOWN: (DOWN, ORDINARY, ANY, ANY),
    Regime.BREAKOUT: (UP, HIGH, HIGH, ANY),
    Regime.CAPITULATION: (DOWN, EXTREME, EXTREME, ANY),
    Regime.ACCUMULATION: (NONE, LOW, ANY, DOWN),
    Regime.DISTRIBUTION: (NONE, NOT_HIGH, ANY, UP),
    Regime.RANGE: (NONE, LOW, ANY, NONE),
}
REGIMES = tuple(TEMPLATES)


def traits_of(model: Hmm, offsets: FloatArray, config: MacroConfig) -> Traits:
    """Return the traits of a model whose means are in deviations of the inputs.

    Args:
        model: The states.
        offsets: Mean of each input over its deviation, which tells where no drift lies.
        config: Which input stands for which trait.
    """
    column = config.inputs.index(config.drift_input)
    drift = _scores(model.means[:, column] + offsets[column])
    return Traits(
        drift,
        _centred(model, config.column(config.volatility_input)),
        _centred(model, config.column(config.volume_input)),
        _entered_from(model, drift),
    )


def label_states(traits: Traits, ids: tuple[int, ...], limit: float) -> tuple[Label, ...]:
    """Name the states at the least total distance; ``limit`` is the distance of having no name."""
    distances = _distances(traits)
    states = len(ids)
    costs = np.concatenate([distances, np.full((states, states), limit)], axis=1)
    _, chosen = linear_sum_assignment(costs)
    labels = []
    for k, option in enumerate(chosen):
        named = int(option) < len(REGIMES)
        others = np.append(np.delete(distances[k], option), limit) if named else distances[k]
        margin = (float(others.min()) - float(costs[k, option])) / limit
        regime = REGIMES[int(option)] if named else Regime.UNLABELED
        labels.append(Label(ids[k], regime, min(max(margin, 0.0), 1.0)))
    return tuple(labels)


def _distances(traits: Traits) -> FloatArray:
    rows = np.stack([traits.drift, traits.volatility, traits.volume, traits.preceding], axis=1)
    distances = np.empty((len(rows), len(REGIMES)))
    for j, regime in enumerate(REGIMES):
        bands = np.array(TEMPLATES[regime])
        values = rows.copy()
        if regime is Regime.BREAKOUT:
            values[:, 0] = np.abs(values[:, 0])
        gaps = np.maximum(np.maximum(bands[:, 0] - values, values - bands[:, 1]), 0.0) ** 2
        asked = np.isfinite(bands).any(axis=1) & np.isfinite(values)
        distances[:, j] = np.where(asked, gaps, 0.0).sum(axis=1) / np.maximum(asked.sum(axis=1), 1)
    return distances


def _scores(values: FloatArray) -> FloatArray:
    spread = math.sqrt(float((values**2).mean()))
    return np.asarray(values / max(spread, LEAST_SPREAD), dtype=np.float64)


def _centred(model: Hmm, column: int | None) -> FloatArray:
    if column is None:
        return np.full(model.states, np.nan)
    return _scores(model.means[:, column] - model.means[:, column].mean())


def _entered_from(model: Hmm, drift: FloatArray) -> FloatArray:
    flows = model.shares()[:, None] * model.transition
    np.fill_diagonal(flows, 0.0)
    mean: FloatArray = (flows * drift[:, None]).sum(axis=0) / flows.sum(axis=0)
    return mean
