"""What a training of UMC is made from."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agent_gym.core.registry import Config, Ref
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.umc_walk.run import account_cost_bp


class UMCTrainConfig(Config):
    """Who learns, from which rows, and under which account.

    Example:
        >>> UMCTrainConfig(backtest=BacktestConfig(taker_bps=4, slippage_bps=1)).ref.params
        {'cost_bp': 5.5}
    """

    params: dict[str, Any] = Field(default={}, description="parameters of the agent umc")
    walk: WalkForward | None = Field(
        default=None, description="folds to learn one after the other; null: all bars at once"
    )
    backtest: BacktestConfig = Field(
        default=BacktestConfig(), description="costs and bounds of the account it learns for"
    )
    seed: int = Field(default=0, ge=0, description="where all randomness comes from")

    @property
    def ref(self) -> Ref:
        """Return the agent; what it reckons a trade to cost is what the account charges."""
        return Ref(use="umc", params={"cost_bp": account_cost_bp(self.backtest), **self.params})
