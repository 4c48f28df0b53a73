"""What it is worth to learn: lambda from bar to bar, and what own orders would teach.

Where nothing that is done changes what will be seen, all positions inform alike and lambda decides
nothing. A world in which orders move the price shows what they paid. There a trade also teaches
what trades cost, and lambda may choose a dearer position for it, as far as a budget goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from agent_gym.agents.umc.config import UMCConfig
from agent_gym.agents.umc.efe import least
from agent_gym.agents.umc.exec_model import order_inputs, price_orders
from agent_gym.agents.umc.lam import (
    AdaptiveLambdaScheduler,
    LambdaMetrics,
    LambdaState,
    affordable_lambda,
)
from agent_gym.agents.umc.mind import Trace
from agent_gym.agents.umc.tiers.information import head_information
from agent_gym.core.types import EpisodeStart, FloatArray, Observation

FILLS = ("fill_slippage_bp", "fill_participation", "fill_known", "equity_per_volume")
SLIPPAGE, PARTICIPATION, KNOWN, SIZE = range(4)
IN_BP = 1e4


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What curiosity says to one decision.

    Attributes:
        information: Nats that the next bar is expected to say about which head is right.
        lam: Lambda of the outer loop.
        lam_used: Lambda that the budget allowed; 0 where nothing was asked for.
        own_information: Nats that the chosen order teaches about the cost of orders.
        slippage_bp: What the chosen order is expected to lose on its price, of what is traded.
        place: The level that was chosen with lambda; None where lambda decides nothing.
    """

    information: float
    lam: float
    lam_used: float = 0.0
    own_information: float = 0.0
    slippage_bp: float = 0.0
    place: int | None = None


class Curiosity:
    """Lambda, and the belief about what own orders cost."""

    def __init__(self, config: UMCConfig, columns: tuple[int, ...] | None) -> None:
        self._config = config
        self._columns = columns
        self._scheduler = AdaptiveLambdaScheduler(config.lam)
        self._state = self._scheduler.initial()
        self._belief = config.execution.belief()

    @classmethod
    def of(cls, config: UMCConfig, start: EpisodeStart) -> Self:
        """Return the curiosity for one episode; it asks whether the world shows what orders pay."""
        names = start.feature_names
        shown = all(name in names for name in FILLS)
        return cls(config, tuple(names.index(name) for name in FILLS) if shown else None)

    @property
    def state(self) -> LambdaState:
        """Return where lambda stands."""
        return self._state

    def look(
        self, obs: Observation, trace: Trace, energies: FloatArray, levels: FloatArray, held: int
    ) -> View:
        """Move lambda on by one decision, learn from the last fill, and weigh what is learned."""
        information = float(head_information(trace.told)[0])
        metrics = LambdaMetrics(information, float(trace.coherence[0]))
        self._state = self._scheduler.step(self._state, metrics)
        if self._columns is None:
            return View(information, self._state.lam)
        fills = obs.features[list(self._columns)]
        sigma = float(trace.series.sigma[0])
        if fills[KNOWN] > 0.0:
            row = order_inputs(
                fills[[PARTICIPATION]], float(trace.series.expected_sigma[0]) * IN_BP
            )
            self._belief = self._belief.updated(row, fills[[SLIPPAGE]])
        prices = price_orders(
            self._belief, levels - levels[held], float(fills[SIZE]), sigma * IN_BP
        )
        allowed = np.flatnonzero(np.isfinite(energies))
        base = energies[allowed] + prices.cost[allowed] / sigma
        taught = prices.information[allowed]
        budget = self._config.lam.budget_nats(1.0 / sigma)
        lam = affordable_lambda(base, taught, budget, self._config.lam.lambda_min, self._state.lam)
        place = int(allowed[least(base, taught, lam)])
        moved = abs(float(levels[place] - levels[held]))
        lost = float(prices.cost[place]) / moved * IN_BP if moved > 0.0 else 0.0
        return View(
            information, self._state.lam, lam, float(prices.information[place]), lost, place
        )
