"""A short walk of UMC that tests share; it is made once a process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from agent_gym.agents.echo import EchoConfig
from agent_gym.core.registry import Ref
from agent_gym.core.seeds import Seeds
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.leakage.umc import UmcLeakageConfig
from agent_gym.evaluation.protocol.forward import ForwardPlan
from agent_gym.evaluation.protocol.setting import Setting
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.trials import TrialRegistry
from agent_gym.evaluation.umc_walk import UmcPlan, UmcRun, walk_umc
from agent_gym.markets.bars import Bars
from agent_gym.markets.source import open_market

FLAT_COST = BacktestConfig(
    taker_bps=5.0,
    slippage_bps=0.0,
    half_spread_bps=0.0,
    impact=0.0,
    participation=None,
    allow_short=True,
)
WALK = WalkForward(train=900, validate=150, test=220, purge=2, embargo=20)
EXACT = {"model": {"tiers": [{"use": "umc/exact"}]}}


@cache
def known_bars(count: int = 1_500, seed: int = 1) -> Bars:
    """Return a market with strong turning drifts, so that a short past is enough to trade."""
    params = {"n_bars": count, "drift_bp": 15.0}
    return open_market(Ref(use="known/m1", params=params), Seeds(seed))


def small_plan(config: BacktestConfig = FLAT_COST, **params: Any) -> UmcPlan:
    """Return a plan of two folds."""
    return UmcPlan(
        params=EXACT | params,
        forward=ForwardPlan(walk=WALK, config=config, draws=5),
        echoes=EchoConfig(size=16, evolve_every_bars=100, window_bars=100, candidates=4),
        leakage=UmcLeakageConfig(train_bars=800, held_out_bars=200, echo_bars=300, live_bars=200),
    )


@cache
def small_run() -> UmcRun:
    """Return the walk."""
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(
            TrialRegistry(Path(folder) / "trials.jsonl"),
            command=("agent-gym", "umc", "backtest", "--market", "known/m1"),
        )
        return walk_umc(known_bars(), small_plan(), setting)
