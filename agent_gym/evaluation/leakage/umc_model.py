"""What UMC takes to be true of its market, as one model: the volatility and the exact tier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import PrimaryBatch
from agent_gym.agents.umc.series import SeriesReader
from agent_gym.agents.umc.tiers.contract import Forecasts
from agent_gym.agents.umc.tiers.exact import ExactConfig, ExactTier
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.leakage.crowd import CLOSE, MARKER
from agent_gym.evaluation.leakage.predictive import Predictive

PIECE_BARS = 100
POSITIONS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


class UmcModel:
    """A reader and a tier that were fitted on the same rows."""

    def __init__(self, columns: Mapping[str, NDArray[Any]], seeds: Seeds) -> None:
        self.reader = SeriesReader((MARKER,))
        self.reader.fit(columns)
        self.tier = ExactTier(ExactConfig())
        self.tier.fit(self.reader.read(columns, self.reader.begin()), seeds)

    @classmethod
    def learn(cls, batch: PrimaryBatch, seeds: Seeds) -> Self:
        """Learn the world; nothing but a batch of the gate is taken."""
        return cls(batch.columns, seeds)

    def weights(self) -> dict[str, NDArray[Any]]:
        """Return every number that was learned; the scale of returns is one of them."""
        return {**self.tier.weights(), "volatility": self.reader.volatility.shares}

    def predictive(self, columns: Mapping[str, NDArray[Any]], first: int) -> Predictive:
        """Return forecasts at the closes from ``first`` on; earlier bars only tell the scale."""
        told = [told for told, _ in self._told(columns, first)]
        return Predictive(
            np.concatenate([part.chance for part in told]),
            np.concatenate([part.mean for part in told]),
            np.concatenate([part.variance for part in told]),
        )

    def logits(
        self, columns: Mapping[str, NDArray[Any]], first: int, precision: float
    ) -> FloatArray:
        """Return the logits of positions at these closes."""
        parts = self._told(columns, first)
        return np.concatenate([position_logits(told, sigma, precision) for told, sigma in parts])

    def _told(
        self, columns: Mapping[str, NDArray[Any]], first: int
    ) -> Iterator[tuple[Forecasts, FloatArray]]:
        """Yield what the tier says in short pieces, each begun with nothing but what was learned.

        The tier goes on learning while it follows, so in one long piece the bars that it is
        compared on would wash out what the training left.
        """
        read = self.reader.read(columns, self.reader.begin())
        for start in range(first, len(read), PIECE_BARS):
            states = read.rows(start, min(start + PIECE_BARS, len(read)))
            yield self.tier.filter(states, self.tier.begin()), states.sigma


class Follower:
    """Follows a market with a model, bar by bar."""

    def __init__(self, model: UmcModel, precision: float) -> None:
        self._model = model
        self._precision = precision
        self._read = model.reader.begin()
        self._believed = model.tier.begin()

    def logits(self, close: float, marker: float) -> FloatArray:
        """Return the logits of positions after one more bar, as one row."""
        columns = {CLOSE: np.array([close]), MARKER: np.array([marker])}
        bar = self._model.reader.read(columns, self._read)
        told = self._model.tier.filter(bar, self._believed)
        return position_logits(told, bar.sigma, self._precision)


def position_logits(told: Forecasts, sigma: FloatArray, precision: float) -> FloatArray:
    """Return logits of positions: expected gain less half the variance, in deviations of a bar."""
    gain = (told.edge / sigma)[:, None] * POSITIONS
    spread = (told.chance * told.variance).sum(1) / sigma
    worth: FloatArray = precision * (gain - 0.5 * spread[:, None] * POSITIONS**2)
    return worth
