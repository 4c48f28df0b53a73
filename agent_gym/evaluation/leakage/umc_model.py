"""What UMC takes to be true of its world: its own mind with macrostates, and what orders cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_gym.agents.gate import PrimaryBatch, Tags
from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.exec_model import SlippageBelief, SlippagePrior, order_inputs
from agent_gym.agents.umc.macro import MacroConfig
from agent_gym.agents.umc.market_gi import MarketGIConfig
from agent_gym.agents.umc.mind import Mind, Trace
from agent_gym.agents.umc.tiers.contract import Forecasts
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import FloatArray
from agent_gym.evaluation.leakage.crowd import CLOSE, MARKER
from agent_gym.evaluation.leakage.echoes import BP, PAID, PARTICIPATION, TRADED
from agent_gym.evaluation.leakage.predictive import Predictive
from agent_gym.evaluation.leakage.report import Part

PIECE_BARS = 100
POSITIONS = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
MACRO = MacroConfig(
    inputs=("momentum_24", "volatility_ratio"), volume_input=None, max_states=3, restarts=1
)
"""Fewer states and starts than by default, so that a check takes seconds."""
MACRO_PREFIX = "macro/"


class UmcLearner:
    """All that UMC learns of its world from one batch.

    Args:
        batch: What it learns from; nothing but a batch of the gate is taken.
        tier: The model of the market.
        seeds: Of the fit.
    """

    def __init__(self, batch: PrimaryBatch, tier: Ref, seeds: Seeds) -> None:
        model = MarketGIConfig(tiers=(tier,))
        self.mind = Mind(UMCConfig(inputs=(MARKER,), macro=MACRO, model=model))
        self.mind.fit(batch, seeds)
        self.costs = learned_costs(batch)

    def parts(self, tags: Tags, traded: NDArray[Any]) -> dict[str, Part]:
        """Return every number that was learned, with where the rows came from.

        Args:
            tags: Of all rows that were given.
            traded: Above 0 where a row tells what an order paid.
        """
        mind = self.mind.weights()
        macro = {name: mind.pop(name) for name in list(mind) if name.startswith(MACRO_PREFIX)}
        fills: NDArray[np.intp] = np.flatnonzero(traded > 0.0)
        return {
            "world model": Part(mind, tags),
            "macrostates": Part(macro, tags),
            "cost of orders": Part(self.costs.weights(), tags[fills]),
        }

    def predictive(self, columns: Mapping[str, NDArray[Any]], first: int) -> Predictive:
        """Return forecasts at the closes from ``first`` on; earlier bars only tell the scale."""
        told = [trace.told for trace in self._traces(columns, first)]
        return Predictive(
            np.concatenate([part.chance for part in told]),
            np.concatenate([part.mean for part in told]),
            np.concatenate([part.variance for part in told]),
        )

    def logits(
        self, columns: Mapping[str, NDArray[Any]], first: int, precision: float
    ) -> FloatArray:
        """Return the logits of positions at these closes."""
        traces = self._traces(columns, first)
        return np.concatenate(
            [position_logits(trace.told, trace.series.sigma, precision) for trace in traces]
        )

    def _traces(self, columns: Mapping[str, NDArray[Any]], first: int) -> Iterator[Trace]:
        """Yield what is believed in short pieces, each begun with nothing but what was learned.

        A model goes on learning while it follows, so in one long piece the bars that it is
        compared on would wash out what the training left.
        """
        own = {name: np.array(columns[name], np.float64) for name in self.mind_columns}
        memory = self.mind.begin()
        self.mind.follow({name: column[:first] for name, column in own.items()}, memory)
        for start in range(first, len(own[CLOSE]), PIECE_BARS):
            piece = {name: column[start : start + PIECE_BARS] for name, column in own.items()}
            yield self.mind.follow(piece, replace(memory, model=self.mind.model.begin()))

    @property
    def mind_columns(self) -> tuple[str, ...]:
        """Return the columns that the mind reads."""
        return (CLOSE, MARKER, *(part for n in MACRO.inputs for part in (n, f"{n}_known")))


class Follower:
    """Follows a market with what was learned, bar by bar."""

    def __init__(self, learner: UmcLearner, precision: float) -> None:
        self._mind, self._precision = learner.mind, precision
        self._memory = learner.mind.begin()

    def logits(self, bar: Mapping[str, FloatArray]) -> FloatArray:
        """Return the logits of positions after one more bar, as one row."""
        trace = self._mind.follow(bar, self._memory)
        return position_logits(trace.told, trace.series.sigma, self._precision)


def learned_costs(batch: PrimaryBatch) -> SlippageBelief:
    """Return what the fills of a batch say about the cost of orders."""
    filled = np.flatnonzero(batch[TRADED] > 0.0)
    sigma_bp = BP * float(np.diff(np.log(batch[CLOSE])).std())
    rows = order_inputs(batch[PARTICIPATION][filled], sigma_bp)
    return SlippagePrior().belief().updated(rows, batch[PAID][filled])


def position_logits(told: Forecasts, sigma: FloatArray, precision: float) -> FloatArray:
    """Return logits of positions: expected gain less half the variance, in deviations of a bar."""
    gain = (told.edge / sigma)[:, None] * POSITIONS
    spread = (told.chance * told.variance).sum(1) / sigma
    worth: FloatArray = precision * (gain - 0.5 * spread[:, None] * POSITIONS**2)
    return worth
