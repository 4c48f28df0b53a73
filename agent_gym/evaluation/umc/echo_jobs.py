"""One seed of an ablation with others around: what the gate is worth, and lambda where it acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from pydantic import Field
from typing_extensions import override

from agent_gym.agents.gate import AsymmetricGate, GateConfig, Source, Tagged, Tags, concat
from agent_gym.agents.umc.agent import UMCAgent
from agent_gym.core.registry import Ref, make
from agent_gym.core.seeds import Seeds
from agent_gym.core.types import ActionSpec, EpisodeStart, FloatArray, Role
from agent_gym.envs.reflexive import ReflexiveConfig, ReflexiveWorld, simulate
from agent_gym.evaluation.audit.stream import record, targets_of
from agent_gym.evaluation.leakage.crowd import (
    CLOSE,
    MARKER,
    Columns,
    draw_marker,
    planted,
    simple_crowd,
)
from agent_gym.evaluation.protocol.pnl import BP
from agent_gym.evaluation.umc.plan import COST_BP, UMC
from agent_gym.evaluation.umc.variants import (
    CHANGED,
    GATED,
    LAMBDAS,
    NET,
    NO_ECHO,
    OPEN_CLEAN,
    OPEN_POISONED,
    SCORE,
    VARIANTS,
)
from agent_gym.markets.known import draw
from agent_gym.rollouts.jobs import Job

KNOWN = "_known"
DRIFT = "signal_drift"
TRADER = Role("trader")
E1 = ReflexiveConfig.model_validate(
    {
        "bars": 1_000,
        "signal": {"strength": 0.1, "memory": 0.95},
        "actions": {"kind": "continuous", "low": -1.0, "high": 1.0},
        "costs": {
            "taker_bps": COST_BP,
            "half_spread_bps": 0.0,
            "slippage_bps": 0.0,
            "impact": 0.0,
            "participation": None,
        },
        "account": {"allow_short": True},
    }
)
"""A crowd of echoes, a signal worth trading, and an impact that nobody is told: the fee is the only
cost that the agent reckons with beforehand."""
PAST_BARS = 4_000


class GateJob(Job):
    """An agent that learns through the gate, or past it, beside a clean crowd or a poisoned one."""

    seed: int = Field(ge=0)
    bars: int = Field(default=12_000, ge=1_000, description="half to learn from, half to trade")

    @override
    def run(self) -> dict[str, Any]:
        """Let each learn what it is given, then trade what follows."""
        seeds = Seeds(self.seed).child("ablation", "gate")
        market = Ref(use="known/m1", params={"n_bars": self.bars})
        close = np.array(draw(market, seeds.child("market")).bars.close, dtype=np.float64)
        met = {CLOSE: close, MARKER: draw_marker(close.size, seeds.child("met"))}
        half = self.bars // 2
        tags = Tags.of(Source.PRIMARY, "own", np.arange(half))
        past = {name: Tagged(column[:half], tags) for name, column in met.items()}
        clean = _beside(past, simple_crowd(past, half // 2, seeds.child("echo")))
        poisoned = _beside(past, planted(simple_crowd)(past, half // 2, seeds.child("echo")))
        lessons: dict[str, Mapping[str, FloatArray]] = {
            GATED: AsymmetricGate(GateConfig()).sift(poisoned).columns,
            NO_ECHO: {name: column.x for name, column in past.items()},
            OPEN_CLEAN: {name: column.x for name, column in clean.items()},
            OPEN_POISONED: {name: column.x for name, column in poisoned.items()},
        }
        arms = {name: _after(own, met, half, seeds) for name, own in lessons.items()}
        return {"status": "ok", "seed": self.seed, "arms": arms}


def _beside(past: Columns, crowd: Columns) -> dict[str, Tagged]:
    return {name: concat([column, crowd[name]]) for name, column in past.items()}


def _after(
    lesson: Mapping[str, FloatArray], met: Mapping[str, FloatArray], half: int, seeds: Seeds
) -> dict[str, float]:
    """Return what an agent that learned a lesson makes of the bars after the past."""
    agent = cast(UMCAgent, make("agent", Ref(use=UMC, params={"inputs": [MARKER]})))
    start = EpisodeStart(TRADER, agent.needs, ActionSpec(low=-1.0, high=1.0), seeds.child("fit"))
    agent.fit(start, _flagged(lesson))
    seen = _flagged(met)
    targets = agent.targets(start, seen)
    moves = np.diff(met[CLOSE]) / met[CLOSE][:-1]
    traded = np.abs(np.diff(targets, prepend=0.0))
    net = targets[:-1] * moves - COST_BP / BP * traded[:-1]
    score = agent.trace(seen).told.score[half + 1 :]
    return {NET: float(BP * net[half:].mean()), SCORE: float(score.mean())}


def _flagged(columns: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {**columns, MARKER + KNOWN: np.ones_like(columns[MARKER])}


class ReflexiveJob(Job):
    """One seed of a market that the agent's own orders move, under several lambdas."""

    seed: int = Field(ge=0)
    bars: int = Field(default=E1.bars, ge=50)
    past_bars: int = Field(default=PAST_BARS, ge=500)
    arms: tuple[str, ...] = LAMBDAS

    @override
    def run(self) -> dict[str, Any]:
        """Let each learn the same past, in which it did not trade, and trade the same future."""
        past = self._past()
        made: dict[str, FloatArray] = {}
        found: dict[str, dict[str, float]] = {}
        for name in self.arms:
            agent = self._taught(name, past)
            world = ReflexiveWorld(E1.model_copy(update={"bars": self.bars}))
            stream = record(world, agent, self.seed)
            grown = sum(step.after.reward for step in stream.steps)
            made[name] = targets_of(stream)
            same = min(made[name].size, made[self.arms[0]].size)
            found[name] = {
                NET: BP * grown / self.bars,
                CHANGED: float(np.mean(made[name][:same] != made[self.arms[0]][:same])),
            }
        return {"status": "ok", "seed": self.seed, "arms": found}

    def _past(self) -> dict[str, FloatArray]:
        market = E1.model_copy(update={"bars": self.past_bars})
        seen = simulate(market, Seeds(self.seed).child("ablation", "past"))
        assert seen.signal is not None
        signal = np.asarray(seen.signal, dtype=np.float64)
        return {
            CLOSE: np.asarray(seen.bars.close, dtype=np.float64),
            DRIFT: signal,
            DRIFT + KNOWN: np.ones_like(signal),
        }

    def _taught(self, name: str, past: Mapping[str, FloatArray]) -> UMCAgent:
        params = {"inputs": [DRIFT], "cost_bp": COST_BP, **VARIANTS[name].params}
        agent = cast(UMCAgent, make("agent", Ref(use=UMC, params=params)))
        seeds = Seeds(self.seed).child("ablation", "fit")
        agent.fit(EpisodeStart(TRADER, agent.needs, E1.actions.spec(), seeds), past)
        return agent
