"""The first champion of UMC: a policy that was taught nothing, and so holds nothing.

It is told what the world tells everybody: what trading costs, and how much of the money is meant
for one market. It knows no law, so whatever it is shown it expects no move.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent_gym.agents.umc.snapshots.policy import MarketConfig, UMCMarketPolicy
from agent_gym.envs.benchmark.config import BenchmarkWorldConfig
from agent_gym.envs.benchmark.world import BenchmarkWorld

BASIS_POINT = 1e-4


def unschooled(snapshots: Sequence[Path]) -> UMCMarketPolicy:
    """Return a policy with no lessons, for worlds such as the snapshots have."""
    world = BenchmarkWorld(BenchmarkWorldConfig(snapshot=snapshots[0]))
    rules, own = world.config, MarketConfig()
    costs = rules.costs
    taken_bps = costs.taker_bps + costs.half_spread_bps + costs.slippage_bps
    perpetual = {"fee": taken_bps * BASIS_POINT, "leverage": rules.leverage}
    question = {"fee": rules.prediction_fee_bps * BASIS_POINT}
    return UMCMarketPolicy(
        own.model_copy(
            update={
                "budget": world.floor.budget / rules.cash,
                "question": own.question.model_copy(update=question),
                "perpetual": own.perpetual.model_copy(update=perpetual),
            }
        )
    )
