"""From the columns of a world to the series that models read, in one piece or bar by bar."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from agent_gym.agents.umc.tiers.contract import Series
from agent_gym.agents.umc.volatility import Volatility
from agent_gym.core.errors import AgentError
from agent_gym.core.types import FloatArray

KNOWN = "_known"
HALF_LIVES = (3.0, 12.0, 48.0, 192.0, 768.0)


class SeriesReader:
    """Turns closes and inputs into a Series; any pieces of a series give the same bits."""

    def __init__(self, inputs: tuple[str, ...], half_lives: tuple[float, ...] = HALF_LIVES) -> None:
        self.inputs = inputs
        self.volatility = Volatility(half_lives)

    def fit(self, columns: Mapping[str, FloatArray]) -> None:
        """Learn from a past how volatility moves."""
        self.volatility.fit(_closes(columns))

    def begin(self) -> FloatArray:
        """Return a memory that has seen nothing."""
        return self.volatility.begin()

    def read(self, columns: Mapping[str, FloatArray], memory: FloatArray) -> Series:
        """Return the rows of the columns; a close that is no price is refused."""
        found = self.volatility.read(_closes(columns), memory)
        inputs = np.empty((len(found), len(self.inputs)))
        for i, name in enumerate(self.inputs):
            inputs[:, i] = columns[name]
            if name + KNOWN in columns:
                inputs[columns[name + KNOWN] == 0.0, i] = math.nan
        returns, expected, sigma = (np.ascontiguousarray(column) for column in found.T)
        return Series(returns, expected, sigma, inputs, self.inputs)


def _closes(columns: Mapping[str, FloatArray]) -> FloatArray:
    close = np.array(columns["close"], dtype=np.float64, order="C")
    wrong = np.flatnonzero(~(np.isfinite(close) & (close > 0.0)))
    if wrong.size:
        raise AgentError(
            "a close is not a price",
            where=f"umc, row {int(wrong[0])}",
            found=float(close[wrong[0]]),
            expected="a number above 0",
        )
    return close
