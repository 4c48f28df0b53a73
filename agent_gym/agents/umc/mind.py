"""What UMC knows and believes: volatility, macrostates, the model of the market, its coherence.

A mind learns from a past and then follows a series. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import PrimaryBatch
from agent_gym.agents.named_arrays import under
from agent_gym.agents.umc.choice import Outlook
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.macro import MacrostateDetector
from agent_gym.agents.umc.market_gi import (
    MarketGI,
    begin_coherence,
    follow_coherence,
    plain_scores,
)
from agent_gym.agents.umc.series import SeriesReader
from agent_gym.agents.umc.tiers import Forecasts, Series
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray

REGIME = "macro_"


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Where a mind stands in a series; all arrays are moved on in place."""

    reader: FloatArray
    macro: FloatArray
    model: FloatArray
    coherence: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What was believed at each bar.

    Attributes:
        series: The bars as the model sees them.
        told: What the model says of the next bar.
        coherence: How well it has explained the market of late, 0 to 1.
        regimes: Belief in each macrostate by its number, no columns without macrostates.
    """

    series: Series
    told: Forecasts
    coherence: FloatArray
    regimes: FloatArray

    @property
    def edge(self) -> FloatArray:
        """Return the expected return of the next bar in deviations."""
        edge: FloatArray = self.told.edge / self.series.sigma
        return edge

    def outlook(self, trusted_from: float) -> Outlook:
        """Return what decisions are made by; below a coherence positions are held to it."""
        cap = np.where(self.coherence < trusted_from, self.coherence, np.inf)
        return Outlook(self.edge, self.series.sigma, cap)


class Mind:
    """The beliefs of one agent."""

    def __init__(self, config: UMCConfig) -> None:
        self._config = config
        self.reader = SeriesReader(config.inputs)
        self.macro = None if config.macro is None else MacrostateDetector(config.macro)
        self.model = MarketGI(config.model)

    def fit(self, past: PrimaryBatch, seeds: Seeds) -> None:
        """Learn from a past that was met, and nothing else: only the gate makes such a batch."""
        columns = past.columns
        self.reader.fit(columns)
        if self.macro is not None:
            self.macro.fit(self._macro_rows(columns), seeds.child("macro"))
        series, _ = self._read(columns, self._begin_reading())
        self.model.fit(series, seeds.child("model"))

    def choose(self, past: Mapping[str, FloatArray], columns: Mapping[str, FloatArray]) -> None:
        """Choose the tier again, by bars that follow the past it was fitted on."""
        memory = self._begin_reading()
        warm, _ = self._read(past, memory)
        seen, _ = self._read(columns, memory)
        self.model.choose(warm, seen)

    def succeed(self, earlier: Mind) -> None:
        """Let what can learn on begin from where an earlier mind stood."""
        self.model.follow(earlier.model)

    def begin(self) -> Memory:
        """Return a memory that has seen nothing."""
        reading = self._begin_reading()
        return Memory(reading.reader, reading.macro, self.model.begin(), begin_coherence())

    def follow(self, columns: Mapping[str, FloatArray], memory: Memory) -> Trace:
        """Take in bars and return what is believed after each; any pieces give the same bits."""
        series, regimes = self._read(columns, memory)
        told = self.model.filter(series, memory.model)
        coherence = follow_coherence(told.score, plain_scores(series), memory.coherence)
        return Trace(series, told, coherence, regimes)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, by name."""
        found: dict[str, NDArray[Any]] = {"volatility": self.reader.volatility.shares.copy()}
        found |= {f"model/{name}": array for name, array in self.model.weights().items()}
        if self.macro is not None:
            found |= {f"macro/{name}": array for name, array in self.macro.weights().items()}
        return found

    def restore(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Take over what weights() of a mind with the same config returned."""
        self.reader.volatility.restore(weights["volatility"])
        self.model.restore(under("model/", weights))
        if self.macro is not None:
            self.macro.restore(under("macro/", weights))

    def _begin_reading(self) -> Memory:
        nothing = np.empty(0)
        macro = nothing if self.macro is None else self.macro.begin()
        return Memory(self.reader.begin(), macro, nothing, nothing)

    def _read(self, columns: Mapping[str, FloatArray], memory: Memory) -> tuple[Series, FloatArray]:
        series = self.reader.read(columns, memory.reader)
        if self.macro is None:
            return series, np.empty((len(series), 0))
        beliefs = self.macro.filter(self._macro_rows(columns), memory.macro)
        regimes = self.macro.slots(beliefs)
        names = tuple(f"{REGIME}{number}" for number in range(regimes.shape[1]))
        return series.beside(regimes, names), regimes

    def _macro_rows(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        names = () if self._config.macro is None else self._config.macro.inputs
        rows = [np.where(columns[f"{name}_known"] > 0.0, columns[name], np.nan) for name in names]
        return np.ascontiguousarray(np.column_stack(rows))
