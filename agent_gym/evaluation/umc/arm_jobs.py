"""One seed of an ablation on a market that nobody moves: every arm on the same path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.agents.umc.mind import Trace
from agent_gym.core.errors import AgentError
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import (
    Agent,
    Decision,
    EpisodeStart,
    FloatArray,
    Nanos,
    Observation,
    Step,
)
from agent_gym.evaluation.backtest import columns_for
from agent_gym.evaluation.config import BacktestConfig
from agent_gym.evaluation.protocol.account import Ledger
from agent_gym.evaluation.protocol.pnl import bar_pnl
from agent_gym.evaluation.protocol.splits import WalkForward
from agent_gym.evaluation.protocol.walk import Leg, lesson, walked
from agent_gym.evaluation.stepwise import TRADER
from agent_gym.evaluation.umc.courses import EMBARGO, PURGE
from agent_gym.evaluation.umc.plan import UMC, agent_for, flat_costs
from agent_gym.evaluation.umc.variants import DRAWDOWN, GROWTH, NET, SCORE, VARIANTS
from agent_gym.markets.bars import Bars
from agent_gym.markets.known import draw
from agent_gym.rollouts.jobs import Job


class ArmsJob(Job):
    """All arms on the path of one seed of a known market."""

    market: Ref
    seed: int = Field(ge=0)
    arms: tuple[str, ...] = Field(min_length=1)
    cost_bp: float
    inputs: tuple[str, ...] = ()

    @override
    def run(self) -> dict[str, Any]:
        """Let each arm learn the first half and trade the second."""
        bars = draw(self.market, Seeds(self.seed)).bars
        found: dict[str, Any] = {}
        taught: dict[str, tuple[UMCAgent, Trace]] = {}  # arms may differ in the account alone
        for name in self.arms:
            variant = VARIANTS[name]
            agent = Ref(use=UMC, params=dict(variant.params))
            ref = agent_for(agent, self.cost_bp, self.inputs)
            config = BacktestConfig(**dict(flat_costs(self.cost_bp)) | dict(variant.account))
            ledger = _ledger(bars, config, self.seed)
            key = ref.model_dump_json()
            if key not in taught:
                taught[key] = self._taught(ref, ledger)
            found[name] = _traded(name, ledger, *taught[key])
        return {"status": "ok", "seed": self.seed, "fingerprint": bars.fingerprint, "arms": found}

    def _taught(self, ref: Ref, ledger: Ledger) -> tuple[UMCAgent, Trace]:
        """Return an agent as the walk of an evaluation would teach it, and all it believes."""
        agent = cast(UMCAgent, make("agent", ref))
        train, seeds = ledger.folds[0].train, Seeds(self.seed).child("fit", 0)
        agent.fit(*lesson(ledger.bars, train, agent.needs, ledger.config, seeds))
        return agent, agent.trace(columns_for(ledger.bars, agent.needs))


class Recalled:
    """Says bar by bar what an agent has said about the whole series; implements Agent.

    The doors of the agent decide alike to the bit, and this one is much quicker where an account
    with risk parts has to be walked through.
    """

    def __init__(self, targets: FloatArray, trace: Trace, first: int) -> None:
        self.name = UMC
        self._targets, self._first, self._t = targets, first, 0
        self._edge, self._error = trace.told.edge, trace.told.error
        self._sigma = trace.series.sigma

    def reset(self, start: EpisodeStart) -> None:
        """Begin at the first bar."""
        self._t = 0

    def act(self, obs: Observation) -> Decision:
        """Say what was said of this bar; nothing before the test begins."""
        t = self._t
        self._t = t + 1
        signals = {
            "expected_return": float(self._edge[t]),
            "expected_return_se": float(self._error[t]),
            "sigma": float(self._sigma[t]),
        }
        return Decision(float(self._targets[t]) if t >= self._first else 0.0, signals)

    def observe(self, step: Step) -> None:
        """Take no notice."""


def _ledger(bars: Bars, config: BacktestConfig, seed: int) -> Ledger:
    train = len(bars) // 2 - PURGE - EMBARGO
    test = len(bars) - train - PURGE - EMBARGO
    walk = WalkForward(train=train, test=test, purge=PURGE, embargo=EMBARGO)
    return Ledger(bars, walk, config, seed)


def _traded(name: str, ledger: Ledger, agent: UMCAgent, trace: Trace) -> dict[str, float]:
    """Return the figures of an arm on the tested bars."""
    first, whole = ledger.first, len(ledger.bars)
    walker: Agent = walked([Leg(agent, first, whole, 0)])
    if ledger.config.risk() is not None:
        walker = Recalled(_targets(agent, ledger), trace, first)
    run = ledger.trade(name, ledger.decide_as(name, lambda: (walker, ())))
    growth = run.metrics.growth_bps_per_bar
    if growth is None:
        raise AgentError("the account was ruined, so it has no growth", where=name)
    return {
        NET: bar_pnl(run).mean_bp("net", "gain"),
        GROWTH: growth,
        DRAWDOWN: run.metrics.max_drawdown,
        SCORE: float(np.mean(trace.told.score[first + 1 :])),
    }


def _targets(agent: UMCAgent, ledger: Ledger) -> FloatArray:
    bars = ledger.bars
    columns: Mapping[str, FloatArray] = columns_for(bars, agent.needs)
    spec = ledger.config.bounds(bars.instrument)
    seeds = Seeds(ledger.seed).child("recalled")
    start = EpisodeStart(TRADER, tuple(columns), spec, seeds, Nanos(bars.period_ns))
    return agent.targets(start, columns)
