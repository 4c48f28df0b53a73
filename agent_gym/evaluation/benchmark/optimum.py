"""The attainable optimum: Bayes' rule on what is public, fractional Kelly, only beyond the costs.

It knows the stated law and reads every post up to the tick it acts in, and plays through the same
world as everybody else. It does not know the outcomes; nobody who sees the same can expect more
than a little above it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydantic import Field

from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Config, register
from agent_gym.core.types import Decision, EpisodeStart, Observation, Step
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.features import feature_names
from agent_gym.envs.benchmark.floor import RESERVE
from agent_gym.evaluation.benchmark.filter import know
from agent_gym.evaluation.benchmark.layout import MarketLayout
from agent_gym.markets.snapshot.public_file import load_snapshot
from agent_gym.markets.snapshot.types import Snapshot

NAME = "benchmark/bayes"
BPS = 1e-4
EDGE_MARGIN = 0.01  # probability beyond the fees, for the price that a trade moves
STEPS = 4  # sizes are quarters of a budget: smaller changes are not worth their fees


class BayesConfig(Config):
    """Whose law to use and how boldly to bet."""

    snapshot: Path = Field(description="public file of the snapshot that is played")
    kelly_fraction: float = Field(default=0.5, gt=0.0, le=1.0)


class BayesOptimum:
    """Implements Agent for one snapshot.

    Args:
        snapshot: The snapshot that will be played; of its posts and prices only those up to the
            current tick are used.
        world: The costs and the leverage that it reckons with.
        kelly_fraction: Share of the stake that maximises growth.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        world: BenchmarkWorldConfig | None = None,
        kelly_fraction: float = 0.5,
    ) -> None:
        self.name = NAME
        self._snapshot = snapshot
        self._rules = world or BenchmarkWorldConfig(snapshot=Path())
        self._fraction = kelly_fraction
        known = know(snapshot)
        self._beliefs, self._to_come, self._doubts = known.beliefs, known.to_come, known.doubts
        self._n_q = len(snapshot.predictions)
        self._targets = np.zeros(len(snapshot.market_ids))

    def reset(self, start: EpisodeStart) -> None:
        """Begin an episode of the same snapshot."""
        if start.feature_names != feature_names(self._snapshot):
            raise AgentError("this world shows another snapshot", where=NAME)
        layout = MarketLayout.of(start)
        self._prices, self._open = layout.columns("price"), layout.columns("open")
        self._targets = np.zeros(layout.n_markets)

    def act(self, obs: Observation) -> Decision:
        """Compare what is known with what is paid."""
        tick = (obs.ts - self._snapshot.config.start_ns) // self._snapshot.tick_ns
        prices, is_open = obs.features[self._prices] + 0.5, obs.features[self._open]
        for m in range(len(self._targets)):
            if not is_open[m]:
                self._targets[m] = 0.0
            elif m < self._n_q:
                self._bet(m, float(self._beliefs[tick, m]), float(prices[m]))
            else:
                self._ride(m, tick)
        return Decision(self._targets.copy())

    def observe(self, step: Step) -> None:
        """Learn nothing: the law is known."""

    def _bet(self, m: int, belief: float, price: float) -> None:
        inside = min(max(price, 1e-3), 1.0 - 1e-3)
        edge, held = belief - inside, self._targets[m]
        paid = inside if edge > 0.0 else 1.0 - inside
        hurdle = 2.0 * self._rules.prediction_fee_bps * BPS * paid + EDGE_MARGIN
        if abs(edge) <= hurdle:
            if edge * held < 0.0:  # the price has passed what is known: take the money
                self._targets[m] = 0.0
            return
        shares = self._fraction * edge / (inside * (1.0 - inside))
        wanted = self._sized(shares * len(self._targets) / (1.0 - RESERVE))
        if held * wanted <= 0.0 or abs(wanted) > abs(held):
            self._targets[m] = wanted

    def _ride(self, m: int, tick: int) -> None:
        place, config = m - self._n_q, self._snapshot.config
        move, held = float(self._to_come[tick, place]), self._targets[m]
        costs = self._rules.costs
        trip = 2.0 * BPS * (costs.taker_bps + costs.half_spread_bps + costs.slippage_bps)
        if abs(move) > 1.5 * trip:
            risk = config.volatility**2 / config.rate + float(self._doubts[tick, place])
            scale = len(self._targets) / ((1.0 - RESERVE) * self._rules.leverage)
            self._targets[m] = self._sized(self._fraction * move / risk * scale)
        elif move * held < 0.0 or abs(move) < 0.2 * trip:
            self._targets[m] = 0.0

    def _sized(self, target: float) -> float:
        return float(np.clip(round(target * STEPS) / STEPS, -1.0, 1.0))


@register("agent", NAME, BayesConfig)
def bayes_optimum(config: BayesConfig) -> BayesOptimum:
    """Play the best that can be known of a snapshot: the yardstick of every other agent."""
    return BayesOptimum(load_snapshot(config.snapshot), kelly_fraction=config.kelly_fraction)
